package restclient

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/rest"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

// Paths of resources of the REST interface.
const (
	AgentsPath    = "/api/v1/agents"
	auditPath     = "/api/v1/audit"
	decisionsPath = "/api/v1/decisions"
	RunsPath      = "/api/v1/orchestrations"
	TicketsPath   = "/api/v1/tickets"
)

// AllStatuses is the status that selects all tickets or orchestrations.
const AllStatuses = "all"

// SuggestAgent reports that the router has no agent with the id, and returns a text that
// follows such an error. If the caller may not list the agents, it is not known.
func (c *Client) SuggestAgent(ctx context.Context, id string) (hint string, unknown bool) {
	var list rest.AgentList
	if err := c.GetResource(ctx, AgentsPath, nil, &list); err != nil {
		return "", false
	}
	ids := make([]string, len(list.Agents))
	for i := range list.Agents {
		ids[i] = list.Agents[i].ID
	}
	if slices.Contains(ids, id) {
		return "", false
	}
	if near := strictyaml.Nearest(id, ids); near != "" {
		return "; did you mean " + near + "?", true
	}
	return ": caprouter agents list lists them", true
}

// ListAudit fetches at most query.Limit entries, page by page.
func (c *Client) ListAudit(ctx context.Context, query contract.AuditQuery) ([]contract.AuditEntry, error) {
	return readPages(query.Limit, func(parameters url.Values) ([]contract.AuditEntry, string, error) {
		addAuditParameters(parameters, query)
		var page contract.AuditPage
		err := c.GetResource(ctx, auditPath, parameters, &page)
		return page.Entries, page.NextCursor, err
	})
}

// addAuditParameters adds the filters of the query to the parameters of the REST interface.
func addAuditParameters(parameters url.Values, q contract.AuditQuery) {
	for _, kind := range q.Kinds {
		parameters.Add("kind", string(kind))
	}
	for name, value := range map[string]string{"actor": q.Actor, "agent": q.Agent, "tool": q.Tool, "request_id": q.RequestID} {
		if value != "" {
			parameters.Set(name, value)
		}
	}
	for name, at := range map[string]time.Time{"since": q.Since, "until": q.Until} {
		if !at.IsZero() {
			parameters.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
}

// ListTickets fetches at most limit tickets, page by page.
func (c *Client) ListTickets(ctx context.Context, status string, limit int) ([]contract.Ticket, error) {
	return readPages(limit, func(query url.Values) ([]contract.Ticket, string, error) {
		if status != AllStatuses {
			query.Set("status", status)
		}
		var page contract.TicketPage
		err := c.GetResource(ctx, TicketsPath, query, &page)
		return page.Tickets, page.NextCursor, err
	})
}

// ListRuns fetches at most limit orchestrations, page by page.
func (c *Client) ListRuns(ctx context.Context, status string, limit int) ([]contract.RunSummary, error) {
	return readPages(limit, func(query url.Values) ([]contract.RunSummary, string, error) {
		if status != AllStatuses {
			query.Set("status", status)
		}
		var page contract.RunPage
		err := c.GetResource(ctx, RunsPath, query, &page)
		return page.Orchestrations, page.NextCursor, err
	})
}

// readPages returns at most limit entries of a list of the REST interface. read gets the
// parameters of a page, and returns its entries and the next cursor.
func readPages[T any](limit int, read func(query url.Values) (page []T, next string, err error)) ([]T, error) {
	const maxPageSize = 1000
	list := []T{}
	for cursor := ""; ; {
		query := url.Values{"limit": {strconv.Itoa(min(limit-len(list), maxPageSize))}}
		if cursor != "" {
			query.Set("cursor", cursor)
		}
		page, next, err := read(query)
		if err != nil {
			return nil, err
		}
		list = append(list, page...)
		if cursor = next; cursor == "" || len(list) >= limit {
			return list, nil
		}
	}
}
