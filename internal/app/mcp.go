package app

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/dispatch/mcptarget"
	"github.com/caprouter/caprouter/dispatch/orchestratortarget"
	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/gateway/mcpclient"
	"github.com/caprouter/caprouter/gateway/pins"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/egress"
	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/internal/httpserver"
	"github.com/caprouter/caprouter/internal/mcphost"
	"github.com/caprouter/caprouter/internal/mcpserver"
	"github.com/caprouter/caprouter/internal/orchestrations"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/rest"
	"github.com/caprouter/caprouter/orchestrator"
	"github.com/caprouter/caprouter/orchestrator/policy"
	"github.com/caprouter/caprouter/prompts"
	"github.com/caprouter/caprouter/router"
)

// openMCP loads the registry file of MCP servers and the registered ones, and starts none of
// them.
func (c *core) openMCP(ctx context.Context, opts *Options, redactor *redact.Redactor) (*mcphost.Host, error) {
	private, err := c.cfg.Dispatch.PrivatePrefixes()
	if err != nil {
		return nil, err
	}
	guard, err := pins.NewGuard(c.cfg.MCP.Pins, pins.NewTable(c.persistence.buckets.pins))
	if err != nil {
		return nil, err
	}
	var breaker resilience.BreakerConfig
	if !c.cfg.MCP.CircuitBreaker {
		breaker.Failures = math.MaxInt
	}
	path, optional := c.cfg.MCP.FilePath()
	host, err := mcphost.New(ctx, mcphost.Config{
		Path: path, Optional: optional, AllowPlainHTTP: c.cfg.Dispatch.AllowPlainHTTP,
		Bucket: c.persistence.buckets.mcpServers, Keys: c.persistence.contentKeys, Shared: c.persistence.shared,
		Gateway: gateway.Config{
			Client: mcpclient.Config{
				Supervisor: opts.Supervisor, Version: opts.Version,
			},
			Lookup: opts.EnvLookup(), CallTimeout: c.cfg.MCP.Timeout(), Breaker: breaker, Pins: guard,
			Capabilities: func(agentID string) ([]string, bool) { return mcpCapabilities(c.router.View(), agentID) },
		},
		Guard:    egress.NewGuard(append(private, c.cfg.LocalAddresses()...)...),
		IsAgent:  func(caller *contract.Caller) bool { return c.fleet.IsAgent(caller) },
		Journal:  newToolJournal(c),
		Redactor: redactor, Meter: c.telemetry.Metrics(), Logger: c.log,
	})
	if err != nil {
		return nil, fmt.Errorf("mcp: %w", err)
	}
	c.telemetry.Metrics().ObserveMCPServers(host.CountByStatus)
	return host, nil
}

// newMCPAPIs returns the interface for MCP clients, and the metadata of it if tokens of other
// issuers are accepted.
func newMCPAPIs(c *core, version string) []httpserver.API {
	cfg := mcpserver.Config{
		Version: version, PublicURL: c.publicURL, RouteLimit: c.access.classifyLimit,
		Tools: c.mcp, Changed: c.mcp.Changed, Contents: c.mcp, Router: c.router, Registry: c.snapshot, Meter: c.telemetry.Metrics(), Logger: c.log,
	}
	for i := range c.cfg.Auth.Issuers {
		cfg.AuthorizationServers = append(cfg.AuthorizationServers, c.cfg.Auth.Issuers[i].Issuer)
	}
	apis := []httpserver.API{mcpserver.New(cfg)}
	if metadata, ok := mcpserver.NewMetadata(cfg); ok {
		apis = append(apis, metadata)
	}
	return apis
}

// openRuns creates the service of orchestrations. It starts no run.
func openRuns(ctx context.Context, c *core, opts *Options, redactor *redact.Redactor) (*orchestrations.Service, error) {
	cfg, p := &c.cfg.Orchestrator, c.persistence
	rules, err := policy.Default()
	if cfg.PolicyFile != "" {
		rules, err = policy.Load(cfg.PolicyFile)
	}
	if err != nil {
		return nil, fmt.Errorf("orchestrator.policy_file: %w", err)
	}
	models, err := openRunModels(c, opts, redactor)
	if err != nil {
		return nil, err
	}
	metrics := c.telemetry.Metrics()
	service, err := orchestrations.New(ctx, orchestrations.Config{
		Bucket: p.buckets.runs, Quota: p.quotas.runs, Owner: p.owner, IsLive: p.members.IsLive, Messages: p.store,
		IdempotencyKeys: p.buckets.idempotencyKeys, IdempotencyQuota: p.quotas.idempotencyKeys,
		Servers: c.mcp, Tools: c.mcp, Journal: newToolJournal(c), Contents: p.auditLog, Redactor: redactor, Enforcer: rules,
		Models:     models,
		Planner:    contract.RunModel{Kind: cfg.Planner.Kind, Endpoint: cfg.Planner.Endpoint, Model: c.cfg.LLM.RunModelName(cfg.Planner.Kind, cfg.Planner.Model), PromptVersion: prompts.PlannerVersion},
		Verifier:   contract.RunModel{Kind: cfg.Verifier.Kind, Endpoint: cfg.Verifier.Endpoint, Model: c.cfg.LLM.RunModelName(cfg.Verifier.Kind, cfg.Verifier.Model), PromptVersion: prompts.VerifierVersion},
		Budgets:    orchestrator.Budgets{Steps: cfg.Budgets.Steps, Replans: cfg.Budgets.Replans, Retries: cfg.Budgets.Retries},
		Timeout:    time.Duration(cfg.Budgets.TimeoutMS) * time.Millisecond,
		GateTTL:    time.Duration(cfg.GateTTLS) * time.Second,
		BlockGates: cfg.OnGate == config.GateBlock, SelfApproval: cfg.ApproveOwn || c.cfg.Auth.Mode == config.AuthNone, Meter: metrics, Logger: c.log,
	})
	if err == nil {
		metrics.ObserveOpenRuns(service.CountOpen)
	}
	return service, err
}

// newToolJournal returns the journal of calls of tools and of what leads to them.
func newToolJournal(c *core) *history.Journal {
	owner := ""
	if c.persistence.shared {
		owner = c.persistence.owner
	}
	return history.NewJournal(c.persistence.auditLog, owner, !c.cfg.Audit.Required, c.log, time.Now)
}

// taskInvoker calls tools for tasks of agents.
type taskInvoker struct{ core *core }

// InvokeForTask implements mcptarget.Invoker. The caller is entitled to the agent, and needs
// no scope of the action.
func (i taskInvoker) InvokeForTask(ctx context.Context, call *mcptarget.Call) (*contract.ActionResult, error) {
	if i.core.mcp == nil {
		return nil, &contract.ActionError{
			Code: contract.ActionUnavailable, Message: "MCP servers are connected by a running router only: use --url", Severity: contract.SeveritySevere,
		}
	}
	return i.core.mcp.Call(ctx, &mcphost.Call{
		Action: call.Action, Caller: call.Caller, RequestID: call.Task.RequestID, TraceID: call.Task.TraceID,
		Agent: call.Agent.ID, Restricted: len(call.Agent.MCPCapabilities) > 0,
	})
}

// goalRunner pursues the goals of tasks of agents.
type goalRunner struct{ core *core }

// RunForTask implements orchestratortarget.Runner. The run has the id of the task, so that a
// task that is sent again finds its run.
func (g goalRunner) RunForTask(ctx context.Context, goal *contract.Goal, call dispatch.Call) (*contract.Orchestration, error) {
	if g.core.runs == nil {
		return nil, &contract.Error{Code: contract.CodeToolUnavailable, Message: "goals are pursued by a running router only: use --url"}
	}
	return g.core.runs.Complete(ctx, orchestrations.Submission{
		Goal: goal, Caller: call.Caller, ID: call.Task.TaskID, TraceID: call.Task.TraceID,
		Agent: call.Agent.ID, RequestID: call.Task.RequestID, Restricted: len(call.Agent.MCPCapabilities) > 0,
		MustResume: call.MustResume(),
	}, func(gate *contract.ApprovalGate) {
		grant := contract.TaskGrant{AgentID: call.Agent.ID, RequestID: call.Task.RequestID, TaskID: call.Task.TaskID}
		g.core.router.Callbacks().EmitProgress(grant, orchestratortarget.NewGateProgress(call.Task.TaskID, gate))
	})
}

// requestRuns are the orchestrations of requests. It implements history.RequestRuns.
type requestRuns struct{ core *core }

// CancelRuns implements history.RequestRuns.
func (r requestRuns) CancelRuns(ctx context.Context, requestID, by string) (bool, error) {
	return r.core.runs.Eraser().CancelRuns(ctx, requestID, by)
}

// EndedRuns implements history.RequestRuns.
func (r requestRuns) EndedRuns(ctx context.Context, requestID string) (history.EndedRuns, error) {
	return r.core.runs.Eraser().EndedRuns(ctx, requestID)
}

// DeleteRun implements history.RequestRuns.
func (r requestRuns) DeleteRun(ctx context.Context, id string) error {
	return r.core.runs.Eraser().DeleteRun(ctx, id)
}

// mcpCapabilities returns the mcp_capabilities of an agent in a view, false if there is no
// such agent.
func mcpCapabilities(view *router.View, agentID string) ([]string, bool) {
	if view == nil {
		return nil, false
	}
	agent := view.Fleet.Agent(agentID)
	if agent == nil {
		return nil, false
	}
	return agent.MCPCapabilities, true
}

// newMCPStatus reports the registry file of MCP servers, nil if there is none and no server
// is registered.
func newMCPStatus(host *mcphost.Host, publicText func(error) string) *rest.MCPStatus {
	if host == nil {
		return nil
	}
	file, servers := host.Status(), host.CountByStatus()
	total := 0
	for _, n := range servers {
		total += n
	}
	if file.Err == nil && total == 0 {
		return nil
	}
	s := &rest.MCPStatus{Servers: total, Connected: servers[gateway.StatusConnected], Stale: file.Err != nil}
	if file.Err != nil {
		s.Error = publicText(file.Err)
	}
	return s
}
