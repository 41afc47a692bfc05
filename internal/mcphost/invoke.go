package mcphost

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/internal/redact"
)

// Journal records calls of tools in the audit log. *history.Journal implements it.
type Journal interface {
	RecordToolCall(ctx context.Context, call *history.ToolCall, masking *redact.Masking) error
}

// Meter counts calls of tools and loads of the file. *telemetry.Metrics implements it.
type Meter interface {
	RecordToolCall(server, tool, outcome string, took time.Duration)
	RecordMCPRegistryLoad(ok bool)
}

// Call is a call of a tool on behalf of a caller.
type Call struct {
	Action    contract.Action
	Caller    *contract.Caller
	RequestID string // of the request that it is a part of, or of its own
	TraceID   string
	// OrchestrationID is the id of the orchestration that the call is a step of, if that is
	// not RequestID.
	OrchestrationID string
	// Agent is the agent of the registry whose task the call is. "" = the caller calls the
	// tool, and needs the scope of the action. If the caller is an agent itself, the server
	// must provide one of its mcp_capabilities.
	Agent string
	// Restricted means that the agent declares mcp_capabilities: the server must provide one
	// of them.
	Restricted bool
	OnProgress func(contract.ActionProgress) // nil = none
}

// callKey is the key of the *Call in the context of a call.
type callKey struct{}

// Call calls a tool and records the call. Errors are *contract.ActionError, or that of the
// context if it was cancelled.
func (h *Host) Call(ctx context.Context, call *Call) (*contract.ActionResult, error) {
	result, err := h.InvokeFor(context.WithValue(ctx, callKey{}, call), call.Action, h.newInvocation(call))
	if failed, ok := errors.AsType[*contract.ActionError](err); ok && failed.Code == contract.ActionNotFound && !call.Caller.HasScope(contract.ScopeMCPRead) {
		hidden := *failed // the suggestion names another tool
		hidden.Suggestion = ""
		return nil, &hidden
	}
	return result, err
}

// Request sends a request other than the call of a tool to a server on behalf of a caller, and
// records it like a call. The action of the call is not used. See [gateway.Gateway.Request].
func (h *Host) Request(ctx context.Context, call *Call, server, method string, params json.RawMessage) (json.RawMessage, error) {
	return h.Gateway.Request(context.WithValue(ctx, callKey{}, call), server, method, params, h.newInvocation(call))
}

func (h *Host) newInvocation(call *Call) gateway.Invocation {
	by := gateway.Invocation{Caller: call.Caller, Entitled: call.Agent != "", OnProgress: call.OnProgress}
	switch {
	case call.Restricted:
		by.AgentID = call.Agent
	case call.Agent == "" && h.IsAgent(call.Caller):
		by.AgentID = call.Caller.Subject
	}
	return by
}

// IsAgent reports whether the caller is an agent of the registry.
func (h *Host) IsAgent(caller *contract.Caller) bool { return h.cfg.IsAgent(caller) }

// MayUseServer reports whether the caller may call tools of the server. It needs the scopes
// of their actions as well.
func (h *Host) MayUseServer(caller *contract.Caller, s *gateway.ServerInfo) bool {
	return !h.IsAgent(caller) || h.PermitsAgent(caller.Subject, s)
}

// callRecorder records calls. It implements gateway.Recorder.
type callRecorder struct {
	journal  Journal
	meter    Meter
	redactor *redact.Redactor
	log      *slog.Logger
}

// BeginCall records a call before it is made. The decision about a task is recorded
// already.
func (r *callRecorder) BeginCall(ctx context.Context, c *gateway.CallRecord) error {
	if call := callOf(ctx); call != nil && call.Agent == "" {
		return r.journal.RecordToolCall(ctx, newToolCall(call, c), r.redactor.StartMasking())
	}
	return nil
}

// recordTimeout bounds the time to record a call that has ended.
const recordTimeout = 5 * time.Second

// EndCall records and counts a call of a tool that exists.
func (r *callRecorder) EndCall(ctx context.Context, c *gateway.CallRecord) {
	if c.Server == "" {
		return
	}
	r.meter.RecordToolCall(c.Server, c.Tool, c.Outcome, c.Latency)
	call := callOf(ctx)
	if call == nil {
		return
	}
	if c.Err != nil && c.Err.Severity == contract.SeveritySevere {
		r.log.LogAttrs(ctx, slog.LevelWarn, "tool call failed", slog.String("server", c.Server), slog.String("tool", c.Tool),
			slog.String("code", c.Outcome), slog.Int("attempts", c.Attempts), slog.String("request_id", call.RequestID))
	}
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	ended := newToolCall(call, c)
	ended.Status = contract.StatusCompleted
	switch {
	case c.Outcome == gateway.OutcomeCancelled:
		ended.Status = contract.StatusCancelled
	case c.Err != nil:
		ended.Status = contract.StatusFailed
	}
	_ = r.journal.RecordToolCall(ctx, ended, r.redactor.StartMasking()) // the journal has logged the error
}

func callOf(ctx context.Context) *Call {
	call, _ := ctx.Value(callKey{}).(*Call)
	return call
}

func newToolCall(call *Call, c *gateway.CallRecord) *history.ToolCall {
	return &history.ToolCall{
		RequestID: call.RequestID, OrchestrationID: call.OrchestrationID, TraceID: call.TraceID, Caller: call.Caller, Agent: call.Agent,
		Action: c.Server + "." + c.Tool, Status: contract.StatusRunning, Input: c.Input, Result: c.Result, Err: c.Err,
	}
}
