//go:build unix

package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/gateway/mcpfile"
	"github.com/caprouter/caprouter/gateway/redaction"
	"github.com/caprouter/caprouter/internal/egress"
	"github.com/caprouter/caprouter/internal/testkit"
)

// The servers connect lazily, so that only these operations change a status.
func TestGateway_RegistryOperations(t *testing.T) {
	g := startGateway(t, gateway.Config{})
	local := mcpfile.Server{ID: "memory", Transport: mcpfile.Stdio, Command: []string{"npx", "mcp-memory"}, Start: mcpfile.Lazy}
	remote := mcpfile.Server{ID: "api", Transport: mcpfile.Auto, URL: "https://example.com/mcp", Start: mcpfile.Lazy}
	for _, s := range []mcpfile.Server{local, remote} {
		if err := g.Register(s); err != nil {
			t.Fatal(err)
		}
	}
	want := gateway.ServerInfo{
		Name: "memory", Transport: "stdio", Origin: "registration", Status: "disconnected", Tools: []gateway.Tool{},
		Config: mcpfile.Public{Type: "local", Program: "npx", Enabled: true},
	}
	checkServer(t, g, "memory", want)
	if err := g.UpdateStatus("memory", "connected", ""); err != nil {
		t.Fatal(err)
	}
	want.Status = "connected"
	checkServer(t, g, "memory", want)
	if err := g.UpdateStatus("memory", "error", "timeout"); err != nil {
		t.Fatal(err)
	}
	want.Status, want.Error = "error", "timeout"
	checkServer(t, g, "memory", want)

	for _, tt := range []struct {
		err  error
		want contract.Code
	}{
		{g.Register(local), contract.CodeConflict},
		{g.UpdateStatus("memory", "ready", ""), contract.CodeInvalidRequest},
		{g.UpdateStatus("none", "connected", ""), contract.CodeNotFound},
		{g.Remove("none"), contract.CodeNotFound},
	} {
		if e, ok := errors.AsType[*contract.Error](tt.err); !ok || e.Code != tt.want {
			t.Errorf("got %v, want %s", tt.err, tt.want)
		}
	}
	if diff := cmp.Diff([]string{"api", "memory"}, names(g)); diff != "" {
		t.Errorf("servers (-want +got):\n%s", diff)
	}
	if err := g.Remove("memory"); err != nil {
		t.Fatal(err)
	}
	if _, ok := g.Get("memory"); ok {
		t.Error("got the removed server, want none")
	}
	g.Reset()
	if got := names(g); len(got) != 0 {
		t.Errorf("got %v after Reset, want none", got)
	}
}

// A registered server reaches no private address unless the operator permits it, and reads no
// environment variable.
func TestRegister_RestrictsServers(t *testing.T) {
	var requests atomic.Int32
	handler := streamableHTTP(t, newSystem, nil)
	server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		handler.ServeHTTP(w, r)
	}))
	remote := mcpfile.Server{ID: "system", Transport: mcpfile.Auto, URL: server.URL}
	plain := mcpfile.Server{ID: "rest", Transport: mcpfile.REST, URL: server.URL, Actions: []mcpfile.Action{{Name: "x"}}}
	g := startGateway(t, gateway.Config{MinBackoff: time.Hour})
	for _, s := range []mcpfile.Server{remote, plain} {
		if err := g.Register(s); err != nil {
			t.Fatal(err)
		}
	}
	for _, action := range []string{"system.info", "rest.x"} {
		_, err := g.Invoke(t.Context(), contract.Action{Action: action})
		if codeOf(err) != "SERVER_UNAVAILABLE" || !strings.Contains(err.Error(), "may not be called: it is no public address") {
			t.Errorf("%s: got %v, want SERVER_UNAVAILABLE because of the address", action, err)
		}
	}
	if n := requests.Load(); n != 0 {
		t.Errorf("got %d requests, want none", n)
	}
	lookup := func(string) (string, bool) { return "value", true }
	permitting := startGateway(t, gateway.Config{Lookup: lookup, Guard: egress.NewGuard(netip.MustParsePrefix("127.0.0.0/8"))})
	if err := permitting.Register(remote); err != nil {
		t.Fatal(err)
	}
	call(t, permitting, "system.info", `{}`)
	remote.ID, remote.Headers = "other", map[string]string{"X": "${SECRET}"}
	err := permitting.Register(remote)
	if e, ok := errors.AsType[*contract.Error](err); !ok || e.Code != contract.CodeInvalidRequest {
		t.Errorf("got %v, want %s for a variable", err, contract.CodeInvalidRequest)
	}
}

// A server is not called without the redaction that its declaration demands.
func TestGateway_RejectsInvalidRedaction(t *testing.T) {
	broken := mcpfile.Server{ID: "a", Transport: mcpfile.REST, URL: "https://example.com", Redaction: []redaction.Rule{{Pattern: "("}}}
	g := startGateway(t, gateway.Config{})
	_, reloadErr := g.Reload(&mcpfile.File{Servers: []mcpfile.Server{broken}})
	_, startErr := gateway.Start(t.Context(), []mcpfile.Server{broken}, gateway.Config{})
	for operation, err := range map[string]error{"Register": g.Register(broken), "Reload": reloadErr, "Start": startErr} {
		if e, ok := errors.AsType[*contract.Error](err); !ok || e.Code != contract.CodeInvalidRequest || !strings.Contains(e.Message, "redaction") {
			t.Errorf("%s: got %v, want %s because of the redaction", operation, err, contract.CodeInvalidRequest)
		}
	}
	if got := names(g); len(got) != 0 {
		t.Errorf("got servers %q, want none", got)
	}
}

func checkServer(t *testing.T, g *gateway.Gateway, name string, want gateway.ServerInfo) {
	t.Helper()
	got, ok := g.Get(name)
	if !ok {
		t.Fatalf("got no server %s", name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("server (-want +got):\n%s", diff)
	}
}

func names(g *gateway.Gateway) []string {
	var list []string
	for _, s := range g.Servers() {
		list = append(list, s.Name)
	}
	return list
}

// A lazy server has no process until its first call.
func TestGateway_ConnectsLazily(t *testing.T) {
	lazy := testServer("system", "sample", "system")
	lazy.Start = mcpfile.Lazy
	g := startGateway(t, gateway.Config{}, lazy)
	if s, _ := g.Get("system"); s.Status != gateway.StatusDisconnected || s.Error != "" {
		t.Errorf("got %s (%s), want disconnected", s.Status, s.Error)
	}
	if _, err := g.Invoke(t.Context(), contract.Action{Action: "system.info"}); err != nil {
		t.Fatal(err)
	}
	if s, _ := g.Get("system"); s.Status != gateway.StatusConnected || s.ToolCount != 2 {
		t.Errorf("got %s with %d tools, want connected with 2", s.Status, s.ToolCount)
	}
}

func TestGateway_ReportsRejectedCredential(t *testing.T) {
	server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	for _, transport := range []string{mcpfile.HTTP, mcpfile.SSE, mcpfile.Auto} {
		g := startGateway(t, gateway.Config{}, mcpfile.Server{ID: "a", Transport: transport, URL: server.URL})
		if s, _ := g.Get("a"); s.Status != gateway.StatusError || s.State != gateway.StateAuthRequired {
			t.Errorf("%s: got %s, %s (%s), want error, auth_required", transport, s.Status, s.State, s.Error)
		}
	}
}

// Only changed servers are reconnected.
func TestReload_ConnectsChangedServersOnly(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mcp.json")
	load := func(content string) (*mcpfile.File, error) {
		t.Helper()
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(content, "SELF", os.Args[0])), 0o600); err != nil {
			t.Fatal(err)
		}
		return mcpfile.Load(file)
	}
	const (
		a = `{"id": "a", "command": "SELF", "args": ["difficult", "-"]}`
		b = `{"id": "b", "command": "SELF", "args": ["difficult", "-"]}`
		c = `{"id": "c", "command": "SELF", "args": ["sample", "system"]}`
	)
	first, err := load(`{"servers": [` + a + "," + b + "," + c + `]}`)
	if err != nil {
		t.Fatal(err)
	}
	g := startGateway(t, gateway.Config{}, first.Servers...)
	if err := g.Register(testServer("own", "sample", "system")); err != nil {
		t.Fatal(err)
	}
	pids := map[string]string{}
	for _, id := range []string{"a", "b"} {
		pids[id] = call(t, g, id+".pid", `{}`)
	}
	second, err := load("{\"servers\": [\n" + a + ",\n" + `{"id": "b", "command": "SELF", "args": ["difficult", "-"], "env": {"X": "1"}}` +
		`, {"id": "d", "command": "SELF", "args": ["sample", "system"]}]}`)
	if err != nil {
		t.Fatal(err)
	}
	changes, err := g.Reload(second)
	if err != nil {
		t.Fatal(err)
	}
	want := gateway.Changes{Added: []string{"d"}, Changed: []string{"b"}, Removed: []string{"c"}, Unchanged: []string{"a"}}
	if diff := cmp.Diff(want, changes); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if got := call(t, g, "a.pid", `{}`); got != pids["a"] {
		t.Errorf("got process %s of the unchanged server, want %s", got, pids["a"])
	}
	if got := call(t, g, "b.pid", `{}`); got == pids["b"] {
		t.Errorf("got process %s of the changed server, want another one", got)
	}
	call(t, g, "d.info", `{}`)
	call(t, g, "own.info", `{}`)
	if _, err := g.Invoke(t.Context(), contract.Action{Action: "c.info"}); codeOf(err) != "ACTION_NOT_FOUND" {
		t.Errorf("got %v, want ACTION_NOT_FOUND for the removed server", err)
	}

	// Invalid files change nothing.
	for _, content := range []string{
		`{"servers": [` + a, `{"servers": [` + a + "," + a + `]}`,
		`{"servers": [{"id": "a.b", "command": "x", "actions": [{"name": "c"}]}, {"id": "a", "command": "x", "actions": [{"name": "b.c"}]}]}`,
		`{"servers": [{"id": "own", "command": "x"}]}`,
	} {
		before := names(g)
		broken, err := load(content)
		if err == nil {
			_, err = g.Reload(broken)
		}
		if err == nil {
			t.Errorf("%s: got no error, want one", content)
		}
		if diff := cmp.Diff(before, names(g)); diff != "" {
			t.Errorf("%s: servers (-before +after):\n%s", content, diff)
		}
	}
	if got := call(t, g, "a.pid", `{}`); got != pids["a"] {
		t.Errorf("got process %s after invalid files, want %s", got, pids["a"])
	}
}

// A call in flight ends before its server.
func TestReload_DrainsCalls(t *testing.T) {
	slow := testServer("d", "difficult", "-")
	release := filepath.Join(t.TempDir(), "release")
	slow.Env = map[string]string{"RELEASE": release}
	g := startGateway(t, gateway.Config{}, slow)
	progress, result := make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := g.InvokeFor(t.Context(), contract.Action{Action: "d.wait"}, gateway.Invocation{Caller: contract.LocalCaller(), OnProgress: func(contract.ActionProgress) { close(progress) }})
		result <- err
	}()
	testkit.WaitClosed(t, progress)
	if _, err := g.Reload(&mcpfile.File{}); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Invoke(t.Context(), contract.Action{Action: "d.pid"}); codeOf(err) != "ACTION_NOT_FOUND" {
		t.Errorf("got %v, want ACTION_NOT_FOUND for a new call", err)
	}
	if err := os.WriteFile(release, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := testkit.Receive(t, result); err != nil {
		t.Errorf("got %v, want the result of the call in flight", err)
	}
}

// call calls an action and returns its content without quotation marks.
func call(t *testing.T, g *gateway.Gateway, action, input string) string {
	t.Helper()
	result, err := g.Invoke(t.Context(), contract.Action{Action: action, Input: json.RawMessage(input)})
	if err != nil {
		t.Fatalf("%s: %v", action, err)
	}
	return strings.Trim(string(result.Content), `"`)
}

// Progress reaches the caller in order and before the result.
func TestInvoke_ForwardsProgress(t *testing.T) {
	difficult := newDifficultServer()
	provide := func(*http.Request) *mcp.Server { return difficult }
	var want []contract.ActionProgress
	for i := range 3 {
		want = append(want, contract.ActionProgress{Progress: float64(i + 1), Total: 3, Message: fmt.Sprintf("step %d", i+1)})
	}
	for _, server := range []mcpfile.Server{
		testServer("d", "difficult", "-"),
		{ID: "d", Transport: mcpfile.SSE, URL: serve(t, mcp.NewSSEHandler(provide, nil)).URL},
		{ID: "d", Transport: mcpfile.HTTP, URL: serve(t, streamableHTTP(t, provide, nil)).URL},
	} {
		g := startGateway(t, gateway.Config{}, server)
		for range 50 { // a result is not always sent before its progress
			var got []contract.ActionProgress
			result, err := g.InvokeFor(t.Context(), contract.Action{Action: "d.steps"}, gateway.Invocation{
				Caller: contract.LocalCaller(), OnProgress: func(p contract.ActionProgress) { got = append(got, p) },
			})
			if err != nil || string(result.Content) != `"done"` {
				t.Fatalf("%s: got %v, %v, want done", server.Transport, result, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s: progress (-want +got):\n%s", server.Transport, diff)
			}
		}
	}
}

// A server that answers with failures is degraded, and another one is preferred for its capability.
func TestGateway_ReportsDegradedServer(t *testing.T) {
	failing := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }))
	server := func(id string) mcpfile.Server {
		return mcpfile.Server{
			ID: id, Transport: mcpfile.REST, URL: failing.URL, Capabilities: []string{"gis:radius_query"},
			Actions: []mcpfile.Action{{Name: "x"}}, Breaker: mcpfile.Breaker{Failures: 2, OpenMS: 60_000},
		}
	}
	g := startGateway(t, gateway.Config{Capabilities: agents}, server("a"), server("b"))
	if b, err := g.Bind("gis", "gis:radius_query"); err != nil || b.Server != "a" {
		t.Errorf("got %+v, %v, want the server a", b, err)
	}
	for range 2 {
		_, _ = g.Invoke(t.Context(), contract.Action{Action: "a.x"})
	}
	if s, _ := g.Get("a"); s.Status != gateway.StatusConnected || s.State != gateway.StateDegraded {
		t.Errorf("got %s, %s, want connected, degraded", s.Status, s.State)
	}
	if b, err := g.Bind("gis", "gis:radius_query"); err != nil || b.Server != "b" {
		t.Errorf("got %+v, %v, want the server b", b, err)
	}
}

// The server is notified if the caller cancels.
func TestInvoke_CancelsOverStdio(t *testing.T) {
	server := testServer("d", "difficult", "-")
	cancelled := filepath.Join(t.TempDir(), "cancelled")
	server.Env = map[string]string{"CANCELLED": cancelled}
	g := startGateway(t, gateway.Config{}, server)
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		_, err := g.InvokeFor(ctx, contract.Action{Action: "d.wait"}, gateway.Invocation{Caller: contract.LocalCaller(), OnProgress: func(contract.ActionProgress) { cancel() }})
		result <- err
	}()
	if err := testkit.Receive(t, result); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	testkit.Eventually(t, "the tool is cancelled", func() bool {
		_, err := os.Stat(cancelled)
		return err == nil
	})
}

// An action exists, may exist because its server is not connected, or is missing.
func TestFindAction(t *testing.T) {
	servers := []gateway.ServerInfo{
		{Name: "weather", Status: gateway.StatusConnected, Tools: []gateway.Tool{{Action: "weather.query"}, {Action: "weather.alerts"}}},
		{Name: "files", Status: gateway.StatusConnecting},
		{Name: "files.old", Status: gateway.StatusConnected, Tools: []gateway.Tool{{Action: "files.old.read"}}},
	}
	for _, tt := range []struct {
		action  string
		found   bool
		similar string
	}{
		{"weather.query", true, ""},
		{"files.read", true, ""},
		{"files.old.reed", true, ""}, // of a server files that is not connected
		{"weather.qurey", false, "weather.query"},
		{"query", false, "weather.query"},
		{"storage.read", false, ""},
	} {
		if found, similar := gateway.FindAction(servers, tt.action); found != tt.found || similar != tt.similar {
			t.Errorf("%s: got %t and %q, want %t and %q", tt.action, found, similar, tt.found, tt.similar)
		}
	}
}
