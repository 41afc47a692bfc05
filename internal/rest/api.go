package rest

import (
	"net/http"

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

// routes returns the route table.
func (a *api) routes(cfg *Config) []httpserver.Route {
	const get, post, del = http.MethodGet, http.MethodPost, http.MethodDelete
	jsonBody := func(maxBytes int) httpserver.BodySpec {
		return httpserver.BodySpec{MaxBytes: maxBytes, MediaTypes: []string{httpserver.MediaTypeJSON}}
	}
	yamlBody := httpserver.BodySpec{
		MaxBytes:   contract.MaxBodyBytes,
		MediaTypes: []string{"application/yaml", "application/x-yaml", "text/yaml", "text/plain"},
	}
	mcpFileBody := httpserver.BodySpec{MaxBytes: contract.MaxBodyBytes, MediaTypes: []string{httpserver.MediaTypeJSON, "text/plain"}}
	optionalBody := jsonBody(contract.MaxBodyBytes)
	optionalBody.Optional = true
	m := &mcpAPI{tools: a.deps.Tools, servers: a.deps.MCPServers, approvals: a.deps.MCPApprovals, bindings: a.deps.MCPBindings}
	runs := &runAPI{runs: a.deps.Runs, control: a.deps.RunControl}
	return []httpserver.Route{
		{Method: post, Path: "/api/v1/route", Scope: contract.ScopeRouteSubmit, Body: jsonBody(contract.MaxBodyBytes), RateLimit: cfg.ClassifyLimit, ObserveError: a.deps.Meter.Request, Handle: a.handleRoute},
		{Method: post, Path: "/api/v1/classify", Scope: contract.ScopeRouteSubmit, Body: jsonBody(contract.MaxBodyBytes), RateLimit: cfg.ClassifyLimit, Handle: a.handleClassify},
		{Method: get, Path: "/api/v1/requests/:id", Scope: contract.ScopeRouteRead, Handle: a.handleRequest},
		{Method: del, Path: "/api/v1/requests/:id", Scope: contract.ScopeRouteSubmit, Handle: a.handleErase},
		{Method: get, Path: "/api/v1/decisions", Scope: contract.ScopeRouteRead, RateLimit: cfg.ReadLimit, Handle: a.handleDecisions},
		{Method: get, Path: "/api/v1/tickets", Scope: contract.ScopeTickets, RateLimit: cfg.ReadLimit, Handle: a.handleTickets},
		{Method: get, Path: "/api/v1/tickets/:id", Scope: contract.ScopeTickets, Handle: a.handleTicket},
		{Method: post, Path: "/api/v1/tickets/:id/close", Scope: contract.ScopeTickets, Body: optionalBody, Handle: a.handleCloseTicket},
		{Method: get, Path: "/api/v1/agents", Scope: contract.ScopeAgentsRead, Handle: a.handleAgents},
		{Method: get, Path: "/api/v1/agents/:id", Scope: contract.ScopeAgentsRead, Handle: a.handleAgent},
		{Method: http.MethodPut, Path: "/api/v1/agents/:id", Scope: contract.ScopeAgentsRegister, OrAdmin: true, Body: jsonBody(maxRegistrationBytes), RateLimit: cfg.RegisterLimit, Class: httpserver.ClassCompletion, Handle: a.handleRegister},
		{Method: post, Path: "/api/v1/agents/:id/heartbeat", Scope: contract.ScopeAgentsRegister, OrAdmin: true, Body: optionalBody, Class: httpserver.ClassCompletion, Handle: a.handleLease(a.deps.Fleet.Heartbeat)},
		{Method: post, Path: "/api/v1/agents/:id/drain", Scope: contract.ScopeAgentsRegister, OrAdmin: true, Body: optionalBody, Class: httpserver.ClassCompletion, Handle: a.handleLease(a.deps.Fleet.Drain)},
		{Method: del, Path: "/api/v1/agents/:id", Scope: contract.ScopeAgentsRegister, OrAdmin: true, Class: httpserver.ClassCompletion, Handle: a.handleDeregister},
		{Method: post, Path: "/api/v1/agents/:id/disable", Scope: contract.ScopeAdmin, Class: httpserver.ClassCompletion, Handle: a.handleDisable(true)},
		{Method: post, Path: "/api/v1/agents/:id/enable", Scope: contract.ScopeAdmin, Class: httpserver.ClassCompletion, Handle: a.handleDisable(false)},
		{Method: get, Path: "/api/v1/registry", Scope: contract.ScopeAgentsRead, Handle: a.handleRegistry},
		{Method: post, Path: "/api/v1/registry/validate", Scope: contract.ScopeAgentsRead, Body: yamlBody, Class: httpserver.ClassHeavy, RateLimit: cfg.CheckLimit, Handle: a.handleValidate},
		{Method: post, Path: "/api/v1/registry/lint", Scope: contract.ScopeAgentsRead, Body: yamlBody, Class: httpserver.ClassHeavy, RateLimit: cfg.CheckLimit, Handle: a.handleLint},
		// The report contains prompts and decisions: the scope is that of the decision log.
		{Method: post, Path: "/api/v1/registry/diff", Scope: contract.ScopeRouteRead, Body: yamlBody, Class: httpserver.ClassHeavy, RateLimit: cfg.CheckLimit, Handle: a.handleDiff},

		{Method: get, Path: "/api/v1/mcp/registry", Scope: contract.ScopeMCPRead, RateLimit: cfg.ReadLimit, Handle: m.handleMCPRegistry},
		{Method: post, Path: "/api/v1/mcp/validate", Scope: contract.ScopeMCPRead, Body: mcpFileBody, Class: httpserver.ClassHeavy, RateLimit: cfg.CheckLimit, Handle: m.handleMCPValidate},
		{Method: post, Path: "/api/v1/mcp/test", Scope: contract.ScopeMCPRead, Body: jsonBody(contract.MaxBodyBytes), RateLimit: cfg.CheckLimit, Handle: m.handleMCPTest},
		{Method: post, Path: "/api/v1/mcp/invoke", Scope: scopeInvoke, HasScope: mayInvoke, MissingScope: missingInvokeScope(), Body: jsonBody(contract.MaxBodyBytes), Handle: m.handleInvoke},
		{Method: get, Path: "/api/v1/mcp/servers", Scope: contract.ScopeMCPRead, Handle: m.handleMCPServers},
		{Method: post, Path: "/api/v1/mcp/servers", Scope: contract.ScopeAdmin, Body: jsonBody(maxRegistrationBytes), Class: httpserver.ClassCompletion, Handle: m.handleRegisterMCPServer},
		{Method: get, Path: "/api/v1/mcp/servers/:name", Scope: contract.ScopeMCPRead, Handle: m.handleMCPServer},
		{Method: post, Path: "/api/v1/mcp/bind", Scope: contract.ScopeMCPRead, Body: jsonBody(maxRegistrationBytes), Handle: m.handleBind},
		{Method: get, Path: "/api/v1/mcp/events", Scope: contract.ScopeMCPRead, Class: httpserver.ClassStream, Handle: m.handleMCPEvents},
		{Method: get, Path: "/api/v1/mcp/tools/pending", Scope: contract.ScopeAdmin, Handle: m.handlePendingTools},
		{Method: post, Path: "/api/v1/mcp/tools/:name/approve", Scope: contract.ScopeAdmin, Body: jsonBody(maxRegistrationBytes), Class: httpserver.ClassCompletion, Handle: m.handleApproveTool},
		{Method: del, Path: "/api/v1/mcp/servers/:name", Scope: contract.ScopeAdmin, Class: httpserver.ClassCompletion, Handle: m.handleRemoveMCPServer},

		{Method: post, Path: "/api/v1/orchestrations", Scope: contract.ScopeOrchestrate, Body: jsonBody(contract.MaxBodyBytes), RateLimit: cfg.ClassifyLimit, Handle: runs.handleOrchestrate},
		{Method: get, Path: "/api/v1/orchestrations/:id", Scope: contract.ScopeOrchestrate, HasScope: mayReadRuns, Handle: runs.handleRun},
		{Method: get, Path: "/api/v1/orchestrations/:id/events", Scope: contract.ScopeOrchestrate, HasScope: mayReadRuns, Class: httpserver.ClassStream, Handle: runs.handleRunEvents},
		{Method: post, Path: "/api/v1/orchestrations/:id/approve", Scope: contract.ScopeApprove, Body: jsonBody(maxRegistrationBytes), Class: httpserver.ClassCompletion, Handle: runs.handleApprove},
		{Method: post, Path: "/api/v1/orchestrations/:id/cancel", Scope: contract.ScopeOrchestrate, Class: httpserver.ClassCompletion, Handle: runs.handleCancelRun},

		{Method: get, Path: "/api/v1/requests/:id/events", Scope: contract.ScopeRouteRead, Class: httpserver.ClassStream, Handle: a.handleEvents},
		{Method: post, Path: "/api/v1/requests/:id/cancel", Scope: contract.ScopeRouteSubmit, Class: httpserver.ClassCompletion, Handle: a.handleCancel},
		{Method: post, Path: "/api/v1/agents/:id/lease", Scope: contract.ScopeTasksWork, Body: optionalBody, Class: httpserver.ClassStream, Handle: a.handlePull},
		{Method: post, Path: "/api/v1/tasks/:id/heartbeat", Scope: contract.ScopeTasksWork, Authorize: a.authorizeTask, Class: httpserver.ClassCompletion, Handle: a.handleTaskHeartbeat},
		{Method: post, Path: "/api/v1/tasks/:id/result", Scope: contract.ScopeTasksWork, Authorize: a.authorizeTask, Body: jsonBody(maxResultBytes), Class: httpserver.ClassCompletion, Handle: a.handleResult},
		{Method: post, Path: "/api/v1/tasks/:id/progress", Scope: contract.ScopeTasksWork, Authorize: a.authorizeTask, Body: jsonBody(maxProgressBytes), Class: httpserver.ClassCompletion, Handle: a.handleProgress},

		// Unlimited, because operators must be able to observe a full server, and
		// agents that work for it must be able to verify their tokens.
		{Method: get, Path: "/healthz", Scope: httpserver.Public, Class: httpserver.ClassUnlimited, Handle: a.handleHealth},
		{Method: get, Path: "/readyz", Scope: httpserver.Public, Class: httpserver.ClassUnlimited, Handle: a.handleReady},
		{Method: get, Path: "/metrics", Scope: httpserver.Public, Class: httpserver.ClassUnlimited, Handle: a.handleMetrics},
		{Method: get, Path: "/openapi.json", Scope: httpserver.Public, Class: httpserver.ClassUnlimited, Handle: a.handleOpenAPI},
		{Method: get, Path: "/.well-known/jwks.json", Scope: httpserver.Public, Class: httpserver.ClassUnlimited, Handle: a.handleJWKS},
	}
}
