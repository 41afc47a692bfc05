package app

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/audit"
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
		servers[i] = fmt.Sprintf(`{"id":%q,"command":[%q,"sample",%q],"capabilities":["%s:read"]}`, name, os.Args[0], name, name)
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

func TestMCP_FollowsFile(t *testing.T) {
	t.Parallel()
	path, change := useMCP(t, samples("weather"))
	s := startServer(t, "clients: {}\n", change)
	waitForServers(s, "weather")
	pid := processOf(t, "weather")
	replace := func(content string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	replace(`{"servers":[{"id":"weather","comand":"x"}]}`)
	testkit.Eventually(t, "the file is reported", func() bool {
		var ready rest.Readiness
		if err := json.Unmarshal([]byte(s.get("/readyz")), &ready); err != nil {
			t.Fatal(err)
		}
		return ready.Status == rest.ReadinessDegraded && ready.MCP.Stale && strings.Contains(ready.MCP.Error, `"comand"`)
	})
	if metrics := s.get("/metrics"); !strings.Contains(metrics, "caprouter_mcp_registry_stale 1") {
		t.Error("got a stale file without the gauge set")
	}
	s.mcp("POST", "/invoke", `{"action":"weather.query","input":{"ubicacion":"Lugo"}}`, 200, nil) // the last valid one
	replace(samples("weather", "system"))
	waitForServers(s, "system", "weather")
	if got := processOf(t, "weather"); got != pid {
		t.Errorf("unchanged server: got pid %d, want %d", got, pid)
	}
	replace(samples("system"))
	testkit.Eventually(t, "the removed server has ended", func() bool { return !isAlive(pid) })
	if ready := s.get("/readyz"); !strings.Contains(ready, `"status":"ready"`) {
		t.Errorf("got %s, want ready", ready)
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

// processOf returns the process of a sample server of this test process.
func processOf(t *testing.T, name string) int {
	t.Helper()
	if _, err := os.Stat("/proc/self/cmdline"); err != nil {
		t.Skip("no /proc on this system")
	}
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		line, _ := os.ReadFile(file) // the process may have ended
		pid, _ := strconv.Atoi(strings.Split(file, "/")[2])
		if string(line) == strings.Join([]string{os.Args[0], "sample", name, ""}, "\x00") && isAlive(pid) {
			return pid
		}
	}
	t.Fatalf("got no process of %s", name)
	return 0
}

// isAlive reports whether the process is running. A zombie is not.
func isAlive(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(status), ") ")
	return !strings.HasPrefix(state, "Z")
}

func TestMCP_RejectsUnusableFile(t *testing.T) {
	for name, tt := range map[string]struct{ path, want string }{
		"named and missing": {filepath.Join(t.TempDir(), "none.json"), "none.json"},
		"invalid":           {writeFile(t, "mcp.json", `{"servers":[{"id":"a"}]}`), "mcp.json:1:13"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config.Default()
			cfg.Listen, cfg.DataDir, cfg.MCP.File = "127.0.0.1:0", filepath.Join(t.TempDir(), "data"), tt.path
			cfg.Registry.File = writeFile(t, "capabilities.yaml", "clients: {}\n")
			s, err := Start(t.Context(), cfg, Options{LogOutput: io.Discard, LookupEnv: noEnv})
			if err == nil {
				_ = s.Wait()
				t.Fatal("got a running server, want an error")
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %q, want %q in it", err, tt.want)
			}
		})
	}
}

// No call of the API starts a process, and validate connects to no server.
func TestMCP_CallsStartNoProcess(t *testing.T) {
	trap, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer trap.Close()
	marker := filepath.Join(t.TempDir(), "started")
	issuer := newTokenIssuer()
	s := startGuarded(t, issuer, "clients: {}\n")
	command := fmt.Sprintf(`"command":"touch","args":[%q]`, marker)
	url := "http://" + trap.Addr().String()
	token := issuer.token("root", "admin mcp:read mcp:invoke:weather.query", nil)
	for _, c := range []struct {
		path, body string
		status     int
	}{
		{"/validate", `{"servers":[{"id":"a",` + command + `},{"id":"b","transport":"sse","url":"` + url + `"}]}`, 200},
		{"/validate", `{"mcpServers":{"a":{` + command + `,"env":{"A":"${HOME}"}}}}`, 200},
		{"/servers", `{"name":"a",` + command + `}`, 422},
		{"/servers", `{"name":"a","type":"stdio","url":"` + url + `"}`, 422},
		{"/servers", `{"name":"a","type":"local","url":"https://mcp.invalid/"}`, 422},
		{"/servers", `{"name":"a","url":"file:///bin/sh"}`, 422},
		{"/servers", `{"name":"a","url":"http://169.254.169.254/"}`, 422},
		{"/servers", `{"name":"a","url":"http://mcp.invalid/","headers":{"Authorization":"Bearer x"}}`, 422},
		{"/servers", `{"name":"a","url":"https://mcp.invalid/","headers":{"A B":"x"}}`, 422},
		{"/servers", `{"name":"a","url":"https://mcp.invalid/","headers":{"A":"x\ny"}}`, 422},
		{"/servers", `{"name":"../a","url":"https://mcp.invalid/"}`, 422},
		{"/test", `{"server":"a",` + command + `}`, 422},
		{"/test", `{"server":"touch"}`, 404},
		{"/invoke", `{"action":"touch.started"}`, 403},
	} {
		got := s.do(call{method: "POST", path: "/api/v1/mcp" + c.path, token: token, body: c.body})
		if got.status != c.status {
			t.Errorf("%s %s: got %d %s, want %d", c.path, c.body, got.status, got.body, c.status)
		}
	}
	// The guard blocks the loopback address at connect time.
	got := s.do(call{method: "POST", path: "/api/v1/mcp/servers", token: token, body: `{"name":"loop","url":"` + url + `"}`})
	if got.status == 201 {
		testkit.Eventually(t, "the registered server is blocked", func() bool {
			got := s.do(call{method: "GET", path: "/api/v1/mcp/servers/loop", token: token})
			return strings.Contains(string(got.body), `"status":"error"`)
		})
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("got a command executed, want none")
	}
	accepted := make(chan string, 1)
	go func() {
		if c, err := trap.Accept(); err == nil {
			accepted <- c.RemoteAddr().String()
			_ = c.Close()
		}
		close(accepted)
	}()
	last, err := net.Dial("tcp", trap.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer last.Close()
	if first := testkit.Receive(t, accepted); first != last.LocalAddr().String() {
		t.Error("got a connection to the address, want none")
	}
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

// A binding without a provider is degraded, and recovers when the file declares one.
func TestMCP_BindingRecovers(t *testing.T) {
	t.Parallel()
	path, change := useMCP(t, samples("system"))
	s := startServer(t, "clients:\n"+entry("planner", "plan_trip", "travel", "", ", mcp_capabilities: ['weather:read']"), change)
	waitForServers(s, "system")
	var b rest.MCPBinding
	s.mcp("POST", "/bind", `{"agent_id":"planner","capability":"weather:read"}`, 200, &b)
	if b.State != contract.BindingDegraded || b.Suggestion == "" {
		t.Errorf("got %+v, want DEGRADED with a suggestion", b)
	}
	s.mcp("POST", "/bind", `{"agent_id":"planner","capability":"weather:write"}`, 403, nil)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url(mcpEvents), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		for scan := bufio.NewScanner(resp.Body); scan.Scan(); {
			if data, ok := strings.CutPrefix(scan.Text(), "data: "); ok && strings.Contains(data, contract.AgentBriefingEvent) {
				lines <- data
			}
		}
	}()
	if first := testkit.Receive(t, lines); !strings.Contains(first, contract.BindingDegraded) {
		t.Errorf("got event %s, want the current state, %s", first, contract.BindingDegraded)
	}
	if err := os.WriteFile(path, []byte(samples("system", "weather")), 0o600); err != nil {
		t.Fatal(err)
	}
	if next := testkit.Receive(t, lines); !strings.Contains(next, contract.BindingBound) {
		t.Errorf("got event %s, want %s", next, contract.BindingBound)
	}
}

// The bindings of an agent end when it is removed from the registry, or no longer declares the
// capability.
func TestMCP_BindingEndsWithAgent(t *testing.T) {
	t.Parallel()
	_, change := useMCP(t, samples("system"))
	other := entry("other", "plan_trip", "travel", "", ", mcp_capabilities: ['weather:read']")
	planner := entry("planner", "plan_trip", "travel", "", ", mcp_capabilities: ['weather:read', 'system:read']")
	s := startServer(t, "clients:\n"+planner+other, change)
	for _, agent := range []string{"planner", "other"} {
		s.mcp("POST", "/bind", fmt.Sprintf(`{"agent_id":%q,"capability":"weather:read"}`, agent), 200, nil)
	}
	s.mcp("POST", "/bind", `{"agent_id":"planner","capability":"system:read"}`, 200, nil)
	for _, step := range []struct {
		registry string
		want     []string
	}{
		{planner, []string{"planner system:read", "planner weather:read"}},
		{entry("planner", "plan_trip", "travel", "", ", mcp_capabilities: ['system:read']"), []string{"planner system:read"}},
	} {
		s.write("clients:\n" + step.registry)
		if err := s.reload(); err != nil {
			t.Fatal(err)
		}
		var got []string
		testkit.Eventually(t, fmt.Sprintf("the bindings are %q", step.want), func() bool {
			got = nil
			for _, b := range s.core.mcp.Bindings() {
				got = append(got, b.AgentID+" "+b.Capability)
			}
			return slices.Equal(got, step.want)
		})
	}
}

// A graceful stop ends all processes.
func TestMCP_EndsProcessesAtShutdown(t *testing.T) {
	var pid int
	t.Run("serve", func(t *testing.T) {
		_, change := useMCP(t, samples("system"))
		s := startServer(t, "clients: {}\n", change)
		waitForServers(s, "system")
		pid = processOf(t, "system")
	})
	if pid != 0 && isAlive(pid) {
		t.Errorf("got process %d alive after the shutdown", pid)
	}
}

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
