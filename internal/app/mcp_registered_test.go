package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/rest"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

const (
	registeredServers = "/api/v1/mcp/servers"
	serverKey         = "canary-key-of-the-server"
)

// serveTool serves an MCP server with the tool name, which returns the text, and returns its URL.
// The server rejects requests without serverKey.
func serveTool(t *testing.T, text string) string {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "tools", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "name"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Api-Key") != serverKey {
			http.Error(w, "no key", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		backend.CloseClientConnections()
		backend.Close()
	})
	return backend.URL
}

// registration returns the body that registers a server of serveTool.
func registration(name, url string) string {
	return fmt.Sprintf(`{"name":%q,"url":%q,"headers":{"X-Api-Key":%q}}`, name, url, serverKey)
}

// fileOf returns a registry file with a server of serveTool.
func fileOf(name, url string) string {
	return fmt.Sprintf(`{"servers":[{"id":%q,"url":%q,"headers":{"X-Api-Key":%q}}]}`, name, url, serverKey)
}

// callName calls the tool name of a server, and returns its text, or the error code.
func (s *testServer) callName(server string) string {
	s.t.Helper()
	got := s.do(call{method: "POST", path: "/api/v1/mcp/invoke", body: fmt.Sprintf(`{"action":"%s.name"}`, server)})
	if got.status != http.StatusOK {
		var problem rest.ToolProblem
		if err := json.Unmarshal(got.body, &problem); err != nil {
			s.t.Fatal(err)
		}
		return problem.ErrorCode
	}
	var result contract.ActionResult
	var text string
	if err := json.Unmarshal(got.body, &result); err != nil {
		s.t.Fatal(err)
	}
	if err := json.Unmarshal(result.Content, &text); err != nil {
		s.t.Fatal(err)
	}
	return text
}

// awaitName waits until the tool name of a server returns the text, or the error code.
func (s *testServer) awaitName(server, want string) {
	s.t.Helper()
	testkit.Eventually(s.t, server+" returns "+want, func() bool { return s.callName(server) == want })
}

// runOnce runs a router on the data directory for the time of a function.
func runOnce(t *testing.T, dir string, use func(s *testServer), change ...func(*config.Config)) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	s := startOnce(ctx, t, "clients: {}\n", func(c *config.Config) {
		c.DataDir = dir
		for _, change := range change {
			change(c)
		}
	})
	defer func() {
		stop()
		if err := s.Wait(); err != nil {
			t.Errorf("got the server stopped with %v, want no error", err)
		}
	}()
	use(s)
}

// A registered server is connected by the next process, until it is removed. Its headers are
// stored encrypted.
func TestMCPRegistration_SurvivesRestart(t *testing.T) {
	dir, url := t.TempDir(), serveTool(t, "of the registered server")
	runOnce(t, dir, func(s *testServer) {
		s.mcp("POST", "/servers", registration("tools.own", url), http.StatusCreated, nil)
		s.awaitName("tools.own", "of the registered server")
		s.mcp("POST", "/servers", registration("tools.own", url), http.StatusConflict, nil)
	})
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(serverKey)) {
			t.Errorf("got the value of the header in %s, want it encrypted", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	runOnce(t, dir, func(s *testServer) {
		s.awaitName("tools.own", "of the registered server")
		if !strings.Contains(s.log.String(), `"msg":"registered MCP servers","stored":1`) {
			t.Errorf("got no number of the stored servers in the log:\n%s", s.log)
		}
		s.mcp("POST", "/servers", registration("tools.own", url), http.StatusConflict, nil)
		s.mcp("DELETE", "/servers/tools.own", "", http.StatusNoContent, nil)
		s.awaitName("tools.own", contract.ActionNotFound)
		s.mcp("DELETE", "/servers/tools.own", "", http.StatusNotFound, nil)
	})
	runOnce(t, dir, func(s *testServer) {
		if got := s.get(registeredServers); strings.Contains(got, "tools.own") {
			t.Errorf("got %s, want no removed server", got)
		}
	})
}

// PUT registers a server, or replaces its registration, which stays replaced after a restart.
func TestMCPRegistration_Put(t *testing.T) {
	dir, first, second := t.TempDir(), serveTool(t, "first"), serveTool(t, "second")
	_, change := useMCP(t, fileOf("declared", first))
	runOnce(t, dir, func(s *testServer) {
		var info rest.MCPServer
		s.mcp("PUT", "/servers/tools.own", registration("tools.own", first), http.StatusCreated, &info)
		if info.Name != "tools.own" || info.Origin != "registration" {
			t.Errorf("got %+v, want the registered server", info)
		}
		s.awaitName("tools.own", "first")
		s.mcp("PUT", "/servers/tools.own", registration("tools.own", second), http.StatusOK, nil)
		s.awaitName("tools.own", "second")
		s.mcp("PUT", "/servers/tools.own", registration("tools", first), http.StatusUnprocessableEntity, nil)
		s.mcp("PUT", "/servers/tools.own", `{"name":"tools.own","url":"ftp://h/"}`, http.StatusUnprocessableEntity, nil)
		s.mcp("PUT", "/servers/declared", registration("declared", second), http.StatusConflict, nil)
		s.mcp("POST", "/servers", registration("tools.own", first), http.StatusConflict, nil)
		s.awaitName("tools.own", "second")
		if got := s.get("/api/v1/audit?kind=admin"); strings.Count(got, `"event":"register_server"`) != 2 {
			t.Errorf("got %s, want two registrations in the audit log", got)
		}
	}, change)
	runOnce(t, dir, func(s *testServer) { s.awaitName("tools.own", "second") })
}

// The approval of a tool belongs to the registered server also after a restart.
func TestMCPRegistration_KeepsApprovedTools(t *testing.T) {
	dir, url := t.TempDir(), serveTool(t, "approved")
	approve := func(c *config.Config) { c.MCP.Pins = "approve" }
	runOnce(t, dir, func(s *testServer) {
		s.mcp("POST", "/servers", registration("own", url), http.StatusCreated, nil)
		s.awaitName("own", contract.ActionQuarantined)
		var pending rest.MCPPendingList
		s.mcp("GET", "/tools/pending", "", http.StatusOK, &pending)
		if len(pending.Tools) != 1 {
			t.Fatalf("got %+v, want one tool", pending)
		}
		s.mcp("POST", "/tools/own.name/approve", fmt.Sprintf(`{"hash":%q}`, pending.Tools[0].Hash), http.StatusNoContent, nil)
		s.awaitName("own", "approved")
	}, approve)
	runOnce(t, dir, func(s *testServer) {
		testkit.Eventually(t, "the server is connected", func() bool {
			return strings.Contains(s.get(registeredServers+"/own"), `"status":"connected"`)
		})
		if got := s.callName("own"); got != "approved" {
			t.Errorf("got %s, want the result of the approved tool", got)
		}
	}, approve)
}

// A server of the registry file replaces a registered one of its name, which stays stored, is
// reported, and can be removed.
func TestMCPRegistration_YieldsToFile(t *testing.T) {
	t.Parallel()
	dir, own, declared := t.TempDir(), serveTool(t, "registered"), serveTool(t, "of the file")
	path, change := useMCP(t, `{"servers":[]}`)
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	server := func(s *testServer) (info rest.MCPServer) {
		s.mcp("GET", "/servers/tools", "", http.StatusOK, &info)
		return info
	}
	runOnce(t, dir, func(s *testServer) {
		s.mcp("POST", "/servers", registration("tools", own), http.StatusCreated, nil)
		s.awaitName("tools", "registered")
		// A file that is rejected replaces nothing.
		write(strings.Replace(fileOf("tools", declared), `"url"`, `"redaction":[{"pattern":"("}],"url"`, 1))
		testkit.Eventually(t, "the file is rejected", func() bool { return strings.Contains(s.get("/readyz"), `"stale":true`) })
		s.awaitName("tools", "registered")
		write(fileOf("tools", declared))
		s.awaitName("tools", "of the file")
		testkit.Eventually(t, "a warning is logged", func() bool {
			return strings.Contains(s.log.String(), "the registry file replaces a registered MCP server")
		})
	}, change)
	runOnce(t, dir, func(s *testServer) {
		s.awaitName("tools", "of the file")
		if got := server(s); got.Origin != "file" || !got.OverridesRegistration {
			t.Errorf("got %+v, want the server of the file, which overrides the registered one", got)
		}
		s.mcp("POST", "/servers", registration("tools", own), http.StatusConflict, nil)
		write(`{"servers":[]}`)
		s.awaitName("tools", "registered")
		write(fileOf("tools", declared))
		s.awaitName("tools", "of the file")
		s.mcp("DELETE", "/servers/tools", "", http.StatusNoContent, nil)
		if got := server(s); got.Origin != "file" || got.OverridesRegistration {
			t.Errorf("got %+v, want the server of the file alone", got)
		}
		s.mcp("DELETE", "/servers/tools", "", http.StatusConflict, nil)
		write(`{"servers":[]}`)
		s.awaitName("tools", contract.ActionNotFound)
	}, change)
}

// All replicas of a store connect to a registered server, until one of them removes it.
func TestReplicas_ShareRegisteredMCPServers(t *testing.T) {
	t.Parallel()
	srv := teststore.Serve(t, t.TempDir(), -1)
	a, b := startReplica(t, srv, "clients: {}\n"), startReplica(t, srv, "clients: {}\n")
	url := serveTool(t, "shared")
	a.mcp("POST", "/servers", registration("own", url), http.StatusCreated, nil)
	b.awaitName("own", "shared")
	startReplica(t, srv, "clients: {}\n").awaitName("own", "shared")
	b.mcp("POST", "/servers", registration("own", url), http.StatusConflict, nil)
	b.mcp("DELETE", "/servers/own", "", http.StatusNoContent, nil)
	a.awaitName("own", contract.ActionNotFound)
	a.mcp("POST", "/servers", registration("own", serveTool(t, "second")), http.StatusCreated, nil)
	b.awaitName("own", "second")
	// Immediately after the change at the other replica.
	b.mcp("DELETE", "/servers/own", "", http.StatusNoContent, nil)
	a.mcp("DELETE", "/servers/own", "", http.StatusNotFound, nil)
	a.mcp("POST", "/servers", registration("own", url), http.StatusCreated, nil)
	b.mcp("DELETE", "/servers/own", "", http.StatusNoContent, nil)
}

// Of two replicas that register a name at the same time, one is successful, and all use its server.
func TestReplicas_RegisterMCPServerOnce(t *testing.T) {
	t.Parallel()
	srv := teststore.Serve(t, t.TempDir(), -1)
	replicas := []*testServer{startReplica(t, srv, "clients: {}\n"), startReplica(t, srv, "clients: {}\n")}
	urls := []string{serveTool(t, "first"), serveTool(t, "second")}
	for round := range 5 {
		name := fmt.Sprint("own", round)
		var statuses [2]int
		var wg sync.WaitGroup
		for i, s := range replicas {
			wg.Go(func() {
				statuses[i] = s.do(call{method: "POST", path: registeredServers, body: registration(name, urls[i])}).status
			})
		}
		wg.Wait()
		want := "first"
		switch statuses {
		case [2]int{http.StatusCreated, http.StatusConflict}:
		case [2]int{http.StatusConflict, http.StatusCreated}:
			want = "second"
		default:
			t.Fatalf("got %v, want one 201 and one 409", statuses)
		}
		for _, s := range replicas {
			s.awaitName(name, want)
		}
	}
}

// All replicas connect to the server of the latest PUT, also if two of them get one at a time.
func TestReplicas_ReplaceMCPServer(t *testing.T) {
	t.Parallel()
	srv := teststore.Serve(t, t.TempDir(), -1)
	replicas := []*testServer{startReplica(t, srv, "clients: {}\n"), startReplica(t, srv, "clients: {}\n")}
	urls := []string{serveTool(t, "first"), serveTool(t, "second")}
	for range 5 {
		var wg sync.WaitGroup
		for i, s := range replicas {
			wg.Go(func() {
				got := s.do(call{method: "PUT", path: registeredServers + "/own", body: registration("own", urls[i])})
				if got.status != http.StatusOK && got.status != http.StatusCreated {
					t.Errorf("got %d %s, want 200 or 201", got.status, got.body)
				}
			})
		}
		wg.Wait()
		testkit.Eventually(t, "the replicas agree", func() bool {
			name := replicas[0].callName("own")
			return (name == "first" || name == "second") && replicas[1].callName("own") == name
		})
	}
	replicas[0].mcp("PUT", "/servers/own", registration("own", urls[0]), http.StatusOK, nil)
	replicas[1].awaitName("own", "first")
	replicas[1].mcp("PUT", "/servers/own", registration("own", urls[1]), http.StatusOK, nil)
	replicas[0].awaitName("own", "second")
}
