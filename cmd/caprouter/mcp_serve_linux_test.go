package main

import (
	"os/exec"
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
