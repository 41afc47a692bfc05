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
	scopeAgentsRead  = "agents:read"
	scopeAdmin       = "admin"
)

// handler answers one request; an error it returns is answered for it.
type handler func(x *exchange, c echo.Context) error

// route is one row of the route table: where, for whom, what.
type route struct {
	method, path string
	scope        string
	unlimited    bool // answered even when the server is full
	counted      bool // the Meter counts its errors
	handle       handler
}

// routes is the whole interface. GET rows answer HEAD as well.
func (s *Server) routes() []*route {
	const get, post = http.MethodGet, http.MethodPost
	return []*route{
		{method: post, path: "/api/v1/route", scope: scopeRouteSubmit, counted: true, handle: s.handleRoute},
		{method: post, path: "/api/v1/classify", scope: scopeRouteSubmit, handle: s.handleClassify},
		{method: get, path: "/api/v1/agents", scope: scopeAgentsRead, handle: s.handleAgents},
		{method: get, path: "/api/v1/agents/:id", scope: scopeAgentsRead, handle: s.handleAgent},
		{method: get, path: "/api/v1/registry", scope: scopeAgentsRead, handle: s.handleRegistry},
		{method: post, path: "/api/v1/registry/validate", scope: scopeAgentsRead, handle: s.handleValidate},
		{method: post, path: "/api/v1/registry/lint", scope: scopeAgentsRead, handle: s.handleLint},
		{method: get, path: "/openapi.json", scope: scopePublic, handle: s.handleOpenAPI},

		// Who watches a full server must still see it, and an agent that works
		// on one of its requests must still be able to verify the token.
		{method: get, path: "/healthz", scope: scopePublic, unlimited: true, handle: s.handleHealth},
		{method: get, path: "/readyz", scope: scopePublic, unlimited: true, handle: s.handleReady},
		{method: get, path: "/metrics", scope: scopePublic, unlimited: true, handle: s.handleMetrics},
		{method: get, path: "/.well-known/jwks.json", scope: scopePublic, unlimited: true, handle: s.handleJWKS},
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
		if !rt.unlimited {
			if !s.enter() {
				return &contract.Error{Code: contract.CodeOverloaded, Message: "too many requests are being worked on; try again soon"}
			}
			defer s.leave()
		}
		if rt.scope != scopePublic {
			if err := s.authorize(x, rt.scope); err != nil {
				return err
			}
		}
		return rt.handle(x, c)
	}
}

// authorize finds out who calls and checks that the caller holds the scope.
func (s *Server) authorize(x *exchange, scope string) error {
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

// enter takes one of the MaxInFlight slots; each true is followed by one leave.
func (s *Server) enter() bool {
	if s.inFlight.Add(1) > int64(s.cfg.MaxInFlight) {
		s.inFlight.Add(-1)
		return false
	}
	if s.deps.Meter != nil {
		s.deps.Meter.InFlight(1)
	}
	return true
}

func (s *Server) leave() {
	s.inFlight.Add(-1)
	if s.deps.Meter != nil {
		s.deps.Meter.InFlight(-1)
	}
}
