package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway/mcpfile"
	"github.com/caprouter/caprouter/gateway/redaction"
	"github.com/caprouter/caprouter/gateway/schema"
	"github.com/caprouter/caprouter/internal/strictyaml"
	"github.com/caprouter/caprouter/internal/telemetry"
)

// Invocation names the caller and the agent on whose behalf an action is called.
type Invocation struct {
	Caller  *contract.Caller // required
	AgentID string           // the agent whose capabilities permit the call; "" = none
	// Entitled skips the check of scopes: the call is the task of an agent that the caller
	// may use.
	Entitled bool
	// OnProgress is called for the progress that the tool reports, one at a time. Nil =
	// the tool need not report it.
	OnProgress func(contract.ActionProgress)
}

// toolCall is one call, the same in all attempts.
type toolCall struct {
	method     string // of MCP
	action     *contract.Action
	by         *Invocation
	input      json.RawMessage
	onProgress func(contract.ActionProgress) // nil = none
	record     *CallRecord
	span       telemetry.Span
}

// methodCall is the method of MCP by which tools are called.
const methodCall = "tools/call"

// reply is what a server answers: a result, or an error of the tool.
type reply struct {
	result contract.ActionResult
	failed *contract.ActionError
}

// Invoke calls a tool on behalf of this process and returns its result. Errors are
// *contract.ActionError, or that of the context if it was cancelled.
func (g *Gateway) Invoke(ctx context.Context, action contract.Action) (*contract.ActionResult, error) {
	return g.InvokeFor(ctx, action, Invocation{Caller: contract.LocalCaller()})
}

// InvokeFor calls a tool on behalf of a caller; see [Gateway.Invoke].
func (g *Gateway) InvokeFor(ctx context.Context, action contract.Action, by Invocation) (*contract.ActionResult, error) {
	return g.invoke(ctx, methodCall, &action, &by, func(ctx context.Context) (*server, *tool, error) { return g.resolve(ctx, action.Action) })
}

// invoke makes a call of what resolve returns, whose server has counted the call.
func (g *Gateway) invoke(
	ctx context.Context, method string, action *contract.Action, by *Invocation, resolve func(context.Context) (*server, *tool, error),
) (*contract.ActionResult, error) {
	ctx, span := telemetry.StartClientSpan(ctx, method)
	defer span.End()
	c := &toolCall{method: method, action: action, by: by, input: action.Input, span: span, record: &CallRecord{
		Caller: by.Caller, AgentID: by.AgentID, Context: action.Context, Action: action.Action, Start: time.Now(),
	}}
	if len(c.input) == 0 {
		c.input = json.RawMessage("{}")
	}
	if err := checkCaller(action, by); err != nil {
		return nil, g.endCall(ctx, c, nil, nil, err)
	}
	s, t, err := resolve(ctx)
	if err != nil {
		return nil, g.endCall(ctx, c, nil, nil, err)
	}
	defer s.calls.release()
	c.record.Server, c.record.Tool = s.declared.ID, t.Name
	result, err := s.callTool(ctx, t, c)
	if failure, ok := errors.AsType[*contract.ActionError](err); ok {
		err = s.policy.redactError(redaction.Response, failure)
	}
	if err != nil {
		return nil, g.endCall(ctx, c, s, nil, err)
	}
	_ = g.endCall(ctx, c, s, result, nil)
	return s.policy.redactResult(redaction.Response, result), nil
}

// endCall records the end of a call, and returns its error.
func (g *Gateway) endCall(ctx context.Context, c *toolCall, s *server, result *contract.ActionResult, err error) error {
	r := c.record
	r.Latency = time.Since(r.Start)
	failure, isFailure := errors.AsType[*contract.ActionError](err)
	switch {
	case err == nil:
		r.Outcome, r.Result = OutcomeOK, s.policy.redactResult(redaction.Log, s.policy.redactResult(redaction.Response, result))
	case isFailure:
		r.Outcome, r.Err = failure.Code, failure
		if s != nil {
			r.Err = s.policy.redactError(redaction.Log, failure)
		}
	default:
		r.Outcome = OutcomeCancelled
	}
	g.cfg.Recorder.EndCall(context.WithoutCancel(ctx), r)
	c.describeSpan(s)
	return err
}

// describeSpan sets the attributes of the span of a call that has ended.
func (c *toolCall) describeSpan(s *server) {
	c.span.SetString(telemetry.AttrMCPMethod, c.method)
	if c.method == methodCall {
		c.span.SetString(telemetry.AttrGenAIOp, "execute_tool")
		c.span.SetString(telemetry.AttrGenAITool, c.record.Tool)
	}
	c.span.SetString(telemetry.AttrServer, c.record.Server)
	c.span.SetInt(telemetry.AttrAttempts, c.record.Attempts)
	if s != nil {
		c.span.SetString(telemetry.AttrNetTransport, s.networkTransport())
	}
	outcome := telemetry.ToolOutcome(c.record.Outcome)
	c.span.SetString(telemetry.AttrOutcome, outcome)
	if c.record.Outcome != OutcomeOK {
		c.span.Fail(outcome)
	}
}

// networkTransport returns the transport as the conventions of OpenTelemetry name it.
func (s *server) networkTransport() string {
	if s.declared.Transport == mcpfile.Stdio {
		return "pipe"
	}
	return "tcp"
}

// checkCaller checks that there is a caller, and its scope.
func checkCaller(action *contract.Action, by *Invocation) error {
	if by.Caller == nil {
		return severeError(contract.ActionForbidden, fmt.Sprintf("the call of %q has no caller", action.Action), "")
	}
	if !by.Entitled && !by.Caller.MayInvoke(action.Action) {
		return warningError(contract.ActionForbidden, fmt.Sprintf("the caller may not call %q", action.Action),
			fmt.Sprintf("the token needs the scope %q", contract.ScopeInvokePrefix+action.Action))
	}
	return nil
}

// callTool makes the checks before a call, the call, and the checks after it.
func (s *server) callTool(ctx context.Context, t *tool, c *toolCall) (*contract.ActionResult, error) {
	if c.by.AgentID != "" {
		capabilities, ok := s.cfg.Capabilities(c.by.AgentID)
		if !ok || !Permits(capabilities, s.declared.Capabilities) {
			return nil, s.forbiddenToAgent(c.by.AgentID, t)
		}
	}
	if t.Error != "" {
		return nil, severeError(contract.ActionUnavailable, fmt.Sprintf("%s cannot be called: %s", t.Action, t.Error), "")
	}
	t, err := s.checkQuarantine(ctx, t)
	if err != nil {
		return nil, err
	}
	if err := s.policy.countCall(t, c.by); err != nil {
		return nil, err
	}
	if err := checkInput(t, c.input); err != nil {
		return nil, err
	}
	if t.method == methodCall {
		c.input = s.policy.redactInput(redaction.Request, c.input)
	} else {
		c.input = s.redactParams(c.input)
	}
	c.record.Input = s.policy.redactInput(redaction.Log, c.input)
	if c.by.OnProgress != nil {
		c.onProgress = func(p contract.ActionProgress) { c.by.OnProgress(s.policy.redactProgress(p)) }
	}
	if err := s.cfg.Recorder.BeginCall(ctx, c.record); err != nil {
		s.log.Error("a call was not made because it cannot be recorded", "tool", t.Action, "error", err)
		return nil, severeError(contract.ActionNotRecorded, fmt.Sprintf("%s was not called, because the call cannot be recorded", t.Action), "call it again later")
	}
	start := time.Now()
	r, err := s.callWithRetries(ctx, t, c)
	if err != nil {
		return nil, err
	}
	if r.failed != nil {
		return nil, r.failed
	}
	r.result.Metadata = contract.ActionMetadata{Provider: s.declared.ID, LatencyMS: time.Since(start).Milliseconds()}
	if err := checkResult(t, &r.result); err != nil {
		return nil, err
	}
	return &r.result, nil
}

// forbiddenToAgent returns the error for an agent that declares no capability of the server.
func (s *server) forbiddenToAgent(agentID string, t *tool) error {
	return warningError(contract.ActionForbidden, fmt.Sprintf("agent %q may not call %s", agentID, t.Action), s.suggestCapability())
}

// suggestCapability returns what an agent that declares no capability of the server needs.
func (s *server) suggestCapability() string {
	if provided := s.declared.Capabilities; len(provided) > 0 {
		return fmt.Sprintf("the registry file must declare a capability of server %q in mcp_capabilities of the agent, such as %q", s.declared.ID, provided[0])
	}
	return fmt.Sprintf("server %q provides no capability: declare some in its entry, and one of them in mcp_capabilities of the agent", s.declared.ID)
}

func severeError(code, message, suggestion string) *contract.ActionError {
	return &contract.ActionError{Code: code, Message: message, Suggestion: suggestion, Severity: contract.SeveritySevere}
}

func warningError(code, message, suggestion string) *contract.ActionError {
	return &contract.ActionError{Code: code, Message: message, Suggestion: suggestion, Severity: contract.SeverityWarning}
}

// resolve finds the tool of an action and counts a call of its server. Names of servers
// and tools may contain dots, so that each dot can be the one between them.
func (g *Gateway) resolve(ctx context.Context, action string) (*server, *tool, error) {
	for {
		s, t, err := g.resolveOnce(ctx, action)
		if err != nil || s.calls.acquire() {
			return s, t, err
		}
		// The server was removed in the meantime.
	}
}

func (g *Gateway) resolveOnce(ctx context.Context, action string) (*server, *tool, error) {
	var (
		found  []*server
		match  *tool
		down   *server
		reason error
	)
	for _, s := range *g.servers.Load() {
		name, ok := strings.CutPrefix(action, s.declared.ID+".")
		if !ok {
			continue
		}
		t, err := s.currentTool(ctx, name)
		switch {
		case err != nil:
			down, reason = s, err
		case t != nil:
			found, match = append(found, s), t
		}
	}
	switch {
	case len(found) == 1:
		return found[0], match, nil
	case len(found) > 1:
		return nil, nil, severeError(contract.ActionAmbiguous, fmt.Sprintf("%s is a tool of the servers %q and %q", action, found[0].declared.ID, found[1].declared.ID), "rename one of the servers")
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled):
		return nil, nil, ctx.Err()
	case down != nil:
		return nil, nil, severeError(contract.ActionUnavailable, fmt.Sprintf("server %q is not connected", down.declared.ID), reason.Error())
	}
	suggestion := "list the actions: caprouter mcp list, or GET /api/v1/mcp/registry"
	if near := nearestAction(action, g.actionNames()); near != "" {
		suggestion = fmt.Sprintf("did you mean %s?", near)
	}
	return nil, nil, warningError(contract.ActionNotFound, fmt.Sprintf("there is no action %q", action), suggestion)
}

// nearestAction returns the action with a similar name, or else the only one of a tool with
// this name; "" if there is none.
func nearestAction(action string, names []string) string {
	if near := strictyaml.Nearest(action, names); near != "" {
		return near
	}
	ofTool := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.HasSuffix(name, "."+action) })
	if len(ofTool) == 1 {
		return ofTool[0]
	}
	return ""
}

func checkInput(t *tool, input json.RawMessage) error {
	if t.input == nil {
		return nil
	}
	err := t.input.Validate(input)
	if err == nil {
		return nil
	}
	out := warningError(contract.ActionInvalidInput, fmt.Sprintf("the input of %s does not match its schema: %v", t.Action, err), "")
	if invalid, ok := errors.AsType[*schema.InvalidError](err); ok {
		out.Details, out.Missing = invalid.Details, invalid.Missing
	}
	return out
}
