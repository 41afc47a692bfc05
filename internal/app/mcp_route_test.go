package app

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/testkit"
)

// weatherRegistry routes requests about the weather to the sample server.
func weatherRegistry(more string) string {
	return `clients:
  weather_agent:
    match: { intent: [weather_forecast], domains: [weather] }
    examples:
      weather_forecast: ["what is the weather in Paris?", "will it rain tomorrow in Rome?", "weather forecast for Berlin"]
    endpoint:
      protocol: mcp
      action: weather.query
      arguments:
        ubicacion: { from: prompt, match: '(?i)weather in ([\p{L}\p{M} ]+)', default: Madrid }
` + more
}

const askWeather = `{"content":{"prompt":"Weather forecast please: what is the weather in Lisbon?"}}`

// A request in plain language is routed to a tool.
func TestMCP_RouteReachesTool(t *testing.T) {
	_, change := useMCP(t, samples("weather"))
	var dir string
	s := startServer(t, weatherRegistry(""), change, func(c *config.Config) { dir = c.DataDir })
	waitForServers(s, "weather")
	resp := s.route(askWeather)
	if resp.Status != contract.StatusCompleted || !strings.HasPrefix(resp.Data.Answer, "Lisbon: lluvia probable") || resp.Tasks[0].Attempts != 1 {
		t.Fatalf("got status %s, answer %q, tasks %+v", resp.Status, resp.Data.Answer, resp.Tasks)
	}
	log, err := audit.OpenCopy(t.Context(), dir, s.core.persistence.contentKeys)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	var got []string
	err = log.Walk(t.Context(), func(rec *audit.Record) {
		if rec.Kind == audit.KindToolCall && rec.RequestID == resp.RequestID {
			got = append(got, rec.Action+" "+strings.Join(rec.Agents, " "))
		}
	})
	if diff := cmp.Diff([]string{"weather.query weather_agent"}, got); diff != "" || err != nil {
		t.Errorf("calls in the audit log, error %v (-want +got):\n%s", err, diff)
	}
}

// The caller needs the scope of the agent and no scope of the action; the agent needs a capability
// that the server declares.
func TestMCP_RouteChecksAgentAndCapabilities(t *testing.T) {
	_, change := useMCP(t, samples("weather"))
	issuer := newTokenIssuer()
	for capability, want := range map[string]contract.Status{"weather:read": contract.StatusCompleted, "weather:*": contract.StatusCompleted, "gis:read": contract.StatusFailed} {
		t.Run(capability, func(t *testing.T) {
			s := startGuarded(t, issuer, weatherRegistry("    mcp_capabilities: ['"+capability+"']\n"), change)
			testkit.Eventually(t, "the server is connected", func() bool { return strings.Contains(s.get("/readyz"), `"connected":1`) })
			var resp contract.Response
			got := s.do(call{method: "POST", path: "/api/v1/route", token: issuer.token("ana", "route:submit agent:weather_agent", nil), body: askWeather})
			if err := json.Unmarshal(got.body, &resp); err != nil || resp.Status != want {
				t.Errorf("got %d %s, want status %s", got.status, got.body, want)
			}
			got = s.do(call{method: "POST", path: "/api/v1/route", token: issuer.token("bob", "route:submit agent:other mcp:invoke:weather.query", nil), body: askWeather})
			if strings.Contains(string(got.body), "lluvia") {
				t.Errorf("got the tool called for a caller without the agent: %s", got.body)
			}
			got = s.do(call{method: "POST", path: "/api/v1/mcp/invoke", token: issuer.token("ana", "route:submit agent:weather_agent", nil), body: `{"action":"weather.query","input":{"ubicacion":"Lugo"}}`})
			if got.status != http.StatusForbidden {
				t.Errorf("call without the scope: got %d %s, want 403", got.status, got.body)
			}
		})
	}
}

// An agent whose action no server has causes one warning, with a similar action, when the
// servers are connected, and again if the registry names another one.
func TestMCP_WarnsOfMissingActions(t *testing.T) {
	agent := func(action string) string {
		return "clients:\n  a:\n    match: { intent: [talk], domains: [prose] }\n    endpoint: { protocol: mcp, action: " + action + " }\n"
	}
	_, change := useMCP(t, restPlugin(t, "plugin", "echo"))
	var registry string
	s := startServer(t, agent("plugin.ecko"), change, func(c *config.Config) { registry = c.Registry.File })
	const text = "no MCP server has the action of an agent"
	testkit.Eventually(t, "the misspelt action is logged", func() bool {
		return strings.Contains(s.log.String(), `"action":"plugin.ecko","did_you_mean":"plugin.echo"`)
	})
	for _, action := range []string{"plugin.echo", "other.read"} {
		if err := os.WriteFile(registry, []byte(agent(action)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Eventually(t, "the action of an unknown server is logged", func() bool {
		return strings.Contains(s.log.String(), `"agent":"a","action":"other.read"`)
	})
	if n := strings.Count(s.log.String(), text); n != 2 {
		t.Errorf("got %d warnings, want 2:\n%s", n, s.log.String())
	}
}
