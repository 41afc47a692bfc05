package rest

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/caprouter/caprouter/contract"
)

// TicketClose is the body of POST /api/v1/tickets/{id}/close.
type TicketClose struct {
	Note string `json:"note,omitempty" validate:"max=1000"`
}

func (s *Server) handleTickets(x *exchange, _ echo.Context) error {
	q := readQuery(x.req.URL.RawQuery, "status", "limit", "cursor")
	query := contract.TicketQuery{
		Status: contract.TicketStatus(q.oneOf("status", string(contract.TicketOpen), string(contract.TicketClosed))),
		Limit:  q.limit(),
		Cursor: q.cursor(),
	}
	if err := q.err(); err != nil {
		return err
	}
	page, err := s.deps.Tickets.Tickets(x.req.Context(), query, x.caller)
	if err != nil {
		return err
	}
	x.set("Cache-Control", "no-store")
	return s.writeJSON(x, http.StatusOK, typeJSON, page)
}

func (s *Server) handleTicket(x *exchange, c echo.Context) error {
	id, err := pathID(c, "ticket")
	if err != nil {
		return err
	}
	ticket, err := s.deps.Tickets.Ticket(x.req.Context(), id, x.caller)
	return s.writeTicket(x, ticket, err)
}

func (s *Server) handleCloseTicket(x *exchange, c echo.Context) error {
	id, err := pathID(c, "ticket")
	if err != nil {
		return err
	}
	var closing TicketClose
	if x.body != nil {
		if err := s.decodeBody(x, &closing); err != nil {
			return err
		}
	}
	ticket, err := s.deps.Tickets.CloseTicket(x.req.Context(), id, closing.Note, x.caller)
	return s.writeTicket(x, ticket, err)
}

func (s *Server) writeTicket(x *exchange, ticket *contract.Ticket, err error) error {
	if err != nil {
		return err
	}
	x.set("Cache-Control", "no-store")
	return s.writeJSON(x, http.StatusOK, typeJSON, ticket)
}
