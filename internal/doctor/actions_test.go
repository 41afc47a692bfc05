package doctor

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caprouter/caprouter/internal/app"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/testkit"
)

// The server of an action may be registered over HTTP: the data directory has its name, also
// while a router uses the directory.
func TestRun_KnowsRegisteredServers(t *testing.T) {
	const tool = "  %s: {match: {intent: [%[1]s], domains: [x]}, endpoint: {protocol: mcp, action: %[2]s}%[3]s}\n"
	const misspelt = "the action ticket.list of agent reader is of no server in mcp.json, and of no registered one"
	registry := modelRegistry + fmt.Sprintf(tool, "writer", "tickets.new.create", "")
	cfg := diagnosable(t, registry)
	t.Chdir(t.TempDir())
	if f := findings(t, cfg, noEnv)["mcp"]; f.Level != LevelWarn || !strings.Contains(f.Detail, "tickets.new.create") {
		t.Errorf("before the registration: got %+v, want a warning", f)
	}
	ctx, stop := context.WithCancel(t.Context())
	s, err := app.Start(ctx, cfg, app.Options{LogOutput: &testkit.LogBuffer{}, LookupEnv: noEnv})
	if err != nil {
		stop()
		t.Fatal(err)
	}
	body := fmt.Sprintf(`{"name":"tickets.new","url":"http://%s/"}`, testkit.RefusingAddress)
	r, err := http.Post("http://"+s.Addr()+"/api/v1/mcp/servers", "application/json", strings.NewReader(body))
	if err != nil || r.StatusCode != http.StatusCreated {
		t.Errorf("register: got %v, %v", r, err)
	}
	if err == nil {
		_ = r.Body.Close()
	}
	check := func(state string) {
		t.Helper()
		if f := findings(t, cfg, noEnv)["mcp"]; f.Level != LevelSkip {
			t.Errorf("%s: got %+v, want no problem", state, f)
		}
	}
	check("running router")
	stop()
	if err := s.Wait(); err != nil {
		t.Error(err)
	}
	check("stopped router")
	if f := ProbeActions(t.Context(), cfg, app.Options{LookupEnv: noEnv}); f.Level != LevelWarn || !strings.Contains(f.Detail, `server "tickets.new" is not connected`) {
		t.Errorf("probe: got %+v, want the server not connected", f)
	}

	cfg.Registry.File = writeFile(t, "capabilities.yaml", registry+fmt.Sprintf(tool, "reader", "ticket.list", "")+
		fmt.Sprintf(tool, "limited", "tickets.new.close", ", mcp_capabilities: ['tickets:write']"))
	f := findings(t, cfg, noEnv)["mcp"]
	for _, want := range []string{misspelt, "agent limited declares no capability that the server of its action tickets.new.close provides"} {
		if f.Level != LevelWarn || !strings.Contains(f.Detail, want) || strings.Contains(f.Detail, "writer") {
			t.Errorf("got %+v, want a warning with %q, and none of writer", f, want)
		}
	}
	cfg.Store.URL = "nats://" + testkit.RefusingAddress
	if f := findings(t, cfg, noEnv)["mcp"]; strings.Contains(f.Detail, misspelt) || !strings.Contains(f.Detail, "registered over HTTP: limited, reader, writer") {
		t.Errorf("shared store: got %+v, want the agents that are not checked", f)
	}
}

// Servers that are registered over HTTP are connected with their credentials, if an agent uses
// them and no server of the file has their name.
func TestProbeActions_ConnectsToRegisteredServers(t *testing.T) {
	const tool = "  %s: {match: {intent: [%[1]s], domains: [x]}, endpoint: {protocol: mcp, action: %[2]s}}\n"
	server := mcp.NewServer(&mcp.Implementation{Name: "tickets", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "create"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		t.Error("the tool is called")
		return nil, nil, nil
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Api-Key") != "secret" {
			http.Error(w, "no key", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	defer backend.Close()
	defer backend.CloseClientConnections()

	cfg := diagnosable(t, modelRegistry+fmt.Sprintf(tool, "writer", "tickets.create"))
	t.Chdir(t.TempDir())
	ctx, stop := context.WithCancel(t.Context())
	s, err := app.Start(ctx, cfg, app.Options{LogOutput: &testkit.LogBuffer{}, LookupEnv: noEnv})
	if err != nil {
		stop()
		t.Fatal(err)
	}
	for name, url := range map[string]string{"tickets": backend.URL, "unused": "http://" + testkit.RefusingAddress} {
		body := fmt.Sprintf(`{"name":%q,"url":%q,"headers":{"X-Api-Key":"secret"}}`, name, url)
		r, err := http.Post("http://"+s.Addr()+"/api/v1/mcp/servers", "application/json", strings.NewReader(body))
		if err != nil || r.StatusCode != http.StatusCreated {
			t.Fatalf("register: got %v, %v", r, err)
		}
		_ = r.Body.Close()
	}
	probe := func() Finding { return ProbeActions(t.Context(), cfg, app.Options{LookupEnv: noEnv}) }
	if f := probe(); f.Level != LevelOK || f.Detail != "the servers have the actions of 1 agent" {
		t.Errorf("running router: got %+v, want ok", f)
	}
	stop()
	if err := s.Wait(); err != nil {
		t.Error(err)
	}
	if f := probe(); f.Level != LevelOK || f.Detail != "the servers have the actions of 1 agent" {
		t.Errorf("stopped router: got %+v, want ok", f)
	}

	declared := cfg
	cfg.Registry.File = writeFile(t, "capabilities.yaml", modelRegistry+fmt.Sprintf(tool, "writer", "tickets.creat"))
	if f := probe(); f.Level != LevelWarn || f.Detail != "no server has the action tickets.creat of agent writer, did you mean tickets.create?" {
		t.Errorf("misspelt action: got %+v, want a warning", f)
	}
	cfg = declared
	cfg.MCP.File = writeFile(t, config.DefaultMCPFile, `{"plugins":[{"id":"tickets","endpoint":"http://127.0.0.1:1/","actions":[{"name":"list"}]}]}`)
	if f := probe(); f.Level != LevelWarn || !strings.Contains(f.Detail, "no server has the action tickets.create of agent writer") {
		t.Errorf("overridden by the file: got %+v, want a warning", f)
	}
	cfg.MCP.File = declared.MCP.File
	cfg.Store.Encryption.KeyEnv = "OTHER_KEY"
	other := sha256.Sum256([]byte("another key"))
	key := func(string) (string, bool) { return base64.StdEncoding.EncodeToString(other[:]), true }
	f := ProbeActions(t.Context(), cfg, app.Options{LookupEnv: key})
	if f.Level != LevelWarn || !strings.Contains(f.Detail, `the registered server "tickets" cannot be used: `) {
		t.Errorf("other key: got %+v, want a warning", f)
	}
}

// Agents whose server is registered in a shared store are not probed, and the others are.
func TestProbeActions_SkipsServersOfSharedStore(t *testing.T) {
	const tool = "  %s: {match: {intent: [%[1]s], domains: [x]}, endpoint: {protocol: mcp, action: %[2]s}}\n"
	cfg := diagnosable(t, modelRegistry+fmt.Sprintf(tool, "reader", "weather.query")+fmt.Sprintf(tool, "writer", "tickets.create"))
	cfg.MCP.File = writeFile(t, config.DefaultMCPFile, `{"plugins":[{"id":"weather","endpoint":"http://127.0.0.1:1/","actions":[{"name":"query"}]}]}`)
	cfg.Store.URL = "nats://" + testkit.RefusingAddress
	f := ProbeActions(t.Context(), cfg, app.Options{LookupEnv: noEnv})
	if f.Level != LevelOK || !strings.Contains(f.Detail, "the servers have the actions of 1 agent") || !strings.Contains(f.Detail, "writer") {
		t.Errorf("got %+v, want ok for one agent, and the name of the other", f)
	}
}

func TestProbeActions(t *testing.T) {
	const agent = "  weather_agent: {match: {intent: [forecast], domains: [weather]}, endpoint: {protocol: mcp, action: %s}}\n"
	const servers = `{"plugins":[{"id":"weather","endpoint":"http://127.0.0.1:1/","actions":[{"name":"query"}]}]}`
	for _, tt := range []struct {
		name, action, file string
		level, detail      string
	}{
		{"known action", "weather.query", servers, LevelOK, "the servers have the actions of 1 agent"},
		{"misspelt tool", "weather.qurey", servers, LevelWarn, "no server has the action weather.qurey of agent weather_agent, did you mean weather.query?"},
		{"server without the capability", "weather.query}, mcp_capabilities: ['gis:read'], health: {interval_s: 0", servers, LevelWarn, "agent weather_agent declares no capability that the server of its action weather.query provides"},
		{"unknown server", "storage.read", servers, LevelWarn, "no server has the action storage.read of agent weather_agent"},
		{"server that cannot be reached", "weather.query", `{"servers":[{"id":"weather","url":"http://127.0.0.1:1/"}]}`, LevelWarn, `server "weather" is not connected, so that its tools are not known`},
		{"no servers", "weather.query", "", LevelSkip, "no MCP servers"},
		{"no agent", "", servers, LevelSkip, "no agent is a tool"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			registry := modelRegistry
			if tt.action != "" {
				registry += fmt.Sprintf(agent, tt.action)
			}
			cfg := diagnosable(t, registry)
			t.Chdir(t.TempDir())
			if tt.file != "" {
				if err := os.WriteFile(config.DefaultMCPFile, []byte(tt.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got := ProbeActions(t.Context(), cfg, app.Options{LookupEnv: noEnv})
			if got.Check != "mcp actions" || got.Level != tt.level || !strings.Contains(got.Detail, tt.detail) {
				t.Errorf("got %+v, want %s with detail %q", got, tt.level, tt.detail)
			}
		})
	}
}
