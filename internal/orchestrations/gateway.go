package orchestrations

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/internal/mcphost"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/orchestrator"
)

// MCPServers are the servers of the gateway. *mcphost.Host implements it.
type MCPServers interface {
	Servers() []gateway.ServerInfo
	Get(name string) (gateway.ServerInfo, bool)
	WaitServer(ctx context.Context, name string) (info gateway.ServerInfo, ok bool)
}

// Gateway is the orchestrator.ServerRegistry of the servers of the gateway.
type Gateway struct{ Servers MCPServers }

// Bounds of the wait for servers that are being connected.
const (
	connectTimeout = 10 * time.Second
	maxConnecting  = 16
)

// ListServers implements orchestrator.ServerRegistry. It connects to the servers that are
// not connected yet, and leaves out those that fail.
func (g Gateway) ListServers(ctx context.Context) ([]orchestrator.Server, error) {
	infos := g.Servers.Servers()
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	run.ForEach(ctx, maxConnecting, len(infos), func(ctx context.Context, i int) {
		if s := infos[i]; s.Config.Enabled && (s.Status == gateway.StatusDisconnected || s.Status == gateway.StatusConnecting) {
			infos[i], _ = g.Servers.WaitServer(ctx, s.Name)
		}
	})
	var list []orchestrator.Server
	for i := range infos {
		s := &infos[i]
		needsAuth := s.State == gateway.StateAuthRequired || s.State == gateway.StateBlocked
		if s.Name == "" || s.Status != gateway.StatusConnected && !needsAuth {
			continue
		}
		out := orchestrator.Server{Name: s.Name, Transport: s.Transport, NeedsAuth: needsAuth}
		if u, err := url.Parse(s.Config.URL); err == nil {
			out.Host = u.Host
		}
		list = append(list, out)
	}
	return list, nil
}

// ListTools implements orchestrator.ServerRegistry.
func (g Gateway) ListTools(_ context.Context, server string) ([]string, error) {
	info, ok := g.Servers.Get(server)
	if !ok {
		return nil, fmt.Errorf("server %q: %w", server, orchestrator.ErrNotFound)
	}
	names := make([]string, len(info.Tools))
	for i := range info.Tools {
		names[i] = strings.TrimPrefix(info.Tools[i].Action, server+".")
	}
	return names, nil
}

// GetToolSchema implements orchestrator.ServerRegistry.
func (g Gateway) GetToolSchema(_ context.Context, server, tool string) (*orchestrator.Tool, error) {
	info, ok := g.Servers.Get(server)
	for i := range info.Tools {
		t := &info.Tools[i]
		if !ok || t.Action != server+"."+tool {
			continue
		}
		out := &orchestrator.Tool{
			Server: server, Name: tool, Description: t.Description, InputSchema: t.Parameters, OutputSchema: t.Returns,
			Annotations: t.Annotations, Repeatable: t.Repeatable, Error: t.Error,
		}
		if t.State == gateway.ToolQuarantined {
			out.Error = "its definition waits for an approval"
		}
		return out, nil
	}
	return nil, fmt.Errorf("%s.%s: %w", server, tool, orchestrator.ErrNotFound)
}

// ToolCaller calls tools. *mcphost.Host implements it.
type ToolCaller interface {
	Call(ctx context.Context, call *mcphost.Call) (*contract.ActionResult, error)
}

// toolInvoker is the orchestrator.Invoker of the gateway.
type toolInvoker struct{ tools ToolCaller }

// Invoke implements orchestrator.Invoker.
func (i toolInvoker) Invoke(ctx context.Context, c *orchestrator.Call) (*contract.ActionResult, error) {
	call := &mcphost.Call{
		Action: contract.Action{Action: c.Action, Input: c.Input, Context: contract.ActionContext{TraceID: c.TraceID}},
		Caller: c.Caller, RequestID: c.RunID, TraceID: c.TraceID, Agent: c.Agent, Restricted: c.Restricted,
	}
	if c.RequestID != "" {
		call.RequestID, call.OrchestrationID = c.RequestID, c.RunID
	}
	return i.tools.Call(ctx, call)
}

// Journal writes to the audit log. *history.Journal implements it.
type Journal interface {
	RecordRunEvent(ctx context.Context, ev *history.RunEvent, masking *redact.Masking) error
}

// auditor is the orchestrator.Auditor of the audit log.
type auditor struct {
	journal  Journal
	redactor *redact.Redactor
}

// RecordRunEvent implements orchestrator.Auditor.
func (a auditor) RecordRunEvent(ctx context.Context, rec *orchestrator.Record, ev contract.RunEvent) error {
	return a.journal.RecordRunEvent(ctx, &history.RunEvent{
		RunID: rec.ID, RequestID: rec.RequestID, TraceID: rec.TraceID, Caller: &rec.Caller, Agent: rec.Agent, Status: requestStatus(rec), Event: ev,
	}, a.redactor.StartMasking())
}

// requestStatus returns the status of a run as that of a request.
func requestStatus(rec *orchestrator.Record) contract.Status {
	if rec.Reason == contract.ReasonCancelled {
		return contract.StatusCancelled
	}
	switch rec.Status() {
	case contract.OrchestrationDone:
		return contract.StatusCompleted
	case contract.OrchestrationFailed, contract.OrchestrationBlocked, contract.OrchestrationDegraded:
		return contract.StatusFailed
	case contract.OrchestrationRunning, contract.OrchestrationWaiting:
	}
	return contract.StatusRunning
}
