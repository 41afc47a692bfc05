package app

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/testkit"
)

// watchTools connects an MCP client, and returns the notifications about its list of tools.
func (s *testServer) watchTools(token, version string) (*mcp.ClientSession, <-chan struct{}) {
	s.t.Helper()
	changed := make(chan struct{}, 100)
	session := s.connectMCPVersion(token, version, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
	})
	return session, changed
}

// awaitTool waits for notifications until the list contains the tool, or does not contain it any more.
func awaitTool(t *testing.T, session *mcp.ClientSession, changed <-chan struct{}, name string, listed bool) {
	t.Helper()
	for slices.Contains(toolNames(t, session), name) != listed {
		testkit.Receive(t, changed)
	}
}

// serveTools serves an MCP server that is changed while it runs, and returns its URL.
func serveTools(t *testing.T, server *mcp.Server) string {
	t.Helper()
	backend := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(func() {
		backend.CloseClientConnections()
		backend.Close()
	})
	return backend.URL
}

func addTool(server *mcp.Server, name string) {
	mcp.AddTool(server, &mcp.Tool{Name: name}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{}, nil, nil
	})
}

// Clients of all versions are notified when a server is registered or removed, changes its tools, is
// added to the file or taken out of it, and when a definition is approved.
func TestMCPServer_NotifiesOfChangedTools(t *testing.T) {
	for _, version := range []string{"2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			tools := mcp.NewServer(&mcp.Implementation{Name: "tools", Version: "1"}, nil)
			addTool(tools, "first")
			url := serveTools(t, tools)
			path, change := useMCP(t, `{"servers":[]}`)
			s := startServer(t, "clients: {}\n", change)
			session, changed := s.watchTools("", version)
			s.mcp("POST", "/servers", registration("own", url), http.StatusCreated, nil)
			awaitTool(t, session, changed, "own__first", true)
			addTool(tools, "second")
			awaitTool(t, session, changed, "own__second", true)
			s.mcp("DELETE", "/servers/own", "", http.StatusNoContent, nil)
			awaitTool(t, session, changed, "own__first", false)
			write := func(content string) {
				t.Helper()
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write(fileOf("declared", url))
			awaitTool(t, session, changed, "declared__first", true)
			write(`{"servers":[]}`)
			awaitTool(t, session, changed, "declared__first", false)
		})
	}
}

// An approval of a definition changes the list.
func TestMCPServer_NotifiesOfApprovedTools(t *testing.T) {
	tools := mcp.NewServer(&mcp.Implementation{Name: "tools", Version: "1"}, nil)
	addTool(tools, "first")
	path, change := useMCP(t, fileOf("own", serveTools(t, tools)))
	_ = path
	s := startServer(t, "clients: {}\n", change, func(c *config.Config) { c.MCP.Pins = "approve" })
	var pending struct {
		Tools []struct{ Hash string }
	}
	testkit.Eventually(t, "the tool waits for its approval", func() bool {
		s.mcp("GET", "/tools/pending", "", http.StatusOK, &pending)
		return len(pending.Tools) == 1
	})
	session, changed := s.watchTools("", "")
	s.mcp("POST", "/tools/own.first/approve", `{"hash":"`+pending.Tools[0].Hash+`"}`, http.StatusNoContent, nil)
	testkit.Receive(t, changed)
	awaitTool(t, session, changed, "own__first", true)
}

// A client is notified of changes of the tools that its caller may call, and of no others.
func TestMCPServer_NotifiesCallersOfTheirTools(t *testing.T) {
	m := newTokenIssuer()
	tools := mcp.NewServer(&mcp.Implementation{Name: "tools", Version: "1"}, nil)
	addTool(tools, "name")
	url := serveTools(t, tools)
	_, change := useMCP(t, `{"servers":[]}`)
	s := startGuarded(t, m, "clients: {}\n", change, func(c *config.Config) { c.Dispatch.AllowPrivate = config.StringList{"127.0.0.1/32"} })
	admin := m.token("root", "admin", nil)
	register := func(name string) {
		t.Helper()
		if got := s.do(call{method: "POST", path: registeredServers, token: admin, body: registration(name, url)}); got.status != http.StatusCreated {
			t.Fatalf("got %d %s", got.status, got.body)
		}
	}
	one, oneChanged := s.watchTools(m.token("ana", "mcp:invoke:one.name", nil), "2026-07-28")
	two, twoChanged := s.watchTools(m.token("bea", "mcp:invoke:two.name", nil), "2026-07-28")
	register("one")
	awaitTool(t, one, oneChanged, "one__name", true)
	register("two")
	testkit.Receive(t, twoChanged)
	awaitTool(t, two, twoChanged, "two__name", true)
	if names := toolNames(t, two); slices.Contains(names, "one__name") {
		t.Errorf("got tools %v, want no other caller's", names)
	}
	if n := len(twoChanged); n > 0 {
		t.Errorf("got %d further notifications, want one for one change", n)
	}
}

// watchContents connects an MCP client, and returns the notifications about its lists of prompts and
// of resources.
func (s *testServer) watchContents(token, version string) (session *mcp.ClientSession, prompts, resources <-chan struct{}) {
	s.t.Helper()
	promptsChanged, resourcesChanged := make(chan struct{}, 100), make(chan struct{}, 100)
	session = s.connectMCPVersion(token, version, &mcp.ClientOptions{
		PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) { promptsChanged <- struct{}{} },
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { resourcesChanged <- struct{}{} },
	})
	return session, promptsChanged, resourcesChanged
}

// awaitContent waits for notifications until a list contains the prompt, the resource or the template,
// or does not contain it any more.
func awaitContent(t *testing.T, session *mcp.ClientSession, changed <-chan struct{}, id string, listed bool) {
	t.Helper()
	for slices.Contains(contents(t, session), id) != listed {
		testkit.Receive(t, changed)
	}
}

// Clients of all versions are notified when a server is registered, changes its prompts, resources or
// templates, and is removed.
func TestMCPServer_NotifiesOfChangedContents(t *testing.T) {
	for _, version := range []string{"2025-03-26", "2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			library := mcp.NewServer(&mcp.Implementation{Name: "library", Version: "1"}, nil)
			library.AddPrompt(&mcp.Prompt{Name: "greet"}, nil)
			library.AddResource(&mcp.Resource{Name: "readme", URI: "lib://readme"}, nil)
			url := serveTools(t, library)
			_, change := useMCP(t, `{"servers":[]}`)
			s := startServer(t, "clients: {}\n", change)
			session, prompts, resources := s.watchContents("", version)
			s.mcp("POST", "/servers", registration("own", url), http.StatusCreated, nil)
			awaitContent(t, session, prompts, "own__greet", true)
			awaitContent(t, session, resources, "mcp://own/lib://readme", true)
			library.RemovePrompts("greet")
			awaitContent(t, session, prompts, "own__greet", false)
			library.AddResourceTemplate(&mcp.ResourceTemplate{Name: "books", URITemplate: "lib://books/{id}"}, nil)
			awaitContent(t, session, resources, "mcp://own/lib://books/{id}", true)
			s.mcp("DELETE", "/servers/own", "", http.StatusNoContent, nil)
			awaitContent(t, session, resources, "mcp://own/lib://readme", false)
		})
	}
}

// A client is notified of changes of the prompts and resources that its caller may use, and of no
// others.
func TestMCPServer_NotifiesCallersOfTheirContents(t *testing.T) {
	m := newTokenIssuer()
	library := mcp.NewServer(&mcp.Implementation{Name: "library", Version: "1"}, nil)
	library.AddPrompt(&mcp.Prompt{Name: "greet"}, nil)
	library.AddResource(&mcp.Resource{Name: "readme", URI: "lib://readme"}, nil)
	url := serveTools(t, library)
	_, change := useMCP(t, fileOf("one", url))
	s := startGuarded(t, m, "clients: {}\n", change)
	ana, anaPrompts, anaResources := s.watchContents(m.token("ana", "mcp:invoke:one.prompts/get", nil), "2026-07-28")
	bea, beaPrompts, beaResources := s.watchContents(m.token("bea", "mcp:invoke:one.resources/read", nil), "2026-07-28")
	library.AddPrompt(&mcp.Prompt{Name: "thank"}, nil)
	awaitContent(t, ana, anaPrompts, "one__thank", true)
	library.AddResource(&mcp.Resource{Name: "license", URI: "lib://license"}, nil)
	awaitContent(t, bea, beaResources, "mcp://one/lib://license", true)
	if n := len(anaResources) + len(beaPrompts); n > 0 {
		t.Errorf("got %d notifications about lists that the caller does not see, want none", n)
	}
}
