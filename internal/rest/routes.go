package rest

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/caprouter/caprouter/contract"
)

// scopePublic is that of a route which needs no caller at all.
const scopePublic = ""

// handler answers one request; an error it returns is answered for it.
type handler func(x *exchange, c echo.Context) error

// route is one row of the route table: where, for whom, what.
type route struct {
	method, path string
	scope        string
	lane         lane
	body         *bodySpec // nil = none is read
	limited      bool      // Config.Classify bounds how often a caller may
	counted      bool      // the Meter counts its errors
	handle       handler
}

// routes is the whole interface. GET rows answer HEAD as well.
func (s *Server) routes() []*route {
	const get, post, del = http.MethodGet, http.MethodPost, http.MethodDelete
	asJSON := func(most int) *bodySpec { return &bodySpec{most: most, types: []string{typeJSON}} }
	asYAML := &bodySpec{most: contract.MaxBodyBytes, types: []string{"application/yaml", "application/x-yaml", "text/yaml", "text/plain"}}
	ifAny := &bodySpec{most: contract.MaxBodyBytes, types: []string{typeJSON}, optional: true}
	return []*route{
		{method: post, path: "/api/v1/route", scope: contract.ScopeRouteSubmit, body: asJSON(contract.MaxBodyBytes), limited: true, counted: true, handle: s.handleRoute},
		{method: post, path: "/api/v1/classify", scope: contract.ScopeRouteSubmit, body: asJSON(contract.MaxBodyBytes), limited: true, handle: s.handleClassify},
		{method: get, path: "/api/v1/requests/:id", scope: contract.ScopeRouteRead, handle: s.handleRequest},
		{method: del, path: "/api/v1/requests/:id", scope: contract.ScopeRouteSubmit, handle: s.handleErase},
		{method: get, path: "/api/v1/decisions", scope: contract.ScopeRouteRead, handle: s.handleDecisions},
		{method: get, path: "/api/v1/tickets", scope: contract.ScopeTickets, handle: s.handleTickets},
		{method: get, path: "/api/v1/tickets/:id", scope: contract.ScopeTickets, handle: s.handleTicket},
		{method: post, path: "/api/v1/tickets/:id/close", scope: contract.ScopeTickets, body: ifAny, handle: s.handleCloseTicket},
		{method: get, path: "/api/v1/agents", scope: contract.ScopeAgentsRead, handle: s.handleAgents},
		{method: get, path: "/api/v1/agents/:id", scope: contract.ScopeAgentsRead, handle: s.handleAgent},
		{method: get, path: "/api/v1/registry", scope: contract.ScopeAgentsRead, handle: s.handleRegistry},
		{method: post, path: "/api/v1/registry/validate", scope: contract.ScopeAgentsRead, body: asYAML, lane: laneChecks, handle: s.handleValidate},
		{method: post, path: "/api/v1/registry/lint", scope: contract.ScopeAgentsRead, body: asYAML, lane: laneChecks, handle: s.handleLint},

		{method: get, path: "/api/v1/requests/:id/events", scope: contract.ScopeRouteRead, lane: laneReaders, handle: s.handleEvents},
		{method: post, path: "/api/v1/requests/:id/cancel", scope: contract.ScopeRouteSubmit, lane: laneRelief, handle: s.handleCancel},
		{method: post, path: "/api/v1/tasks/:id/result", scope: contract.ScopeTasksWork, body: asJSON(maxResultBytes), lane: laneRelief, handle: s.handleResult},
		{method: post, path: "/api/v1/tasks/:id/progress", scope: contract.ScopeTasksWork, body: asJSON(maxProgressBytes), lane: laneRelief, handle: s.handleProgress},

		// Who watches a full server must still see it, and an agent that works
		// on one of its requests must still be able to verify the token.
		{method: get, path: "/healthz", scope: scopePublic, lane: laneFree, handle: s.handleHealth},
		{method: get, path: "/readyz", scope: scopePublic, lane: laneFree, handle: s.handleReady},
		{method: get, path: "/metrics", scope: scopePublic, lane: laneFree, handle: s.handleMetrics},
		{method: get, path: "/openapi.json", scope: scopePublic, lane: laneFree, handle: s.handleOpenAPI},
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
// checked here, for every route, by its row of the table. What is cheap comes
// first, and a place is taken last: neither who may not, nor who sends slowly,
// keeps one from somebody else.
func (s *Server) guard(rt *route) echo.HandlerFunc {
	return func(c echo.Context) error {
		x := exchangeOf(c)
		x.route = rt
		if s.full(rt.lane) {
			return errOverloaded
		}
		if err := s.authorize(x, c, rt.scope); err != nil {
			return err
		}
		if rt.limited {
			if err := s.limit(x); err != nil {
				return err
			}
		}
		if rt.body != nil {
			defer s.release(x)
			if err := s.receive(x, rt.body); err != nil {
				return err
			}
		}
		if !s.enter(x, rt.lane) {
			return errOverloaded
		}
		defer s.leave(x)
		return rt.handle(x, c)
	}
}

// errOverloaded sheds a request.
var errOverloaded = &contract.Error{Code: contract.CodeOverloaded, Message: "too many requests are being worked on; try again soon"}

// limit refuses a caller who asks too often, and says in headers how the limit
// stands.
func (s *Server) limit(x *exchange) error {
	if s.cfg.Classify == nil {
		return nil
	}
	state, ok := s.cfg.Classify.Take(x.caller)
	if !ok {
		return &contract.Error{Code: contract.CodeRateLimited, Message: "this caller asks too often", Limit: &state}
	}
	setLimit(x, &state)
	return nil
}
