package app

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/testkit"
)

// bearer is a transport that sends a token.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b != "" {
		r.Header.Set("Authorization", "Bearer "+string(b))
	}
	return http.DefaultTransport.RoundTrip(r)
}

// connectMCP connects an MCP client to the server, which may have no token.
func (s *testServer) connectMCP(token string, opts *mcp.ClientOptions) *mcp.ClientSession {
	s.t.Helper()
	return s.connectMCPVersion(token, "", opts)
}

// connectMCPVersion is connectMCP with a version of the protocol; "" = the latest.
func (s *testServer) connectMCPVersion(token, version string, opts *mcp.ClientOptions) *mcp.ClientSession {
	s.t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "tests", Version: "1"}, opts)
	session, err := client.Connect(s.t.Context(), &mcp.StreamableClientTransport{
		Endpoint: s.url("/mcp"), HTTPClient: &http.Client{Transport: bearer(token)},
	}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = session.Close() })
	return session
}

// toolNames returns the names of the tools that the session lists.
func toolNames(t *testing.T, session *mcp.ClientSession) []string {
	t.Helper()
	var names []string
	for tool, err := range session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	return names
}

// callTool returns the result of a tool and its text.
func callTool(t *testing.T, session *mcp.ClientSession, name string, arguments any) (*mcp.CallToolResult, string) {
	t.Helper()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var text strings.Builder
	for _, c := range result.Content {
		if c, ok := c.(*mcp.TextContent); ok {
			text.WriteString(c.Text)
		}
	}
	return result, text.String()
}

func TestMCPServer_ServesToolsAndRoutes(t *testing.T) {
	agent := startAgent(t, "greeter", answer("hello from the agent"))
	_, change := useMCP(t, samples("weather", "system"))
	s := startServer(t, "clients:\n"+entry("greeter", "greet", "people", agent.url), change)
	agent.trust(s)
	session := s.connectMCP("", nil)
	want := []string{"find_tools", "list_capabilities", "route_request", "system__echo", "system__info", "weather__query"}
	if diff := cmp.Diff(want, toolNames(t, session)); diff != "" { // the list waits for the servers
		t.Errorf("tools (-want +got):\n%s", diff)
	}

	if result, text := callTool(t, session, "weather__query", map[string]any{"ubicacion": "Lugo"}); result.IsError || !strings.HasPrefix(text, "Lugo: lluvia") {
		t.Errorf("got %q, error %v, want a forecast", text, result.IsError)
	}
	if result, text := callTool(t, session, "weather__query", map[string]any{"place": "Lugo"}); !result.IsError || !strings.Contains(text, "missing property 'ubicacion'") {
		t.Errorf("got %q, error %v, want the mistake in the input", text, result.IsError)
	}
	result, _ := callTool(t, session, "system__info", nil)
	if info, ok := result.StructuredContent.(map[string]any); !ok || info["os"] == "" {
		t.Errorf("got structured content %v, want the system", result.StructuredContent)
	}
	result, text := callTool(t, session, "route_request", map[string]any{"prompt": "greet people"})
	if result.IsError || text != "hello from the agent: greet people" {
		t.Errorf("got %q, error %v, want the answer of the agent", text, result.IsError)
	}
	response, err := json.Marshal(result.StructuredContent)
	var resp contract.Response
	if err == nil {
		err = json.Unmarshal(response, &resp)
	}
	if err != nil || resp.Status != contract.StatusCompleted || len(resp.Tasks) != 1 || resp.Tasks[0].AgentID != "greeter" {
		t.Errorf("got response %s, error %v, want that of the router", response, err)
	}
	found, err := s.core.persistence.auditLog.Find(t.Context(), resp.RequestID)
	if err != nil || found.Decision == nil {
		t.Errorf("got records %+v, error %v, want the decision", found, err)
	}
	if _, text := callTool(t, session, "list_capabilities", nil); text != `{"agents":[{"agent_id":"greeter","intents":["greet"],"domains":["people"]}]}` {
		t.Errorf("got %s, want the agent", text)
	}
	if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "weather.query"}); err == nil || !strings.Contains(err.Error(), `unknown tool "weather.query"`) {
		t.Errorf("got error %v, want an unknown tool", err)
	}
}

// A client that knows the tools calls them without a list, for example after a restart of the
// router. A server that starts lazily is then started by the call.
func TestMCPServer_StartsServersForCalls(t *testing.T) {
	_, change := useMCP(t, strings.Replace(samples("weather"), `"id":`, `"start":"lazy","id":`, 1))
	s := startServer(t, "clients: {}\n", change)
	session := s.connectMCP("", nil)
	if result, text := callTool(t, session, "weather__query", map[string]any{"ubicacion": "Lugo"}); result.IsError || !strings.HasPrefix(text, "Lugo: lluvia") {
		t.Errorf("got %q, error %v, want a forecast", text, result.IsError)
	}
}

func TestMCPServer_RejectsArguments(t *testing.T) {
	s := startServer(t, "clients: {}\n")
	session := s.connectMCP("", nil)
	for _, tt := range []struct {
		tool      string
		arguments any
		want      string
	}{
		{"route_request", map[string]any{}, "/content/prompt is required"},
		{"route_request", map[string]any{"promt": "x"}, `/promt unknown member "promt"; known here: prompt`},
		{"route_request", map[string]any{"prompt": 1}, "/prompt must be a string, got a number"},
		{"route_request", map[string]any{"prompt": strings.Repeat("a", contract.MaxPromptBytes+1)}, "/content/prompt is 65537 bytes long"},
		{"route_request", map[string]any{"prompt": "x", "session_id": strings.Repeat("a", 129)}, "/session_id"},
		{"list_capabilities", map[string]any{"all": true}, `/all unknown member "all"`},
		{"find_tools", map[string]any{}, "/query is required"},
		{"find_tools", map[string]any{"query": strings.Repeat("a", 4097)}, "/query is 4097 bytes long"},
		{"find_tools", map[string]any{"query": "x", "limit": 0}, "/limit must be from 1 to 50"},
		{"find_tools", map[string]any{"query": "x", "limit": 51}, "/limit must be from 1 to 50"},
		{"find_tools", map[string]any{"query": "x", "limit": "2"}, "/limit must be a whole number"},
	} {
		if result, text := callTool(t, session, tt.tool, tt.arguments); !result.IsError || !strings.Contains(text, tt.want) {
			t.Errorf("%s: got %q, error %v, want %q", tt.tool, text, result.IsError, tt.want)
		}
	}
}

// The tools that are found have the definitions of the list, and are only those that the
// caller may call.
func TestMCPServer_FindsTools(t *testing.T) {
	m := newTokenIssuer()
	_, change := useMCP(t, samples("weather", "system"))
	s := startGuarded(t, m, "clients: {}\n", change)
	s.core.mcp.WaitReady(t.Context()) // a list waits for the servers two seconds at most
	const allTools = "mcp:invoke:weather.query mcp:invoke:system.info mcp:invoke:system.echo"
	for _, tt := range []struct {
		scope, query string
		limit        int
		want         []string
	}{
		{allTools, "what is the weather forecast in Lugo?", 1, []string{"weather__query"}},
		{allTools, "operating system of the machine", 1, []string{"system__info"}},
		{allTools, "zzz", 5, nil},
		{"mcp:invoke:system.echo", "return the forecast", 5, []string{"system__echo"}},
	} {
		session := s.connectMCP(m.token("ana", tt.scope, nil), nil)
		list, err := session.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		result, text := callTool(t, session, "find_tools", map[string]any{"query": tt.query, "limit": tt.limit})
		var found struct{ Tools []*mcp.Tool }
		if err := json.Unmarshal([]byte(text), &found); err != nil || result.IsError {
			t.Fatalf("got %q, %v", text, err)
		}
		var got []string
		for _, tool := range found.Tools {
			got = append(got, tool.Name)
			listed := list.Tools[slices.IndexFunc(list.Tools, func(l *mcp.Tool) bool { return l.Name == tool.Name })]
			if diff := cmp.Diff(listed, tool); diff != "" {
				t.Errorf("definition (-list +found):\n%s", diff)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s for %q (-want +got):\n%s", tt.query, tt.scope, diff)
		}
	}
}

// A client that disconnects cancels its call.
func TestMCPServer_CancelsCallsOfDisconnectedClients(t *testing.T) {
	started, ended := make(chan struct{}, 1), make(chan struct{}, 1)
	agent := startAgent(t, "greeter", func(ctx context.Context, _ contract.Task) (contract.Result, error) {
		started <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		return contract.Result{}, ctx.Err()
	})
	s := startServer(t, "clients:\n"+entry("greeter", "greet", "people", agent.url))
	agent.trust(s)
	ctx, disconnect := context.WithCancel(t.Context())
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"route_request","arguments":{"prompt":"greet people"}}}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url("/mcp"), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	failed := make(chan error, 1)
	go func() {
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		failed <- err
	}()
	testkit.Receive(t, started)
	disconnect()
	testkit.Receive(t, ended)
	if err := testkit.Receive(t, failed); err == nil {
		t.Error("got a response, want the end of the connection")
	}
}

// A client that cancels a call of a tool cancels the call at the MCP server, whatever version of
// the protocol it speaks, and can make other calls.
func TestMCPServer_PassesOnCancellation(t *testing.T) {
	started, ended := make(chan struct{}, 1), make(chan struct{}, 1)
	tools := mcp.NewServer(&mcp.Implementation{Name: "tools", Version: "1"}, nil)
	mcp.AddTool(tools, &mcp.Tool{Name: "hang"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		started <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		return nil, nil, ctx.Err()
	})
	backend := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tools }, nil))
	t.Cleanup(backend.Close)
	_, change := useMCP(t, `{"servers":{"tools":{"url":"`+backend.URL+`"}}}`)
	s := startServer(t, "clients: {}\n", change)
	for _, version := range []string{"2025-03-26", "2025-11-25", "2026-07-28"} {
		for _, progress := range []bool{false, true} {
			session := s.connectMCPVersion("", version, nil)
			ctx, cancel := context.WithCancel(t.Context())
			failed := make(chan error, 1)
			go func() {
				params := &mcp.CallToolParams{Name: "tools__hang"}
				if progress {
					params.SetProgressToken("token")
				}
				_, err := session.CallTool(ctx, params)
				failed <- err
			}()
			testkit.Receive(t, started)
			cancel()
			testkit.Receive(t, ended)
			if err := testkit.Receive(t, failed); err == nil {
				t.Errorf("version %s, progress %t: got a result, want an error", version, progress)
			}
			if names := toolNames(t, session); !slices.Contains(names, "tools__hang") {
				t.Errorf("version %s, progress %t: got tools %v after the cancellation, want tools__hang", version, progress, names)
			}
		}
	}
}

// A message that is not decoded by the SDK has an error in the form of JSON-RPC.
func TestMCPServer_RejectsMessages(t *testing.T) {
	s := startServer(t, "clients: {}\n")
	accept := http.Header{"Accept": {"application/json, text/event-stream"}}
	for _, tt := range []struct {
		method, body, want string
		status             int
	}{
		{"POST", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, "must be an object, got an array: it must be one JSON-RPC message", http.StatusBadRequest},
		{"POST", `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}`, `name "method" appears more than once`, http.StatusBadRequest},
		{"POST", `{"jsonrpc":"2.0","id":1,"method":"pin`, "must be one JSON-RPC message", http.StatusBadRequest},
		{"POST", `{"jsonrpc":"2.0","id":"a","method":"no/such"}`, `"no/such" unsupported`, http.StatusBadRequest},
		{"POST", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, "invalid", http.StatusBadRequest},
		{"DELETE", "", "the methods of this path are", http.StatusMethodNotAllowed},
	} {
		got := s.do(call{method: tt.method, path: "/mcp", body: tt.body, header: accept})
		var e struct {
			Error struct{ Message string }
		}
		if err := json.Unmarshal(got.body, &e); err != nil || got.status != tt.status || !strings.Contains(e.Error.Message, tt.want) {
			t.Errorf("%s %s: got %d %s, want %d %q", tt.method, tt.body, got.status, got.body, tt.status, tt.want)
		}
	}
	got := s.do(call{method: "POST", path: "/mcp", body: `{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`})
	if got.status != http.StatusBadRequest || !strings.HasPrefix(string(got.body), `{"jsonrpc":"2.0","id":9007199254740993,"error":{"code":-32000,"message":"Accept must contain both`) {
		t.Errorf("without Accept: got %d %s", got.status, got.body)
	}
	for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		body := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + version + `","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
		got := s.do(call{method: "POST", path: "/mcp", body: body, header: accept})
		if got.status != http.StatusOK || !strings.Contains(string(got.body), `"protocolVersion":"`+version+`"`) {
			t.Errorf("version %s: got %d %s", version, got.status, got.body)
		}
	}
}

func TestMCPServer_CallersUseTheirTools(t *testing.T) {
	m := newTokenIssuer()
	_, change := useMCP(t, samples("weather", "system"))
	s := startGuarded(t, m, "clients:\n"+entry("greeter", "greet", "people", "http://127.0.0.1:1/")+"routing: { confidence_threshold: 0.5 }\n", change)
	const invoke = contract.ScopeInvokePrefix
	for _, tt := range []struct {
		scope string
		tools []string
	}{
		{invoke + "weather.query", []string{"find_tools", "weather__query"}},
		{contract.ScopeRouteSubmit, []string{"route_request"}},
		{contract.ScopeAgentsRead + " " + invoke + "system.echo", []string{"find_tools", "list_capabilities", "system__echo"}},
	} {
		session := s.connectMCP(m.token("ana", tt.scope, nil), nil)
		if diff := cmp.Diff(tt.tools, toolNames(t, session)); diff != "" {
			t.Errorf("scope %s: tools (-want +got):\n%s", tt.scope, diff)
		}
		for _, name := range []string{"find_tools", "list_capabilities", "route_request", "system__echo", "system__info", "weather__query", "none__such"} {
			if slices.Contains(tt.tools, name) {
				continue
			}
			_, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: map[string]any{}})
			if err == nil || !strings.Contains(err.Error(), "unknown tool") {
				t.Errorf("scope %s: call of %s: got error %v, want an unknown tool", tt.scope, name, err)
			}
		}
	}
	// An agent that the caller may not use is not listed.
	session := s.connectMCP(m.token("ana", contract.ScopeAgentsRead, nil), nil)
	if _, text := callTool(t, session, "list_capabilities", nil); text != `{"agents":[]}` {
		t.Errorf("got %s, want no agent", text)
	}
	got := s.do(call{method: "POST", path: "/mcp", token: m.token("ana", "tickets", nil), body: "{}"})
	if got.status != http.StatusForbidden || !strings.Contains(string(got.body), invoke) {
		t.Errorf("without a scope: got %d %s", got.status, got.body)
	}
	got = s.do(call{method: "POST", path: "/mcp", body: "{}"})
	if got.status != http.StatusUnauthorized || got.header.Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("without a token: got %d %q", got.status, got.header.Get("WWW-Authenticate"))
	}
	if got := s.do(call{method: "GET", path: "/.well-known/oauth-protected-resource"}); got.status != http.StatusNotFound {
		t.Errorf("metadata without an identity provider: got %d %s", got.status, got.body)
	}
}

// A client without a token learns where to get one (RFC 9728).
func TestMCPServer_NamesIdentityProviders(t *testing.T) {
	m := newTokenIssuer()
	s := startGuarded(t, m, "clients: {}\n", func(c *config.Config) {
		keys := httptest.NewServer(http.NotFoundHandler())
		t.Cleanup(keys.Close)
		c.PublicURL = "https://router.example"
		c.Auth.Issuers = []config.Issuer{{Issuer: "https://id.example", JWKSURL: keys.URL}}
	})
	const document = "/.well-known/oauth-protected-resource/mcp"
	for _, token := range []string{"", "invalid", m.token("ana", "tickets", nil)} {
		got := s.do(call{method: "POST", path: "/mcp", token: token, body: "{}"})
		if want := `resource_metadata="https://router.example` + document + `"`; !strings.Contains(got.header.Get("WWW-Authenticate"), want) {
			t.Errorf("got %d %q, want %s", got.status, got.header.Get("WWW-Authenticate"), want)
		}
	}
	got := s.do(call{method: "POST", path: "/api/v1/route", body: "{}"})
	if challenge := got.header.Get("WWW-Authenticate"); challenge != "Bearer" {
		t.Errorf("got %q for the REST interface, want no metadata", challenge)
	}
	got = s.do(call{method: "GET", path: document})
	want := `{"resource":"https://router.example/mcp","authorization_servers":["https://id.example"],"scopes_supported":["route:submit","agents:read"],"bearer_methods_supported":["header"]}`
	if got.status != http.StatusOK || string(got.body) != want {
		t.Errorf("got %d %s, want %s", got.status, got.body, want)
	}
}

// A tool has the title that its server lists, which clients show to people.
func TestMCPServer_ListsTitles(t *testing.T) {
	tools := mcp.NewServer(&mcp.Implementation{Name: "tools", Version: "1"}, nil)
	mcp.AddTool(tools, &mcp.Tool{Name: "work", Title: "Work slowly"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{}, nil, nil
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tools }, &mcp.StreamableHTTPOptions{Stateless: true})
	backend := httptest.NewServer(handler)
	t.Cleanup(backend.Close)
	_, change := useMCP(t, `{"servers":{"tools":{"url":"`+backend.URL+`"}}}`)
	list, err := startServer(t, "clients: {}\n", change).connectMCP("", nil).ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(list.Tools, func(tool *mcp.Tool) bool { return tool.Name == "tools__work" })
	if i < 0 || list.Tools[i].Title != "Work slowly" {
		t.Errorf("got tools %+v, want tools__work with its title", list.Tools)
	}
}

// The progress of a tool reaches the client that asks for it, before the result.
func TestMCPServer_ReportsProgress(t *testing.T) {
	slow := mcp.NewServer(&mcp.Implementation{Name: "slow", Version: "1"}, nil)
	mcp.AddTool(slow, &mcp.Tool{Name: "work"}, func(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		for i := 1; i <= 3; i++ {
			params := &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: float64(i), Total: 3, Message: "step"}
			if err := req.Session.NotifyProgress(ctx, params); err != nil {
				return nil, nil, err
			}
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.ImageContent{Data: []byte("image"), MIMEType: "image/png"}}}, nil, nil
	})
	backend := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return slow }, nil))
	t.Cleanup(backend.Close)
	_, change := useMCP(t, `{"servers":{"slow":{"url":"`+backend.URL+`","tools":{"prefix":"my_"}}}}`)
	s := startServer(t, "clients: {}\n", change)
	for _, version := range []string{"2025-03-26", "2025-11-25", "2026-07-28"} {
		reports := make(chan float64, 3)
		session := s.connectMCPVersion("", version, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			reports <- req.Params.Progress
		}})
		if names := toolNames(t, session); !slices.Contains(names, "my_work") {
			t.Fatalf("got tools %v, want my_work", names)
		}
		params := &mcp.CallToolParams{Name: "my_work"}
		params.SetProgressToken("token")
		result, err := session.CallTool(t.Context(), params)
		if err != nil {
			t.Fatal(err)
		}
		for want := 1.0; want <= 3; want++ {
			if got := testkit.Receive(t, reports); got != want {
				t.Errorf("version %s: got progress %v, want %v", version, got, want)
			}
		}
		if image, ok := result.Content[0].(*mcp.ImageContent); !ok || string(image.Data) != "image" || image.MIMEType != "image/png" {
			t.Errorf("version %s: got content %+v, want the image", version, result.Content[0])
		}
	}
}
