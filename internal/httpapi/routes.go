package httpapi

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/caprouter/caprouter/contract"
)

// The scopes a caller may hold (see openapi.yaml, x-scope).
const (
	scopePublic      = "" // needs no caller at all
	scopeRouteSubmit = "route:submit"
	scopeRouteRead   = "route:read"
	scopeTickets     = "tickets"
	scopeTasksWork   = "tasks:work" // held by the token of the task in the path
	scopeAgentsRead  = "agents:read"
	scopeAdmin       = "admin"
)

// handler answers one request; an error it returns is answered for it.
type handler func(x *exchange, c echo.Context) error

// route is one row of the route table: where, for whom, what.
type route struct {
	method, path string
	scope        string
	lane         lane
	counted      bool // the Meter counts its errors
	handle       handler
}

// routes is the whole interface. GET rows answer HEAD as well.
func (s *Server) routes() []*route {
	const get, post, del = http.MethodGet, http.MethodPost, http.MethodDelete
	return []*route{
		{method: post, path: "/api/v1/route", scope: scopeRouteSubmit, counted: true, handle: s.handleRoute},
		{method: post, path: "/api/v1/classify", scope: scopeRouteSubmit, handle: s.handleClassify},
		{method: get, path: "/api/v1/requests/:id", scope: scopeRouteRead, handle: s.handleRequest},
		{method: del, path: "/api/v1/requests/:id", scope: scopeRouteSubmit, handle: s.handleErase},
		{method: get, path: "/api/v1/decisions", scope: scopeRouteRead, handle: s.handleDecisions},
		{method: get, path: "/api/v1/tickets", scope: scopeTickets, handle: s.handleTickets},
		{method: get, path: "/api/v1/tickets/:id", scope: scopeTickets, handle: s.handleTicket},
		{method: post, path: "/api/v1/tickets/:id/close", scope: scopeTickets, handle: s.handleCloseTicket},
		{method: get, path: "/api/v1/agents", scope: scopeAgentsRead, handle: s.handleAgents},
		{method: get, path: "/api/v1/agents/:id", scope: scopeAgentsRead, handle: s.handleAgent},
		{method: get, path: "/api/v1/registry", scope: scopeAgentsRead, handle: s.handleRegistry},
		{method: post, path: "/api/v1/registry/validate", scope: scopeAgentsRead, handle: s.handleValidate},
		{method: post, path: "/api/v1/registry/lint", scope: scopeAgentsRead, handle: s.handleLint},
		{method: get, path: "/openapi.json", scope: scopePublic, handle: s.handleOpenAPI},

		{method: get, path: "/api/v1/requests/:id/events", scope: scopeRouteRead, lane: laneReaders, handle: s.handleEvents},
		{method: post, path: "/api/v1/requests/:id/cancel", scope: scopeRouteSubmit, lane: laneRelief, handle: s.handleCancel},
		{method: post, path: "/api/v1/tasks/:id/result", scope: scopeTasksWork, lane: laneRelief, handle: s.handleResult},
		{method: post, path: "/api/v1/tasks/:id/progress", scope: scopeTasksWork, lane: laneRelief, handle: s.handleProgress},

		// Who watches a full server must still see it, and an agent that works
		// on one of its requests must still be able to verify the token.
		{method: get, path: "/healthz", scope: scopePublic, lane: laneFree, handle: s.handleHealth},
		{method: get, path: "/readyz", scope: scopePublic, lane: laneFree, handle: s.handleReady},
		{method: get, path: "/metrics", scope: scopePublic, lane: laneFree, handle: s.handleMetrics},
		{method: get, path: "/.well-known/jwks.json", scope: scopePublic, lane: laneFree, handle: s.handleJWKS},
	}
}

func (s *Server) mount(rt *route) {
	h := s.guard(rt)
	s.echo.Add(rt.method, rt.path, h)
	if rt.method == http.MethodGet {
		s.echo.Add(http.MethodHead, rt.path, h) // net/http leaves the body out
	}
}

// guard is the one middleware: whatever must hold before a handler runs is
// checked here, for every route, by its row of the table.
func (s *Server) guard(rt *route) echo.HandlerFunc {
	return func(c echo.Context) error {
		x := exchangeOf(c)
		x.route = rt
		if rt.lane != laneFree {
			if !s.enter(rt.lane) {
				return &contract.Error{Code: contract.CodeOverloaded, Message: "too many requests are being worked on; try again soon"}
			}
			defer s.leave(rt.lane)
		}
		if err := s.authorize(x, c, rt.scope); err != nil {
			return err
		}
		return rt.handle(x, c)
	}
}

// authorize finds out who calls and checks that the caller holds the scope.
func (s *Server) authorize(x *exchange, c echo.Context, scope string) error {
	switch scope {
	case scopePublic:
		return nil
	case scopeTasksWork:
		return s.authorizeTask(x, c)
	}
	caller, err := s.cfg.Auth.Authenticate(x.req)
	if err != nil {
		return err
	}
	if !caller.HasScope(scope) {
		return &contract.Error{Code: contract.CodeForbidden, Message: "this needs the scope " + scope}
	}
	x.caller = caller
	return nil
}

// authorizeTask checks that the token is the one of the task in the path.
func (s *Server) authorizeTask(x *exchange, c echo.Context) error {
	grant, err := s.deps.TaskTokens(bearer(x.req.Header))
	if err != nil {
		return &contract.Error{Code: contract.CodeUnauthenticated, Message: "the task's token is missing, not valid, or has expired"}
	}
	if grant.TaskID != c.Param("id") {
		return &contract.Error{Code: contract.CodeNotFound, Message: "there is no such task for this token"}
	}
	x.grant = grant
	return nil
}
