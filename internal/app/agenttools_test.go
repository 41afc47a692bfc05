package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/rest"
)

const (
	invokeWeather = `{"action":"weather.query","input":{"ubicacion":"Lugo"}}`
	invokeEcho    = `{"action":"system.echo","input":{"text":"hi"}}`
	invokeBoth    = "mcp:invoke:weather.query mcp:invoke:system.echo"
)

// startToolServer runs a router with the sample servers weather and system. Of its agents,
// only "forecaster" declares a capability, that of weather; "worker" may register itself.
func startToolServer(t *testing.T, m tokenIssuer, change ...func(*config.Config)) *testServer {
	t.Helper()
	_, servers := useMCP(t, samples("weather", "system"))
	registry := "clients:\n" + entry("forecaster", "forecast", "weather", refusing, ", mcp_capabilities: ['weather:read']") +
		entry("plain", "talk", "prose", refusing) + "grants:\n  worker: { intents: [work], domains: [text] }\n"
	return startGuarded(t, m, registry, append(change, servers)...)
}

// invoke calls a tool with a token for the subject, and returns the status and the body.
func (s *testServer) invoke(token, body string) (status int, text string) {
	s.t.Helper()
	got := s.do(call{method: "POST", path: "/api/v1/mcp/invoke", token: token, body: body})
	return got.status, string(got.body)
}

// An agent calls tools of servers that provide one of its mcp_capabilities, whatever other
// scopes its token has. An agent that declares none calls no tool.
func TestMCP_AgentCallsToolsOfItsCapabilities(t *testing.T) {
	t.Parallel()
	m := newTokenIssuer()
	s := startToolServer(t, m)
	for _, tt := range []struct {
		subject, body string
		status        int
	}{
		{"forecaster", invokeWeather, http.StatusOK},
		{"forecaster", invokeEcho, http.StatusForbidden},
		{"plain", invokeWeather, http.StatusForbidden},
		{"worker", invokeWeather, http.StatusForbidden}, // not registered yet
		{"ana", invokeWeather, http.StatusOK},
		{"ana", invokeEcho, http.StatusOK},
	} {
		if status, text := s.invoke(m.token(tt.subject, invokeBoth+" agent:* admin", nil), tt.body); status != tt.status {
			t.Errorf("%s calls %s: got %d %s, want %d", tt.subject, tt.body, status, text, tt.status)
		}
	}
	status, text := s.invoke(m.token("forecaster", invokeBoth, nil), invokeEcho)
	for _, part := range []string{`agent \"forecaster\" may not call system.echo`, `\"system:read\"`, "mcp_capabilities"} {
		if status != http.StatusForbidden || !strings.Contains(text, part) {
			t.Errorf("got %d %s, want 403 with %s", status, text, part)
		}
	}
	if status, text = s.invoke(m.token("forecaster", "mcp:read", nil), invokeWeather); status != http.StatusForbidden || !strings.Contains(text, "mcp:invoke:") {
		t.Errorf("without the scope: got %d %s, want 403 that names it", status, text)
	}
	var test rest.MCPTestResult
	got := s.do(call{method: "POST", path: "/api/v1/mcp/test", token: m.token("forecaster", "mcp:read "+invokeBoth, nil), body: `{"server":"system","action":"echo","input":{"text":"hi"}}`})
	if err := json.Unmarshal(got.body, &test); err != nil || test.OK || test.Error == nil || test.Error.Code != contract.ActionForbidden {
		t.Errorf("test of a tool: got %s, want FORBIDDEN", got.body)
	}
}

// The agent stays limited when it has registered itself, when it is disabled, and when it has
// left. A caller of another issuer than that of its registration is not the agent.
func TestMCP_RegisteredAgentCallsNoTools(t *testing.T) {
	t.Parallel()
	m := newTokenIssuer()
	s := startToolServer(t, m, func(c *config.Config) { c.Dispatch.AllowPrivate = []string{"127.0.0.0/8"} })
	own, scopes := m.token("worker", "agents:register "+invokeBoth, nil), "admin "+invokeBoth
	check := func(when string) {
		t.Helper()
		if status, text := s.invoke(own, invokeWeather); status != http.StatusForbidden {
			t.Errorf("%s: got %d %s, want 403", when, status, text)
		}
	}
	const path = "/api/v1/agents/worker"
	registration := `{"match":{"intent":["work"],"domains":["text"]},"endpoint":{"protocol":"pull"}}`
	if got := s.do(call{method: "PUT", path: path, token: own, body: registration}); got.status != http.StatusCreated {
		t.Fatalf("register: got %d %s", got.status, got.body)
	}
	check("registered")
	if status, text := s.invoke(m.token("worker", invokeBoth, map[string]any{"iss": "elsewhere"}), invokeWeather); status != http.StatusOK {
		t.Errorf("caller of another issuer: got %d %s, want 200", status, text)
	}
	if got := s.do(call{method: "POST", path: path + "/disable", token: m.token("ops", scopes, nil)}); got.status >= 300 {
		t.Fatalf("disable: got %d %s", got.status, got.body)
	}
	check("disabled")
	if got := s.do(call{method: "DELETE", path: path, token: own}); got.status >= 300 {
		t.Fatalf("leave: got %d %s", got.status, got.body)
	}
	check("has left")
}

// An MCP client with the token of an agent sees and calls the tools of its capabilities.
func TestMCPServer_ListsToolsOfAgent(t *testing.T) {
	t.Parallel()
	m := newTokenIssuer()
	s := startToolServer(t, m)
	session := s.connectMCP(m.token("forecaster", invokeBoth, nil), nil)
	if diff := cmp.Diff([]string{"find_tools", "weather__query"}, toolNames(t, session)); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	if _, text := callTool(t, session, "weather__query", map[string]any{"ubicacion": "Lugo"}); !strings.HasPrefix(text, "Lugo: lluvia") {
		t.Errorf("got %q, want a forecast", text)
	}
	_, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "system__echo", Arguments: map[string]any{"text": "hi"}})
	if err == nil || !strings.Contains(err.Error(), "unknown tool") {
		t.Errorf("got error %v, want an unknown tool", err)
	}
}

// An agent binds its capabilities, and reads their events, without an entitlement to itself.
func TestMCP_AgentBindsItsCapabilities(t *testing.T) {
	m := newTokenIssuer()
	s := startToolServer(t, m)
	token := m.token("forecaster", "mcp:read", nil)
	for _, tt := range []struct {
		agent, capability string
		status            int
		text              string
	}{
		{"forecaster", "weather:read", http.StatusOK, `"agent_id":"forecaster"`},
		{"forecaster", "system:read", http.StatusForbidden, "forecaster does not declare the capability in mcp_capabilities"},
		{"plain", "weather:read", http.StatusForbidden, "there is no such agent, the caller may not use it, or it does not declare the capability"},
	} {
		got := s.do(call{method: "POST", path: "/api/v1/mcp/bind", token: token, body: fmt.Sprintf(`{"agent_id":%q,"capability":%q}`, tt.agent, tt.capability)})
		if got.status != tt.status || !strings.Contains(string(got.body), tt.text) {
			t.Errorf("%s binds %s: got %d %s, want %d with %q", tt.agent, tt.capability, got.status, got.body, tt.status, tt.text)
		}
	}
}
