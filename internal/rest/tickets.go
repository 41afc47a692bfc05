package rest

import (
	"net/http"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/httpserver"
)

// TicketClose is the body of POST /api/v1/tickets/{id}/close.
type TicketClose struct {
	Note string `json:"note,omitempty" validate:"max=1000"`
}

func (a *api) handleTickets(c *httpserver.Context) error {
	q := parseQuery(c.Request.URL.RawQuery, "status", "limit", "cursor")
	query := contract.TicketQuery{
		Status: contract.TicketStatus(q.enumParam("status", string(contract.TicketOpen), string(contract.TicketClosed))),
		Limit:  q.limitParam(maxPageSize),
		Cursor: q.cursorParam(),
	}
	if err := q.err(); err != nil {
		return err
	}
	page, err := a.deps.Tickets.Tickets(c.Request.Context(), query, c.Caller)
	if err != nil {
		return err
	}
	return c.WriteJSON(http.StatusOK, httpserver.MediaTypeJSON, page)
}

func (a *api) handleTicket(c *httpserver.Context) error {
	id, err := pathID(c, "ticket")
	if err != nil {
		return err
	}
	ticket, err := a.deps.Tickets.Ticket(c.Request.Context(), id, c.Caller)
	if err != nil {
		return err
	}
	return c.WriteJSON(http.StatusOK, httpserver.MediaTypeJSON, ticket)
}

func (a *api) handleCloseTicket(c *httpserver.Context) error {
	id, err := pathID(c, "ticket")
	if err != nil {
		return err
	}
	var closing TicketClose
	if c.Body() != nil {
		if err := decodeBody(c, &closing); err != nil {
			return err
		}
	}
	ticket, err := a.deps.Tickets.CloseTicket(c.Request.Context(), id, closing.Note, c.Caller)
	if err != nil {
		return err
	}
	return c.WriteJSON(http.StatusOK, httpserver.MediaTypeJSON, ticket)
}
