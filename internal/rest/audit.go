package rest

import (
	"context"
	"net/http"
	"unicode/utf8"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/httpserver"
)

// AuditLog returns pages of the audit log with the entries that the caller may see.
type AuditLog interface {
	AuditEntries(ctx context.Context, query contract.AuditQuery, caller *contract.Caller) (*contract.AuditPage, error)
}

// auditAPI holds the handler of the audit log. It is immutable.
type auditAPI struct{ log AuditLog }

func (a *auditAPI) routes(cfg *Config) []httpserver.Route {
	return []httpserver.Route{
		{Method: http.MethodGet, Path: "/api/v1/audit", Scope: contract.ScopeRouteRead, RateLimit: cfg.ReadLimit, Handle: a.handleAudit},
	}
}

func (a *auditAPI) handleAudit(c *httpserver.Context) error {
	q := parseQueryLists(c.Request.URL.RawQuery, []string{"kind"},
		"kind", "since", "until", "actor", "agent", "tool", "request_id", "limit", "cursor")
	query := contract.AuditQuery{
		Since:     q.timeParam("since"),
		Until:     q.timeParam("until"),
		Actor:     q.param("actor", isSubject, "is not the subject of a caller"),
		Agent:     q.param("agent", contract.ValidAgentID, "is not an agent id ("+contract.AgentIDPattern+")"),
		Tool:      q.param("tool", isToolName, "is not the name of a tool, e.g. files.read"),
		RequestID: q.param("request_id", isValidID, "is not the id of a request"),
		Limit:     q.limitParam(maxPageSize),
		Cursor:    q.cursorParam(),
	}
	for _, kind := range q.enumListParam("kind", auditKindNames()...) {
		query.Kinds = append(query.Kinds, contract.AuditKind(kind))
	}
	if !query.Until.IsZero() && query.Until.Before(query.Since) {
		q.addError("until", "must not be before since")
	}
	if err := q.err(); err != nil {
		return err
	}
	page, err := a.log.AuditEntries(c.Request.Context(), query, c.Caller)
	if err != nil {
		return err
	}
	return c.WriteJSON(http.StatusOK, httpserver.MediaTypeJSON, page)
}

func auditKindNames() []string {
	var names []string
	for _, kind := range contract.AuditKinds() {
		names = append(names, string(kind))
	}
	return names
}

// isSubject reports whether s can be the subject of a token.
func isSubject(s string) bool { return utf8.ValidString(s) && s != "" && len(s) <= maxNameLen }

// isToolName reports whether s can be a server and a tool, joined by a dot.
func isToolName(s string) bool { return isPrintable(s, maxNameLen) }
