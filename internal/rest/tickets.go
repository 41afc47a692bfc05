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

// ticketAPI holds the handlers of tickets. It is immutable.
type ticketAPI struct{ tickets Tickets }

func (a *ticketAPI) routes(cfg *Config) []httpserver.Route {
	const get, post = http.MethodGet, http.MethodPost
	return []httpserver.Route{
		{Method: get, Path: "/api/v1/tickets", Scope: contract.ScopeTickets, RateLimit: cfg.ReadLimit, Handle: a.handleTickets},
		{Method: get, Path: "/api/v1/tickets/:id", Scope: contract.ScopeTickets, Handle: a.handleTicket},
		{Method: post, Path: "/api/v1/tickets/:id/close", Scope: contract.ScopeTickets, Body: optionalBody(), Handle: a.handleCloseTicket},
	}
}

func (a *ticketAPI) handleTickets(c *httpserver.Context) error {
	q := parseQuery(c.Request.URL.RawQuery, "status", "limit", "cursor")
	query := contract.TicketQuery{
		Status: contract.TicketStatus(q.enumParam("status", string(contract.TicketOpen), string(contract.TicketClosed))),
		Limit:  q.limitParam(maxPageSize),
		Cursor: q.cursorParam(),
	}
	if err := q.err(); err != nil {
		return err
	}
	page, err := a.tickets.Tickets(c.Request.Context(), query, c.Caller)
	if err != nil {
		return err
	}
	return c.WriteJSON(http.StatusOK, httpserver.MediaTypeJSON, page)
}

func (a *ticketAPI) handleTicket(c *httpserver.Context) error {
	id, err := pathID(c, "ticket")
	if err != nil {
		return err
	}
	ticket, err := a.tickets.Ticket(c.Request.Context(), id, c.Caller)
	if err != nil {
		return err
	}
	return c.WriteJSON(http.StatusOK, httpserver.MediaTypeJSON, ticket)
}

func (a *ticketAPI) handleCloseTicket(c *httpserver.Context) error {
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
	ticket, err := a.tickets.CloseTicket(c.Request.Context(), id, closing.Note, c.Caller)
	if err != nil {
		return err
	}
	return c.WriteJSON(http.StatusOK, httpserver.MediaTypeJSON, ticket)
}
