package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caprouter/caprouter/internal/testkit"
)

// A client keeps its connection to the command while the router restarts.
func TestMCPServe_OutlivesRouter(t *testing.T) {
	dir := t.TempDir()
	r := startRouter(t, dir)
	program := copyExecutable(t, t.TempDir())
	cmd := exec.Command(program, "mcp", "serve", "--url", r.url)
	client := mcp.NewClient(&mcp.Implementation{Name: "tests", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	ask := func() (string, error) {
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "list_capabilities"})
		if err != nil {
			return "", err
		}
		return result.Content[0].(*mcp.TextContent).Text, nil
	}
	const want = `{"agents":[{"agent_id":"counter","intents":["count_words"],"domains":["text"]}]}`
	if got, err := ask(); err != nil || got != want {
		t.Fatalf("got %s, error %v, want %s", got, err, want)
	}
	list, err := session.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 2 || list.Tools[0].Name != "list_capabilities" || list.Tools[1].Name != "route_request" {
		t.Errorf("got %+v, error %v, want the two tools of the router", list, err)
	}
	if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "none"}); err == nil || !strings.Contains(err.Error(), `unknown tool "none"`) {
		t.Errorf("got error %v, want that of the router", err)
	}

	r.signal(syscall.SIGKILL)
	if _, err := ask(); err == nil || !strings.Contains(err.Error(), "no router answers at "+r.url) {
		t.Errorf("got error %v without a router", err)
	}
	restarted := startRouter(t, dir, "--listen", strings.TrimPrefix(r.url, "http://"))
	testkit.Eventually(t, "the command has connected again", func() bool {
		got, err := ask()
		return err == nil && got == want
	})
	if code := restarted.stop(); code != 0 {
		t.Errorf("got exit code %d, want 0", code)
	}
}

// A client is notified of changes of the registry file, also of those while the router is down.
func TestMCPServe_PassesOnChanges(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "mcp.json")
	program := copyExecutable(t, t.TempDir())
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const none = `{"servers":[]}`
	write(none)
	r := startRouter(t, dir, "--mcp", path)
	changed := make(chan struct{}, 100)
	client := mcp.NewClient(&mcp.Implementation{Name: "tests", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
	})
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: exec.Command(program, "mcp", "serve", "--url", r.url)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	awaitTool := func(name string, listed bool) {
		t.Helper()
		for {
			list, err := session.ListTools(t.Context(), nil)
			if err == nil && listed == slices.ContainsFunc(list.Tools, func(tool *mcp.Tool) bool { return tool.Name == name }) {
				return
			}
			testkit.Receive(t, changed)
		}
	}
	write(`{"servers":[{"id":"weather","command":"` + program + `","args":["mcp-sample","weather"]}]}`)
	awaitTool("weather__query", true)
	r.signal(syscall.SIGKILL)
	for len(changed) > 0 {
		testkit.Receive(t, changed)
	}
	write(none)
	startRouter(t, dir, "--mcp", path, "--listen", strings.TrimPrefix(r.url, "http://"))
	testkit.Receive(t, changed)
	awaitTool("weather__query", false)
}

// The command ends when its input ends, also while it waits for notifications or for the result of a
// call.
func TestMCPServe_EndsWithInput(t *testing.T) {
	backend := mcp.NewServer(&mcp.Implementation{Name: "router", Version: "1"}, nil)
	called := make(chan struct{}, 10)
	mcp.AddTool(backend, &mcp.Tool{Name: "hang"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		called <- struct{}{}
		<-ctx.Done()
		return nil, nil, ctx.Err()
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return backend }, &mcp.StreamableHTTPOptions{
		Stateless: true, PropagateRequestCancellation: true,
	})
	following := make(chan struct{}, 10)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			handler.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		following <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(srv.Close)
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	const initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	program := copyExecutable(t, t.TempDir())
	for _, tt := range []struct {
		name     string
		messages []string
		ready    []<-chan struct{}
	}{
		{"at once", nil, nil},
		{"notifications", []string{initialize, initialized}, []<-chan struct{}{following}},
		{"subscription", []string{`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` + meta + `}}`}, []<-chan struct{}{following}},
		{"call", []string{initialize, initialized, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hang","arguments":{}}}`}, []<-chan struct{}{following, called}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := exec.Command(program, "mcp", "serve", "--url", srv.URL)
			cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
			cmd.Stderr = t.Output()
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			for _, message := range tt.messages {
				if _, err := io.WriteString(in, message+"\n"); err != nil {
					t.Fatal(err)
				}
			}
			for _, ready := range tt.ready {
				testkit.Receive(t, ready)
			}
			_ = in.Close()
			if err := testkit.Receive(t, ended); err != nil {
				t.Errorf("got %v, want the exit code 0", err)
			}
		})
	}
}
