package rest

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/internal/httpserver"
	"github.com/caprouter/caprouter/internal/mcphost"
)

// fakeTools implements Tools, MCPServers and MCPRegistrations with one server, weather. Its zero value answers every
// call.
type fakeTools struct {
	err error // of each call
	got []*mcphost.Call
}

func (f *fakeTools) Call(_ context.Context, call *mcphost.Call) (*contract.ActionResult, error) {
	f.got = append(f.got, call)
	if f.err != nil {
		return nil, f.err
	}
	if call.OnProgress != nil {
		call.OnProgress(contract.ActionProgress{Progress: 1, Total: 2, Message: "half"})
	}
	return &contract.ActionResult{
		Type: contract.ActionText, Content: json.RawMessage(`"rain"`), MIMEType: "text/plain",
		Metadata: contract.ActionMetadata{Provider: "weather", LatencyMS: 2},
	}, nil
}

func (f *fakeTools) Servers() []gateway.ServerInfo {
	return []gateway.ServerInfo{{
		Name: "weather", Origin: "file", Transport: "stdio", Status: gateway.StatusConnected, ToolCount: 1,
		Tools: []gateway.Tool{{Action: "weather.query", Description: "forecast", Parameters: json.RawMessage(`{"type":"object"}`)}},
	}}
}

func (f *fakeTools) WaitServer(_ context.Context, name string) (gateway.ServerInfo, bool) {
	return f.Servers()[0], name == "weather"
}

func (f *fakeTools) Register(_ context.Context, r mcphost.Registration, _ *contract.Caller) (gateway.ServerInfo, error) {
	if r.Name == "weather" {
		return gateway.ServerInfo{}, &contract.Error{Code: contract.CodeConflict, Message: "m"}
	}
	return gateway.ServerInfo{Name: r.Name, Origin: "registration", Transport: "auto", Status: gateway.StatusDisconnected}, nil
}

func (f *fakeTools) Replace(ctx context.Context, r mcphost.Registration, caller *contract.Caller) (info gateway.ServerInfo, created bool, err error) {
	info, err = f.Register(ctx, r, caller)
	return info, r.Name == "new", err
}

func (f *fakeTools) Remove(_ context.Context, name string, _ *contract.Caller) error {
	if name != "weather" {
		return errNoMCPServer
	}
	return nil
}

func (f *fakeTools) PendingTools() []gateway.PendingTool {
	return []gateway.PendingTool{{Action: "weather.query", Server: "weather", Hash: "5f2b6c7d8e90", Diff: []string{"-a", "+b"}}}
}

func (f *fakeTools) ApproveTool(_ context.Context, _, hash string, _ *contract.Caller) error {
	if hash != "5f2b6c7d8e90" {
		return &contract.Error{Code: contract.CodePreconditionFailed, Message: "m"}
	}
	return nil
}

func (f *fakeTools) Bind(agentID, capability string) (gateway.Binding, error) {
	if capability != "repo:read" {
		return gateway.Binding{}, &contract.ActionError{Code: contract.ActionForbidden, Message: "m", Severity: contract.SeverityWarning}
	}
	return gateway.Binding{AgentID: agentID, Capability: capability, State: contract.BindingBound, Server: "weather", Tools: f.Servers()[0].Tools}, nil
}

func (f *fakeTools) Bindings() []gateway.Binding { return nil }

func (f *fakeTools) IsAgent(*contract.Caller) bool { return false }

func (f *fakeTools) Subscribe(buffer int) *gateway.Subscription {
	g, err := gateway.Start(context.Background(), nil, gateway.Config{})
	if err != nil {
		panic(err)
	}
	return g.Subscribe(buffer)
}

// Every error of a call has its status, its code, and the members of ActionError.
func TestHandleInvoke_MapsErrors(t *testing.T) {
	failed := func(code string) error {
		return &contract.ActionError{
			Code: code, Message: "m", Suggestion: "s", Severity: contract.SeveritySevere, Details: []contract.ErrorDetail{{Pointer: "/a", Detail: "d"}},
		}
	}
	for _, c := range []struct {
		err    error
		status int
		code   contract.Code
	}{
		{failed(contract.ActionNotFound), 404, contract.CodeNotFound},
		{failed(contract.ActionAmbiguous), 409, contract.CodeConflict},
		{failed(contract.ActionInvalidInput), 422, contract.CodeInvalidRequest},
		{failed(contract.ActionUnavailable), 503, contract.CodeToolUnavailable},
		{failed(contract.ActionTimeout), 504, contract.CodeToolTimeout},
		{failed(contract.ActionOutcomeUnknown), 504, contract.CodeToolTimeout},
		{failed(contract.ActionFailed), 502, contract.CodeToolFailed},
		{failed(contract.ActionBadResult), 502, contract.CodeToolFailed},
		{failed("PLACE_NOT_FOUND"), 502, contract.CodeToolFailed},
		{failed(contract.ActionForbidden), 403, contract.CodeForbidden},
		{failed(contract.ActionRateLimited), 429, contract.CodeRateLimited},
		{failed(contract.ActionQuarantined), 409, contract.CodeConflict},
		{failed(contract.ActionNotRecorded), 503, contract.CodeAuditUnavailable},
	} {
		t.Run(c.err.Error(), func(t *testing.T) {
			srv := startServer(t, httpserver.Config{}, &fakeBackend{tools: &fakeTools{err: c.err}})
			for _, stream := range []string{"false", "true"} {
				got := srv.post(t, "/api/v1/mcp/invoke", `{"action":"weather.query","response":{"stream":`+stream+`}}`)
				var p ToolProblem
				if err := json.Unmarshal(got.body, &p); err != nil {
					t.Fatal(err)
				}
				if got.StatusCode != c.status || p.Code != c.code {
					t.Errorf("got %d %s, want %d %s", got.StatusCode, p.Code, c.status, c.code)
				}
				action, ok := c.err.(*contract.ActionError)
				if ok && (p.ErrorCode != action.Code || p.Suggestion != "s" || p.Severity != "SEVERE" || p.Detail != "m") {
					t.Errorf("got %+v, want the members of %+v", p, action)
				}
				if c.code == contract.CodeInvalidRequest && (len(p.Errors) != 1 || p.Errors[0].Pointer != "/input/a") {
					t.Errorf("got errors %+v, want the position in the input", p.Errors)
				}
			}
		})
	}
}

func TestHandleInvoke_NamesMissingScope(t *testing.T) {
	caller := &contract.Caller{Scopes: []string{"mcp:read"}}
	w, r := httptest.NewRecorder(), localRequest("POST", "/api/v1/mcp/invoke", `{"action":"weather.query"}`)
	newServer(t, httpserver.Config{Auth: staticAuth{caller: caller}}, &fakeBackend{tools: &fakeTools{}}).ServeHTTP(w, r)
	var p ToolProblem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Fatal(err)
	}
	if w.Code != 403 || p.ErrorCode != contract.ActionForbidden || strings.Contains(p.Detail, "{") || !strings.Contains(p.Suggestion, `"mcp:invoke:"`) || p.Severity == "" {
		t.Errorf("got %d %s, want FORBIDDEN with the prefix of the scopes", w.Code, w.Body)
	}
}

// The action may start with the name of the server, as in other operations.
func TestHandleMCPTest_AcceptsFullName(t *testing.T) {
	tools := &fakeTools{}
	srv := startServer(t, httpserver.Config{}, &fakeBackend{tools: tools})
	for _, action := range []string{"query", "weather.query"} {
		tools.got = nil
		got := srv.post(t, "/api/v1/mcp/test", `{"server":"weather","action":"`+action+`"}`)
		if got.StatusCode != http.StatusOK || len(tools.got) != 1 || tools.got[0].Action.Action != "weather.query" {
			t.Errorf("%s: got %d %s and calls %+v, want one of weather.query", action, got.StatusCode, got.body, tools.got)
		}
	}
}

func TestHandleInvoke_StreamsResult(t *testing.T) {
	tools := &fakeTools{}
	srv := startServer(t, httpserver.Config{}, &fakeBackend{tools: tools})
	got := srv.post(t, "/api/v1/mcp/invoke", `{"action":"weather.query","input":{"ubicacion":"Lugo"},"response":{"format":"auto","stream":true}}`)
	body := string(got.body)
	if !strings.HasPrefix(got.Header.Get("Content-Type"), "text/event-stream") || !strings.Contains(body, "event: progress\ndata: {\"progress\":1") || !strings.Contains(body, "event: result\ndata: {\"type\":\"text\"") || !strings.Contains(body, `"stream":true`) {
		t.Errorf("got %s %s, want the events progress and result with the result", got.Header.Get("Content-Type"), body)
	}
	call := tools.got[0]
	if call.RequestID != got.Header.Get("X-Request-Id") || call.Caller == nil || string(call.Action.Input) != `{"ubicacion":"Lugo"}` {
		t.Errorf("got call %+v, want the id of the request, its caller and the input", call)
	}
}
