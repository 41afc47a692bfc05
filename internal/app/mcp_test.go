package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/rest"
	"github.com/caprouter/caprouter/internal/testkit"
)

const mcpEvents = "/api/v1/mcp/events"

// restPlugin returns a registry file with a server of transport rest whose tool returns its input.
func restPlugin(t *testing.T, id, tool string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var action contract.Action
		if err := json.NewDecoder(r.Body).Decode(&action); err != nil {
			http.Error(w, "no", http.StatusBadRequest)
			return
		}
		_, _ = fmt.Fprintf(w, `{"type":"text","content":%q,"mime_type":"text/plain"}`, action.Input)
	}))
	t.Cleanup(server.Close)
	return fmt.Sprintf(`{"plugins":[{"id":%q,"endpoint":%q,"capabilities":["prose:read"],"actions":[{"name":%q}]}]}`, id, server.URL, tool)
}

// samples returns a registry file with sample servers in their own processes.
func samples(names ...string) string {
	servers := make([]string, len(names))
	for i, name := range names {
		servers[i] = fmt.Sprintf(`{"id":%q,"command":[%q,"sample",%q],"env":%s,"capabilities":["%s:read"]}`,
			name, os.Args[0], name, encode(testkit.RaceSettings()), name)
	}
	return `{"servers":[` + strings.Join(servers, ",") + `]}`
}

// useMCP writes a registry file of MCP servers, and returns its path and a change of the
// configuration to use it.
func useMCP(t *testing.T, content string) (path string, change func(*config.Config)) {
	t.Helper()
	path = writeFile(t, "mcp.json", content)
	return path, func(c *config.Config) { c.MCP.File = path }
}

// mcp sends a request to the MCP endpoints and decodes the response into v unless it is nil. It
// returns the id of the request.
func (s *testServer) mcp(method, path, body string, status int, v any) (requestID string) {
	s.t.Helper()
	got := s.do(call{method: method, path: "/api/v1/mcp" + path, body: body})
	if got.status != status {
		s.t.Fatalf("%s %s: got %d %s, want %d", method, path, got.status, got.body, status)
	}
	if v != nil {
		if err := json.Unmarshal(got.body, v); err != nil {
			s.t.Fatal(err)
		}
	}
	return got.header.Get("X-Request-Id")
}

func TestMCP_CallsAreRecordedAndErased(t *testing.T) {
	_, change := useMCP(t, samples("weather"))
	s := startServer(t, "clients: {}\n", change)
	var result contract.ActionResult
	id := s.mcp("POST", "/invoke", `{"action":"weather.query","input":{"ubicacion":"calle de ana@example.com"}}`, 200, &result)
	if result.Type != contract.ActionText || !strings.Contains(string(result.Content), "ana@example.com: lluvia") {
		t.Errorf("got %+v, want a forecast", result)
	}
	found, err := s.core.persistence.auditLog.Find(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	rec := found.ToolCall
	if rec == nil || rec.Action != "weather.query" || rec.Status != contract.StatusCompleted || rec.Subject != "local" {
		t.Fatalf("got record %+v, want the completed call", rec)
	}
	content := string(rec.Content)
	if strings.Contains(content, "ana@example.com") || !strings.Contains(content, "[EMAIL_1]") || !strings.Contains(content, "lluvia") {
		t.Errorf("got content %s, want the masked input and result", content)
	}
	if got := s.do(call{method: "DELETE", path: "/api/v1/requests/" + id}); got.status != http.StatusNoContent {
		t.Fatalf("erase: got %d %s", got.status, got.body)
	}
	if found, err = s.core.persistence.auditLog.Find(t.Context(), id); err != nil || !found.ToolCall.Erased || found.ToolCall.Action != "weather.query" {
		t.Errorf("got record %+v, error %v, want the facts without the content", found.ToolCall, err)
	}
	var problem rest.ToolProblem
	s.mcp("POST", "/invoke", `{"action":"weather.query","input":{"place":"Lugo"}}`, 422, &problem)
	if problem.ErrorCode != contract.ActionInvalidInput || len(problem.Errors) == 0 {
		t.Errorf("got %+v, want the mistakes of the input", problem)
	}
	if metrics := s.get("/metrics"); !strings.Contains(metrics, `caprouter_mcp_calls_total{outcome="OK",server="weather",tool="query"} 1`) {
		t.Errorf("got no count of the call in the metrics:\n%s", metrics)
	}
}

// waitForServers waits until exactly these servers are connected.
func waitForServers(s *testServer, names ...string) {
	s.t.Helper()
	testkit.Eventually(s.t, "the servers are connected", func() bool {
		var list rest.MCPServerList
		s.mcp("GET", "/servers", "", 200, &list)
		var connected []string
		for _, server := range list.Servers {
			if server.Status == "connected" {
				connected = append(connected, server.Name)
			}
		}
		return strings.Join(connected, " ") == strings.Join(names, " ")
	})
}

// Secrets of the registry file, and variables of the router, are in no output.
func TestMCP_RevealsNoSecrets(t *testing.T) {
	canaries := []string{"canary-in-env-1", "canary-in-header-2", "canary-in-args-3", "canary-variable-4", "canary-token-5", "canary-query-6"}
	t.Setenv("ROUTER_CANARY", "canary-of-the-router")
	lookup := func(name string) (string, bool) {
		values := map[string]string{"THE_VARIABLE": canaries[3], "THE_TOKEN": canaries[4]}
		v, ok := values[name]
		return v, ok
	}
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "the header "+r.Header.Get("X-Api-Key")+r.Header.Get("Authorization")+" is wrong", http.StatusForbidden)
	}))
	defer refuses.Close()
	_, change := useMCP(t, fmt.Sprintf(`{"servers":[
		{"id":"weather","command":[%q,"sample","weather"],"env":{"API_KEY":%q,"OTHER_TOKEN":"${THE_VARIABLE}"}},
		{"id":"crash","command":["sh","-c","echo $SECRET $0 >&2; exit 3",%q],"env":{"SECRET":%q}},
		{"id":"remote","transport":"http","url":"%s/?key=%s","headers":{"X-Api-Key":%q},"auth":{"type":"bearer","env":"THE_TOKEN"}}]}`,
		os.Args[0], canaries[0], canaries[2], canaries[0], refuses.URL, canaries[5], canaries[1]))
	s := startServerIn(t, lookup, "clients: {}\n", change)
	s.mcp("POST", "/test", `{"server":"crash"}`, 200, nil)
	s.mcp("POST", "/test", `{"server":"remote"}`, 200, nil)
	s.mcp("POST", "/test", `{"server":"weather","action":"query","input":{"ubicacion":"Lugo"}}`, 200, nil)
	outputs := []string{s.log.String(), s.get("/metrics"), s.get("/readyz")}
	for _, path := range []string{"/registry", "/servers", "/servers/crash", "/servers/remote", "/tools/pending", "/events"} {
		outputs = append(outputs, string(s.do(call{method: "GET", path: "/api/v1/mcp" + path}).body))
	}
	for _, body := range []string{`{"action":"crash.x"}`, `{"action":"remote.x"}`} {
		outputs = append(outputs, string(s.do(call{method: "POST", path: "/api/v1/mcp/invoke", body: body}).body))
	}
	for _, output := range outputs {
		for _, canary := range canaries {
			if strings.Contains(output, canary) {
				t.Errorf("got %s in an output: %s", canary, output)
			}
		}
	}
	environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", processOf(t, "weather")))
	if err != nil {
		t.Fatal(err)
	}
	if text := string(environment); strings.Contains(text, "ROUTER_CANARY") || !strings.Contains(text, "API_KEY="+canaries[0]) || !strings.Contains(text, "OTHER_TOKEN="+canaries[3]) {
		t.Errorf("got environment %q, want the declared variables and none of the router's", text)
	}
}
