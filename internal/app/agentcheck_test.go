package app

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/rest"
	"github.com/caprouter/caprouter/internal/testkit"
)

// agent returns the agent as GET /api/v1/agents/{id} describes it.
func (s *testServer) agent(id string) (a rest.Agent) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(s.get("/api/v1/agents/"+id)), &a); err != nil {
		s.t.Fatal(err)
	}
	return a
}

func describeAgent(a *rest.Agent) string {
	return strings.TrimSpace(string(a.State) + " " + strings.Join(append(a.Reasons, a.Missing...), " "))
}

// waitForAgent waits until the agent has the state, reasons and missing capabilities.
func (s *testServer) waitForAgent(id, want string) {
	s.t.Helper()
	var got string
	testkit.Eventually(s.t, id+" is "+want, func() bool {
		a := s.agent(id)
		got = describeAgent(&a)
		return got == want
	})
}

// standby is an http agent that serves what weather_agent serves, with less priority.
const standby = `  standby:
    match: { intent: [weather_forecast], domains: [weather, storms] }
    mcp_capabilities: ['weather:read']
    endpoint: { protocol: http, url: "http://127.0.0.1:1/" }
`

// The capabilities of all agents are checked at the start, without a request of an agent. An
// agent that is a tool gets no tasks while its action cannot be called, and another agent
// serves its requests. An agent that only lacks a capability stays
// eligible.
func TestMCP_ChecksAgentsWhenLoaded(t *testing.T) {
	t.Parallel()
	path, change := useMCP(t, samples("system"))
	s := startServer(t, weatherRegistry("    mcp_capabilities: ['weather:read']\n"+standby), change)
	s.waitForAgent("weather_agent", "degraded action_unavailable capability_missing weather:read")
	s.waitForAgent("standby", "degraded capability_missing weather:read")
	dryRun := strings.Replace(askWeather, `{"content"`, `{"options":{"dry_run":true},"content"`, 1)
	testkit.Eventually(t, "the standby is chosen", func() bool {
		return cmp.Equal(s.route(dryRun).Decision.Chosen, []string{"standby"})
	})
	for _, text := range []string{
		`"msg":"no MCP server provides a capability of an agent","agent":"standby","capability":"weather:read"`,
		`"msg":"no MCP server has the action of an agent","agent":"weather_agent","action":"weather.query"`,
	} {
		if n := strings.Count(s.log.String(), text); n != 1 {
			t.Errorf("got %d lines with %s, want 1:\n%s", n, text, s.log.String())
		}
	}
	if err := os.WriteFile(path, []byte(samples("system", "weather")), 0o600); err != nil {
		t.Fatal(err)
	}
	s.waitForAgent("weather_agent", "active")
	s.waitForAgent("standby", "active")
	testkit.Eventually(t, "the tool is called", func() bool { return strings.Contains(s.route(askWeather).Data.Answer, "Lisbon: lluvia") })
}

// Without another agent, the answer is that of any agent that takes no task now.
func TestMCP_NamesActionThatCannotBeCalled(t *testing.T) {
	t.Parallel()
	_, change := useMCP(t, samples("system"))
	s := startServer(t, weatherRegistry(""), change)
	s.waitForAgent("weather_agent", "degraded action_unavailable")
	testkit.Eventually(t, "the tool is not called", func() bool {
		resp := s.route(askWeather)
		return resp.Status == contract.StatusFailed && resp.Tasks[0].Attempts == 0 && resp.Tasks[0].Error.Detail == "not called: its tool cannot be called"
	})
	// An agent with another protocol is eligible again.
	s.write("clients:\n" + entry("weather_agent", "weather_forecast", "weather", refusing))
	if err := s.reload(); err != nil {
		t.Fatal(err)
	}
	s.waitForAgent("weather_agent", "active")
	testkit.Eventually(t, "the agent is chosen", func() bool { return len(s.route(askWeather).Tasks) == 1 })
}

// The stream of events begins with the state of all agents. A caller that may use an agent
// sees its capabilities, and not which tool it is.
func TestMCP_EventsBeginWithStateOfAgents(t *testing.T) {
	m := newTokenIssuer()
	_, change := useMCP(t, samples("system"))
	s := startGuarded(t, m, weatherRegistry("    mcp_capabilities: ['weather:read']\n"), change)
	for scope, want := range map[string][]contract.GatewayEvent{
		"mcp:read admin": {
			{Capability: "", Tool: "weather.query", State: contract.BindingDegraded, Error: "no MCP server has the action"},
			{Capability: "weather:read", State: contract.BindingDegraded, Suggestion: `add a server with the capability "weather:read"`},
		},
		"mcp:read agent:weather_agent": {
			{State: contract.BindingDegraded},
			{Capability: "weather:read", State: contract.BindingDegraded, Suggestion: `add a server with the capability "weather:read"`},
		},
		"mcp:read": nil,
	} {
		testkit.Eventually(t, "the agents were checked", func() bool { return len(s.core.mcp.Bindings()) == 2 })
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url(mcpEvents), http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+m.token("ana", scope, nil))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var got []contract.GatewayEvent
		lines := bufio.NewScanner(resp.Body)
		for len(got) < len(want) && lines.Scan() {
			var e contract.GatewayEvent
			data, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok {
				continue
			}
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				t.Fatal(err)
			}
			if e.Type == contract.AgentBriefingEvent {
				got = append(got, contract.GatewayEvent{Capability: e.Capability, Tool: e.Tool, State: e.State, Error: e.Error, Suggestion: e.Suggestion})
			}
		}
		_ = resp.Body.Close()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("scope %s: events (-want +got):\n%s", scope, diff)
		}
	}
}
