package app

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch/mcptarget"
	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/gateway/mcpclient"
	"github.com/caprouter/caprouter/gateway/pins"
	"github.com/caprouter/caprouter/internal/egress"
	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/internal/httpserver"
	"github.com/caprouter/caprouter/internal/mcphost"
	"github.com/caprouter/caprouter/internal/mcpserver"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/rest"
	"github.com/caprouter/caprouter/router"
)

// openMCP loads the registry file of MCP servers and the registered ones, and starts none of
// them.
func (c *serverCore) openMCP(ctx context.Context, opts *Options, redactor *redact.Redactor) (*mcphost.Host, error) {
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
		Journal:  c.newToolJournal(),
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
func (c *serverCore) newMCPAPIs(version string) []httpserver.API {
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

// newToolJournal returns the journal of calls of tools and of what leads to them.
func (c *serverCore) newToolJournal() *history.Journal {
	owner := ""
	if c.persistence.shared {
		owner = c.persistence.owner
	}
	return history.NewJournal(c.persistence.auditLog, owner, !c.cfg.Audit.Required, c.log, time.Now)
}

// taskInvoker calls tools for tasks of agents.
type taskInvoker struct{ core *serverCore }

// InvokeForTask implements mcptarget.Invoker. The caller is entitled to the agent, and needs
// no scope of the action.
func (i taskInvoker) InvokeForTask(ctx context.Context, call *mcptarget.Call) (*contract.ActionResult, error) {
	return i.core.mcp.Call(ctx, &mcphost.Call{
		Action: call.Action, Caller: call.Caller, RequestID: call.Task.RequestID, TraceID: call.Task.TraceID,
		Agent: call.Agent.ID, Restricted: len(call.Agent.MCPCapabilities) > 0,
	})
}

// noTools calls no tools.
type noTools struct{}

// InvokeForTask implements mcptarget.Invoker.
func (noTools) InvokeForTask(context.Context, *mcptarget.Call) (*contract.ActionResult, error) {
	return nil, &contract.ActionError{
		Code: contract.ActionUnavailable, Message: "MCP servers are connected by a running router only: use --url", Severity: contract.SeveritySevere,
	}
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
