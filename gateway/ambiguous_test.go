package gateway_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/gateway/mcpfile"
)

// Tools that several servers list under the same full name cannot be called, and are reported with
// both servers. Other tools of these servers can be called.
func TestInvoke_RejectsToolOfTwoServers(t *testing.T) {
	var calls atomic.Int64
	provide := func(tools ...string) string {
		server := mcp.NewServer(&mcp.Implementation{Name: "s"}, nil)
		for _, name := range tools {
			server.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)},
				func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					calls.Add(1)
					return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name}}}, nil
				})
		}
		return serve(t, streamableHTTP(t, func(*http.Request) *mcp.Server { return server }, nil)).URL
	}
	// In sequence, because the definition that is seen first is the approved one.
	first := mcpfile.Server{ID: "a", Transport: mcpfile.HTTP, URL: provide("b.c", "d")}
	g := startGateway(t, gateway.Config{}, first)
	second := mcpfile.Server{ID: "a.b", Transport: mcpfile.HTTP, URL: provide("c", "e")}
	if _, err := g.Reload(&mcpfile.File{Servers: []mcpfile.Server{first, second}}); err != nil {
		t.Fatal(err)
	}
	g.WaitReady(t.Context())
	_, err := g.Invoke(t.Context(), contract.Action{Action: "a.b.c"})
	if codeOf(err) != contract.ActionAmbiguous || !strings.Contains(err.Error(), `"a" and "a.b"`) || calls.Load() != 0 {
		t.Errorf("got %v and %d calls, want ACTION_AMBIGUOUS with both servers, and no call", err, calls.Load())
	}
	got := map[string]string{}
	for _, s := range g.Servers() {
		for _, tool := range s.Tools {
			got[s.Name+" "+tool.Action] = tool.Error
		}
	}
	const ambiguous = `its name is that of a tool of the servers "a" and "a.b": rename one of the servers`
	want := map[string]string{"a a.b.c": ambiguous, "a a.d": "", "a.b a.b.c": ambiguous, "a.b a.b.e": ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("errors of the tools (-want +got):\n%s", diff)
	}
	if s, _ := g.Get("a.b"); s.Tools[0].Error != ambiguous {
		t.Errorf("got error %q of one server, want %q", s.Tools[0].Error, ambiguous)
	}
	if got := call(t, g, "a.d", "{}"); got != "d" {
		t.Errorf("got %q, want the result of the other tool", got)
	}
	if err := g.Remove("a.b"); err != nil {
		t.Fatal(err)
	}
	if got := call(t, g, "a.b.c", "{}"); got != "b.c" {
		t.Errorf("got %q, want the result of the remaining tool", got)
	}
}
