package rest

import (
	"net/http"
	"slices"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/httpserver"
	"github.com/caprouter/caprouter/internal/lint"
)

// api holds the handlers. It is immutable.
type api struct {
	deps    Deps
	openapi openapiDocument
	checks  *lint.Pacer

	answerByDefault bool // Config.AnswerByDefault
}

// New returns the REST interface, for httpserver.Server.Mount.
func New(cfg Config, deps Deps) (httpserver.API, error) {
	if err := deps.check(); err != nil {
		return httpserver.API{}, err
	}
	a := &api{deps: deps, openapi: loadOpenAPI(), checks: &lint.Pacer{}, answerByDefault: cfg.AnswerByDefault}
	return httpserver.API{
		Prefix:         "/",
		Routes:         a.routes(&cfg),
		EncodeError:    encodeProblem,
		NotFound:       "there is nothing at this path; /openapi.json describes what there is",
		SuccessHeaders: responseHeaders(),
	}, nil
}

// Limits of the bodies that agents send. Results in the response of an agent have
// the same limit.
const (
	maxResultBytes   = 4 << 20
	maxProgressBytes = 64 << 10
)

// routes returns the routes of all handlers.
func (a *api) routes(cfg *Config) []httpserver.Route {
	mcp := &mcpAPI{tools: a.deps.Tools, servers: a.deps.MCPServers, registrations: a.deps.MCPRegistrations, approvals: a.deps.MCPApprovals, bindings: a.deps.MCPBindings}
	runs := &runAPI{runs: a.deps.Runs, lister: a.deps.RunLister, control: a.deps.RunControl, eraser: a.deps.RunEraser}
	tickets := &ticketAPI{tickets: a.deps.Tickets}
	audit := &auditAPI{log: a.deps.AuditLog}
	routes := slices.Concat(
		a.requestRoutes(cfg), audit.routes(cfg), tickets.routes(cfg), a.agentRoutes(cfg), a.registryRoutes(cfg), a.taskRoutes(),
		mcp.routes(cfg), runs.routes(cfg), a.publicRoutes(),
	)
	for i := range routes {
		if routes[i].Method == http.MethodGet { // an administrator reads everything
			routes[i].OrAdmin = true
		}
	}
	return routes
}

// jsonBody describes a body of JSON.
func jsonBody(maxBytes int) httpserver.BodySpec {
	return httpserver.BodySpec{MaxBytes: maxBytes, MediaTypes: []string{httpserver.MediaTypeJSON}}
}

// optionalBody describes a body of JSON that may be absent.
func optionalBody() httpserver.BodySpec {
	body := jsonBody(contract.MaxBodyBytes)
	body.Optional = true
	return body
}

// requestRoutes are the routes of requests, and of the decisions about them.
func (a *api) requestRoutes(cfg *Config) []httpserver.Route {
	const get, post, del = http.MethodGet, http.MethodPost, http.MethodDelete
	return []httpserver.Route{
		{Method: post, Path: "/api/v1/route", Scope: contract.ScopeRouteSubmit, Body: jsonBody(contract.MaxBodyBytes), RateLimit: cfg.ClassifyLimit, ObserveError: a.deps.Meter.RecordRequest, Handle: a.handleRoute},
		{Method: post, Path: "/api/v1/classify", Scope: contract.ScopeRouteSubmit, Body: jsonBody(contract.MaxBodyBytes), RateLimit: cfg.ClassifyLimit, Handle: a.handleClassify},
		{Method: get, Path: "/api/v1/requests/:id", Scope: contract.ScopeRouteRead, Handle: a.handleRequest},
		{Method: del, Path: "/api/v1/requests/:id", Scope: contract.ScopeRouteSubmit, Handle: a.handleErase},
		{Method: get, Path: "/api/v1/decisions", Scope: contract.ScopeRouteRead, RateLimit: cfg.ReadLimit, Handle: a.handleDecisions},
		{Method: get, Path: "/api/v1/requests/:id/events", Scope: contract.ScopeRouteRead, Class: httpserver.ClassStream, Handle: a.handleEvents},
		{Method: post, Path: "/api/v1/requests/:id/cancel", Scope: contract.ScopeRouteSubmit, Class: httpserver.ClassCompletion, Handle: a.handleCancel},
		{Method: post, Path: "/api/v1/requests/:id/feedback", Scope: contract.ScopeRouteSubmit, Body: jsonBody(contract.MaxBodyBytes), RateLimit: cfg.ReadLimit, Handle: a.handleFeedback},
	}
}

// agentRoutes are the routes of agents and their registrations.
func (a *api) agentRoutes(cfg *Config) []httpserver.Route {
	const get, post, del = http.MethodGet, http.MethodPost, http.MethodDelete
	return []httpserver.Route{
		{Method: get, Path: "/api/v1/agents", Scope: contract.ScopeAgentsRead, Handle: a.handleAgents},
		{Method: get, Path: "/api/v1/agents/:id", Scope: contract.ScopeAgentsRead, Handle: a.handleAgent},
		{Method: http.MethodPut, Path: "/api/v1/agents/:id", Scope: contract.ScopeAgentsRegister, OrAdmin: true, Body: jsonBody(maxRegistrationBytes), RateLimit: cfg.RegisterLimit, Class: httpserver.ClassCompletion, Handle: a.handleRegister},
		{Method: post, Path: "/api/v1/agents/:id/heartbeat", Scope: contract.ScopeAgentsRegister, OrAdmin: true, Body: optionalBody(), Class: httpserver.ClassCompletion, Handle: a.handleLease(a.deps.Fleet.Heartbeat)},
		{Method: post, Path: "/api/v1/agents/:id/drain", Scope: contract.ScopeAgentsRegister, OrAdmin: true, Body: optionalBody(), Class: httpserver.ClassCompletion, Handle: a.handleLease(a.deps.Fleet.Drain)},
		{Method: del, Path: "/api/v1/agents/:id", Scope: contract.ScopeAgentsRegister, OrAdmin: true, Class: httpserver.ClassCompletion, Handle: a.handleDeregister},
		{Method: post, Path: "/api/v1/agents/:id/disable", Scope: contract.ScopeAdmin, Class: httpserver.ClassCompletion, Handle: a.handleDisable(true)},
		{Method: post, Path: "/api/v1/agents/:id/enable", Scope: contract.ScopeAdmin, Class: httpserver.ClassCompletion, Handle: a.handleDisable(false)},
	}
}

// registryRoutes are the routes of the registry file.
func (a *api) registryRoutes(cfg *Config) []httpserver.Route {
	const get, post = http.MethodGet, http.MethodPost
	yamlBody := httpserver.BodySpec{
		MaxBytes:   contract.MaxBodyBytes,
		MediaTypes: []string{"application/yaml", "application/x-yaml", "text/yaml", "text/plain"},
	}
	return []httpserver.Route{
		{Method: get, Path: "/api/v1/registry", Scope: contract.ScopeAgentsRead, Handle: a.handleRegistry},
		{Method: post, Path: "/api/v1/registry/validate", Scope: contract.ScopeAgentsRead, Body: yamlBody, Class: httpserver.ClassHeavy, RateLimit: cfg.CheckLimit, Handle: a.handleValidate},
		{Method: post, Path: "/api/v1/registry/lint", Scope: contract.ScopeAgentsRead, Body: yamlBody, Class: httpserver.ClassHeavy, RateLimit: cfg.CheckLimit, Handle: a.handleLint},
		// The report contains prompts and decisions: the scope is that of the decision log.
		{Method: post, Path: "/api/v1/registry/diff", Scope: contract.ScopeRouteRead, OrAdmin: true, Body: yamlBody, Class: httpserver.ClassHeavy, RateLimit: cfg.CheckLimit, Handle: a.handleDiff},
	}
}

// taskRoutes are the routes by which agents pull tasks and report on them.
func (a *api) taskRoutes() []httpserver.Route {
	const post = http.MethodPost
	return []httpserver.Route{
		{Method: post, Path: "/api/v1/agents/:id/lease", Scope: contract.ScopeTasksWork, Body: optionalBody(), Class: httpserver.ClassStream, Handle: a.handlePull},
		{Method: post, Path: "/api/v1/tasks/:id/heartbeat", Scope: contract.ScopeTasksWork, Authorize: a.authorizeTask, Class: httpserver.ClassCompletion, Handle: a.handleTaskHeartbeat},
		{Method: post, Path: "/api/v1/tasks/:id/result", Scope: contract.ScopeTasksWork, Authorize: a.authorizeTask, Body: jsonBody(maxResultBytes), Class: httpserver.ClassCompletion, Handle: a.handleResult},
		{Method: post, Path: "/api/v1/tasks/:id/progress", Scope: contract.ScopeTasksWork, Authorize: a.authorizeTask, Body: jsonBody(maxProgressBytes), Class: httpserver.ClassCompletion, Handle: a.handleProgress},
	}
}

// publicRoutes are the routes without a token. They are unlimited, because operators must
// be able to observe a full server, and agents that work for it must be able to verify
// their tokens.
func (a *api) publicRoutes() []httpserver.Route {
	const get = http.MethodGet
	return []httpserver.Route{
		{Method: get, Path: "/healthz", Scope: httpserver.Public, Class: httpserver.ClassUnlimited, Handle: a.handleHealth},
		{Method: get, Path: "/readyz", Scope: httpserver.Public, Class: httpserver.ClassUnlimited, Handle: a.handleReady},
		{Method: get, Path: "/metrics", Scope: httpserver.Public, Class: httpserver.ClassUnlimited, Handle: a.handleMetrics},
		{Method: get, Path: "/openapi.json", Scope: httpserver.Public, Class: httpserver.ClassUnlimited, Handle: a.handleOpenAPI},
		{Method: get, Path: "/.well-known/jwks.json", Scope: httpserver.Public, Class: httpserver.ClassUnlimited, Handle: a.handleJWKS},
	}
}
