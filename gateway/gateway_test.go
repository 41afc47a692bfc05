//go:build unix

package gateway_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/gateway/mcpclient"
	"github.com/caprouter/caprouter/gateway/mcpfile"
	"github.com/caprouter/caprouter/internal/testkit"
)

func TestInvoke_Results(t *testing.T) {
	g := startGateway(t, gateway.Config{}, testServer("system", "sample", "system"), testServer("d", "difficult", "-"))
	tests := []struct {
		action, input string
		want          contract.ActionResult
	}{
		{"system.echo", `{"text":"olá"}`, contract.ActionResult{Type: "text", Content: json.RawMessage(`"olá"`), MIMEType: "text/plain"}},
		{"d.image", ``, contract.ActionResult{Type: "image", Content: json.RawMessage(`"cG5n"`), MIMEType: "image/png"}},
		{"d.several", `{}`, contract.ActionResult{Type: "tool_result", Content: json.RawMessage(`[{"type":"text","text":"a"},{"type":"text","text":"b"}]`)}},
		{"d.flood", `{}`, contract.ActionResult{Type: "text", Content: json.RawMessage(`"done"`), MIMEType: "text/plain"}},
	}
	for _, tt := range tests {
		got, err := g.Invoke(t.Context(), contract.Action{Action: tt.action, Input: json.RawMessage(tt.input)})
		if err != nil {
			t.Errorf("%s: %v", tt.action, err)
			continue
		}
		if want, _, _ := strings.Cut(tt.action, "."); got.Metadata.Provider != want {
			t.Errorf("%s: got provider %s, want %s", tt.action, got.Metadata.Provider, want)
		}
		if diff := cmp.Diff(&tt.want, got, cmpopts.IgnoreFields(contract.ActionResult{}, "Metadata")); diff != "" {
			t.Errorf("%s: result (-want +got):\n%s", tt.action, diff)
		}
	}

	info, err := g.Invoke(t.Context(), contract.Action{Action: "system.info"})
	if err != nil {
		t.Fatal(err)
	}
	if info.Type != "tool_result" || !strings.Contains(string(info.Structured), `"processors":`) {
		t.Errorf("got %s with %s, want a tool_result with structured content", info.Type, info.Structured)
	}
}

func TestInvoke_Errors(t *testing.T) {
	g := startGateway(t, gateway.Config{}, testServer("system", "sample", "system"), testServer("d", "difficult", "-"), testServer("weather", "sample", "weather"))
	tests := []struct {
		action, input string
		want          contract.ActionError
	}{
		{"system.ecko", `{}`, contract.ActionError{Code: "ACTION_NOT_FOUND", Message: `there is no action "system.ecko"`, Suggestion: "did you mean system.echo?", Severity: "WARNING"}},
		{"echo", `{}`, contract.ActionError{Code: "ACTION_NOT_FOUND", Message: `there is no action "echo"`, Suggestion: "did you mean system.echo?", Severity: "WARNING"}},
		{"none", `{}`, contract.ActionError{Code: "ACTION_NOT_FOUND", Message: `there is no action "none"`, Suggestion: "list the actions: caprouter mcp list, or GET /api/v1/mcp/registry", Severity: "WARNING"}},
		{"system.echo", `{"txt":1}`, contract.ActionError{
			Code: "INVALID_INPUT", Message: "the input of system.echo does not match its schema: missing property 'text'; additional properties 'txt' not allowed", Severity: "WARNING",
			Details: []contract.ErrorDetail{{Detail: "missing property 'text'"}, {Detail: "additional properties 'txt' not allowed"}},
			Missing: []string{"text"},
		}},
		{"weather.query", `{"ubicacion":" "}`, contract.ActionError{Code: "PLACE_NOT_FOUND", Message: "the tool reported an error", Suggestion: "name a place, for example Madrid", Severity: "WARNING"}},
		{"d.error", `{}`, contract.ActionError{Code: "INCIDENT_NOT_FOUND", Message: "the tool reported an error", Suggestion: "Verify the Fire ID", Severity: "WARNING"}},
		{"d.reserved code", `{}`, contract.ActionError{Code: "TOOL_ERROR", Message: "RATE_LIMITED: later", Severity: "SEVERE"}},
		{"d.long code", `{}`, contract.ActionError{Code: "TOOL_ERROR", Message: `{"error_code":"` + strings.Repeat("X", 65) + `","message":"later"}`, Severity: "WARNING"}},
		{"d.plain error", `{}`, contract.ActionError{Code: "TOOL_ERROR", Message: "no such fire", Severity: "WARNING"}},
		{"d.promise", `{}`, contract.ActionError{Code: "BAD_RESULT", Message: "the result of d.promise does not match its schema: /count got string, want integer", Severity: "SEVERE"}},
		{"d.untyped image", `{}`, contract.ActionError{Code: "BAD_RESULT", Message: "the result of d.untyped image is of type image without a mime_type", Severity: "SEVERE"}},
		{"d.outside", `{}`, contract.ActionError{Code: "SERVER_UNAVAILABLE", Message: "d.outside cannot be called: its input schema references to other documents are not resolved", Severity: "SEVERE"}},
	}
	for _, tt := range tests {
		_, err := g.Invoke(t.Context(), contract.Action{Action: tt.action, Input: json.RawMessage(tt.input)})
		got, ok := errors.AsType[*contract.ActionError](err)
		if !ok {
			t.Errorf("%s: got %v, want a *contract.ActionError", tt.action, err)
			continue
		}
		if diff := cmp.Diff(&tt.want, got); diff != "" {
			t.Errorf("%s: error (-want +got):\n%s", tt.action, diff)
		}
	}
}

// A server that exits, blocks, stops or sends too much is reported and recovers, and the other
// server answers meanwhile.
func TestInvoke_RecoversFromFailingServer(t *testing.T) {
	t.Parallel()
	long := 500
	tests := []struct {
		action string
		want   string // error code; "" = success
	}{
		{"d.exit", "OUTCOME_UNKNOWN"},
		{"d.exit-once", ""},
		{"d.hang", "OUTCOME_UNKNOWN"},
		{"d.hang-read", "TIMEOUT"},
		{"d.long", "OUTCOME_UNKNOWN"},
		{"d.stop", "OUTCOME_UNKNOWN"},
	}
	for _, tt := range tests {
		t.Run(tt.action, func(t *testing.T) {
			t.Parallel()
			failing := testServer("d", "difficult", "-")
			failing.Env = map[string]string{"EXIT_ONCE": filepath.Join(t.TempDir(), "exited")}
			if strings.HasPrefix(tt.action, "d.hang") || tt.action == "d.stop" {
				failing.Timeouts.Call = long
			}
			g := startGateway(t, gateway.Config{MinBackoff: time.Millisecond, ProbeInterval: 100 * time.Millisecond, ProbeTimeout: time.Second}, failing, testServer("system", "sample", "system"))
			_, err := g.Invoke(t.Context(), contract.Action{Action: tt.action})
			if got := codeOf(err); got != tt.want {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if _, err := g.Invoke(t.Context(), contract.Action{Action: "system.echo", Input: json.RawMessage(`{"text":"x"}`)}); err != nil {
				t.Errorf("other server: %v", err)
			}
			testkit.Eventually(t, "the server answers again", func() bool {
				_, err := g.Invoke(t.Context(), contract.Action{Action: "d.pid"})
				return err == nil
			})
		})
	}
}

func TestInvoke_ReconnectsAfterKill(t *testing.T) {
	g := startGateway(t, gateway.Config{MinBackoff: time.Millisecond}, testServer("d", "difficult", "-"))
	first := pidOf(t, g)
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "another process answers", func() bool {
		result, err := g.Invoke(t.Context(), contract.Action{Action: "d.pid"})
		return err == nil && string(result.Content) != `"`+strconv.Itoa(first)+`"`
	})
}

func TestGateway_ReportsServersThatFail(t *testing.T) {
	crash := testServer("crash", "crash", "-")
	crash.Env = map[string]string{"CRASH_TOKEN": "${CRASH_TOKEN}"}
	silent := testServer("silent", "silent", "-")
	silent.Timeouts.Connect = 300
	missing := mcpfile.Server{ID: "missing", Transport: mcpfile.Stdio, Command: []string{"no-such-program"}}
	blocked := testServer("blocked", "sample", "system")
	blocked.Env = map[string]string{"TOKEN": "${NOT_SET}"}
	disabled := testServer("disabled", "sample", "system")
	disabled.Disabled = true
	closed := mcpfile.Server{ID: "closed", Transport: mcpfile.Auto, URL: "http://" + testkit.RefusingAddress + "/mcp"}
	lookup := func(name string) (string, bool) { return "secret-value", name == "CRASH_TOKEN" }
	g := startGateway(t, gateway.Config{Lookup: lookup, MinBackoff: time.Hour}, blocked, closed, crash, disabled, missing, silent, testServer("banner", "banner", "system"))
	type state struct{ Status, State, Error string }
	got := map[string]state{}
	for _, s := range g.Servers() {
		got[s.Name] = state{s.Status, s.State, s.Error}
	}
	want := map[string]state{
		"banner":   {Status: "connected"},
		"blocked":  {"error", "blocked", "environment variable NOT_SET is not set"},
		"crash":    {"error", "", "the process exited with code 1; its error output ends with: the token <redacted> is wrong"},
		"disabled": {"disconnected", "disabled", "the server is disabled by its declaration"},
		"missing":  {"error", "", `cannot start the MCP server: exec: "no-such-program": executable file not found in $PATH`},
		"silent":   {"error", "", "the server did not answer in time"},
	}
	if s := got["closed"]; s.Status != "error" || !strings.Contains(s.Error, "connection refused") {
		t.Errorf("closed: got %+v, want connection refused", s)
	}
	delete(got, "closed")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("servers (-want +got):\n%s", diff)
	}
	_, err := g.Invoke(t.Context(), contract.Action{Action: "crash.tool"})
	if codeOf(err) != "SERVER_UNAVAILABLE" {
		t.Errorf("got %v, want SERVER_UNAVAILABLE", err)
	}
}

// Node.js prints the error, then a stack trace and its own version.
func TestGateway_ReportsErrorOfNodeServer(t *testing.T) {
	node := testServer("node", "crash", "-")
	node.Env = map[string]string{"CRASH_REST": "\n\nError [ERR_MODULE_NOT_FOUND]: Cannot find package 'x'\n    at resolve (node:internal/modules:873:9) {\n" +
		"  code: 'ERR_MODULE_NOT_FOUND'\n}\n\nNode.js v20.20.2"}
	g := startGateway(t, gateway.Config{MinBackoff: time.Hour}, node)
	want := "the process exited with code 1; its error output ends with: Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'x'"
	if s := g.Servers(); len(s) != 1 || s[0].Error != want {
		t.Errorf("got %+v, want error %q", s, want)
	}
}

func TestGateway_FollowsChangedTools(t *testing.T) {
	g := startGateway(t, gateway.Config{}, testServer("d", "difficult", "-"))
	if _, err := g.Invoke(t.Context(), contract.Action{Action: "d.add"}); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the added tool can be called", func() bool {
		_, err := g.Invoke(t.Context(), contract.Action{Action: "d.added"})
		return err == nil
	})
}

func TestGateway_SelectsTools(t *testing.T) {
	filtered := testServer("filtered", "difficult", "-")
	filtered.Tools = mcpfile.ToolFilter{Include: []string{"hang*", "pid"}, Exclude: []string{"hang-read"}}
	declared := testServer("declared", "sample", "system")
	declared.Actions = []mcpfile.Action{{Name: "echo", Description: "Repeats", InputSchema: json.RawMessage(`{"required":["text","extra"]}`)}}
	wrong := testServer("wrong", "sample", "system")
	wrong.Actions = []mcpfile.Action{{Name: "none"}}
	g := startGateway(t, gateway.Config{MinBackoff: time.Hour}, declared, filtered, wrong)
	var got []string
	for _, s := range g.Servers() {
		for _, tool := range s.Tools {
			got = append(got, tool.Action)
		}
	}
	if diff := cmp.Diff([]string{"declared.echo", "filtered.hang", "filtered.pid"}, got); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	_, err := g.Invoke(t.Context(), contract.Action{Action: "declared.echo", Input: json.RawMessage(`{"text":"x"}`)})
	if codeOf(err) != "INVALID_INPUT" {
		t.Errorf("got %v, want INVALID_INPUT by the declared schema", err)
	}
	if s := g.Servers()[2]; s.Error != `the server has no tool "none", which the file declares` {
		t.Errorf("got %q, want an error about the tool none", s.Error)
	}
}

// testServer returns a stdio server of this test binary.
func testServer(id string, args ...string) mcpfile.Server {
	return mcpfile.Server{ID: id, Transport: mcpfile.Stdio, Command: append([]string{os.Args[0]}, args...), Env: testkit.RaceSettings()}
}

// A pattern that matches no tool is probably misspelt: an excluded tool could be called.
func TestStart_LogsPatternsWithoutTool(t *testing.T) {
	log := &testkit.LogBuffer{}
	filtered := testServer("sample", "sample", "system")
	filtered.Tools = mcpfile.ToolFilter{Include: []string{"ech*", "wirte_*"}, Exclude: []string{"delet_file"}}
	startGateway(t, gateway.Config{Client: mcpclient.Config{Logger: log.Logger()}}, filtered)
	if got := log.String(); !strings.Contains(got, `wirte_*`) || !strings.Contains(got, `delet_file`) || strings.Contains(got, `ech*`) {
		t.Errorf("got log %q, want a warning about wirte_* and delet_file", got)
	}
}

func TestStart_LogsDelayInMilliseconds(t *testing.T) {
	log := &testkit.LogBuffer{}
	startGateway(t, gateway.Config{Client: mcpclient.Config{Logger: log.Logger()}}, mcpfile.Server{ID: "a", Transport: mcpfile.SSE, URL: "http://127.0.0.1:1/"})
	pattern := regexp.MustCompile(`retry_in_ms"?[:=][0-9]{1,6}\D`)
	testkit.Eventually(t, "the delay is logged", func() bool { return pattern.MatchString(log.String()) })
}

// startGateway starts a gateway and waits until each server is connected or has failed.
func startGateway(t *testing.T, cfg gateway.Config, servers ...mcpfile.Server) *gateway.Gateway {
	t.Helper()
	cfg.Client = mcpclient.Config{Supervisor: []string{os.Args[0], "supervise"}, Version: "test", Logger: cfg.Client.Logger}
	g, err := gateway.Start(t.Context(), servers, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		closed := make(chan error, 1)
		go func() { closed <- g.Close() }()
		if err := testkit.Receive(t, closed); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	ready := make(chan struct{})
	go func() {
		defer close(ready)
		g.WaitReady(t.Context())
	}()
	testkit.WaitClosed(t, ready)
	return g
}

func pidOf(t *testing.T, g *gateway.Gateway) int {
	t.Helper()
	result, err := g.Invoke(t.Context(), contract.Action{Action: "d.pid"})
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.Trim(string(result.Content), `"`))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func codeOf(err error) string {
	if e, ok := errors.AsType[*contract.ActionError](err); ok {
		return e.Code
	}
	if err != nil {
		return err.Error()
	}
	return ""
}
