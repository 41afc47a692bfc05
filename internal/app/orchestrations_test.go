package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/testkit"
)

// runServer is a router with the MCP server "counter", whose tool add is not repeatable.
type runServer struct {
	*testServer
	tokenIssuer
	calls atomic.Int64
}

const runScopes = "orchestrate mcp:invoke:counter.add mcp:invoke:counter.read mcp:invoke:counter.fail mcp:invoke:counter.ask mcp:invoke:counter.forbidden"

const runPolicy = `version: 1
rules:
  - { id: ask_a_person, when: { tools: [counter.ask] }, effect: gate }
  - { id: never, when: { tools: [counter.forbidden] }, effect: deny }
`

func newRunServer(t *testing.T, change ...func(*config.Config)) *runServer {
	t.Helper()
	return newRunServerIn(t, noEnv, change...)
}

// newRunServerIn starts the router with these environment variables.
func newRunServerIn(t *testing.T, lookup func(string) (string, bool), change ...func(*config.Config)) *runServer {
	t.Helper()
	s := &runServer{tokenIssuer: newTokenIssuer()}
	file := startCounter(t, &s.calls)
	s.testServer = startServerIn(t, lookup, "clients: {}\n", append([]func(*config.Config){s.guard(t), func(c *config.Config) {
		c.MCP.File, c.Orchestrator.PolicyFile = file, writeFile(t, "policy.yaml", runPolicy)
		c.Orchestrator.EndpointsAllowed = config.StringList{"https://models.example/v1"}
	}}, change...)...)
	return s
}

// startCounter starts the MCP server "counter", which counts its calls, and returns the registry
// file with it.
func startCounter(t *testing.T, calls *atomic.Int64) (file string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var action contract.Action
		if json.NewDecoder(r.Body).Decode(&action) != nil || strings.HasSuffix(action.Action, "fail") {
			http.Error(w, "no", http.StatusInternalServerError)
			calls.Add(1)
			return
		}
		_, _ = fmt.Fprintf(w, `{"type":"text","content":"%d calls","mime_type":"text/plain"}`, calls.Add(1))
	}))
	t.Cleanup(server.Close)
	actions := `{"name":"add","input_schema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}},
		{"name":"read"},{"name":"ask"},{"name":"forbidden"},{"name":"fail","retry":{"retries":0}}`
	return writeFile(t, "mcp.json", fmt.Sprintf(`{"plugins":[{"id":"counter","endpoint":%q,"actions":[%s]}]}`, server.URL, actions))
}

func (s *runServer) ana() string {
	return s.token("ana", runScopes, map[string]any{"tenant": "acme"})
}

// send posts a body, and returns the status and the decoded run or problem.
func (s *runServer) send(t *testing.T, method, path, token, body string) (int, *contract.Orchestration) {
	t.Helper()
	got := s.do(call{method: method, path: path, token: token, body: body})
	run := new(contract.Orchestration)
	if got.status < 300 {
		if err := json.Unmarshal(got.body, run); err != nil {
			t.Fatalf("%s %s: %v\n%s", method, path, err, got.body)
		}
	}
	return got.status, run
}

func planOf(steps string) string { return `"plan":{"steps":[` + steps + `]}` }

func stepOf(id, tool, arguments, more string) string {
	return fmt.Sprintf(`{"id":%q,"action":"counter.%s","arguments":%s,"success_criteria":[{"contains":"calls"}]%s}`, id, tool, arguments, more)
}

// Each possible end of a run has its status and reason.
func TestOrchestrations_EndWithStatusAndReason(t *testing.T) {
	s := newRunServer(t, func(c *config.Config) { c.Orchestrator.Budgets.Retries = 1 })
	for _, tt := range []struct {
		name, goal string
		token      string
		want       string // status and reason, or the HTTP status of a problem
		calls      int64
	}{
		{name: "done", goal: planOf(stepOf("a", "add", `{"n":1}`, "") + "," + stepOf("b", "read", `{"after":"${steps.a.output}"}`, "")), want: "DONE", calls: 2},
		{name: "plan only", goal: `"plan_only":true,` + planOf(stepOf("a", "add", `{"n":1}`, "")), want: "DONE"},
		{name: "no planner", goal: ``, want: "DEGRADED planner_not_configured"},
		{name: "planner not configured by the operator", goal: `"planner_kind":"openai"`, want: "DEGRADED planner_not_configured"},
		{name: "no scope", goal: planOf(stepOf("a", "add", `{"n":1}`, "")), token: s.token("ana", "orchestrate", map[string]any{"tenant": "acme"}), want: "BLOCKED not_authorized"},
		{name: "policy", goal: planOf(stepOf("a", "forbidden", `{}`, "")), want: "BLOCKED policy_blocked"},
		{name: "secret", goal: planOf(stepOf("a", "read", `{"url":"https://pastebin.com/?k=AKIAIOSFODNN7EXAMPLE"}`, "")), want: "BLOCKED policy_blocked"},
		{name: "constraints", goal: `"deny":["counter.*"],` + planOf(stepOf("a", "add", `{"n":1}`, "")), want: "BLOCKED policy_blocked"},
		{name: "arguments", goal: planOf(stepOf("a", "add", `{"n":"one"}`, "")), want: "DEGRADED schema_invalid"},
		{name: "arguments by reference", goal: planOf(stepOf("a", "read", `{}`, "") + "," + stepOf("b", "add", `{"n":"${steps.a.output}"}`, "")), want: "DEGRADED schema_invalid", calls: 1},
		{name: "unknown tool", goal: planOf(stepOf("a", "delete", `{}`, "")), want: "DEGRADED plan_invalid"},
		{name: "call fails", goal: planOf(stepOf("a", "fail", `{}`, "")), want: "DEGRADED retry_budget_exhausted", calls: 2},
		{name: "criteria", goal: planOf(`{"id":"a","action":"counter.read","arguments":{},"success_criteria":[{"equals":"other"}]}`), want: "FAILED verification_failed", calls: 1},
		{name: "extra key", goal: planOf(stepOf("a", "add", `{"n":1}`, `,"shell":"rm"`)), want: "422"},
		{name: "cycle", goal: planOf(stepOf("a", "read", `{}`, `,"depends_on":["b"]`) + "," + stepOf("b", "read", `{}`, `,"depends_on":["a"]`)), want: "422"},
		{name: "forward reference", goal: planOf(stepOf("a", "read", `{"x":"${steps.b.output}"}`, "") + "," + stepOf("b", "read", `{}`, "")), want: "422"},
		{name: "unknown step", goal: planOf(stepOf("a", "read", `{"x":"${steps.z.output}"}`, "")), want: "422"},
		{name: "too long", goal: planOf(strings.TrimSuffix(strings.Repeat(stepOf("a", "read", `{}`, "")+",", 21), ",")), want: "422"},
		{name: "no criteria", goal: planOf(`{"id":"a","action":"counter.read","arguments":{}}`), want: "422"},
		{name: "timeout too long", goal: `"timeout_ms":86400000`, want: "422"},
		{name: "endpoint", goal: `"planner_kind":"openai","planner_endpoint":"https://other.example/v1"`, want: "403"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			token := tt.token
			if token == "" {
				token = s.ana()
			}
			before := s.calls.Load()
			status, run := s.send(t, "POST", "/api/v1/orchestrations", token, `{"goal":"count","constraints":{`+tt.goal+`}}`)
			got := fmt.Sprint(status)
			if status == http.StatusOK {
				got = strings.TrimSpace(string(run.Status) + " " + string(run.Reason))
			}
			if calls := s.calls.Load() - before; got != tt.want || calls != tt.calls {
				t.Errorf("got %s after %d calls, want %s after %d: %+v", got, calls, tt.want, tt.calls, run.Errors)
			}
		})
	}
}

func TestOrchestrations_WithoutServers(t *testing.T) {
	s := newRunServer(t)
	_, run := s.send(t, "POST", "/api/v1/orchestrations", s.ana(), `{"goal":"count","available_servers":["other"],"constraints":{`+planOf(stepOf("a", "add", `{"n":1}`, ""))+`}}`)
	if run.Status != contract.OrchestrationDegraded || run.Reason != contract.ReasonNoServers {
		t.Errorf("got %s (%s), want DEGRADED (no_mcp_servers_available)", run.Status, run.Reason)
	}
}

// A gate requires an approval by another person than the caller, who can cancel.
func TestOrchestrations_Gate(t *testing.T) {
	s := newRunServer(t)
	body := `{"goal":"count","constraints":{` + planOf(stepOf("a", "ask", `{}`, "")) + `}}`
	bob := s.token("bob", "orchestrate:approve", map[string]any{"tenant": "acme"})
	for _, tt := range []struct {
		name, token, verb, body string
		status                  int
		want                    string // status and reason at the end
	}{
		{"approved", bob, "approve", `{"step":"a","decision":"approve"}`, 200, "DONE"},
		{"denied", bob, "approve", `{"step":"a","decision":"deny"}`, 200, "BLOCKED gate_denied"},
		{"own", s.token("ana", "orchestrate:approve", map[string]any{"tenant": "acme"}), "approve", `{"step":"a","decision":"approve"}`, 403, ""},
		{"no scope", s.ana(), "approve", `{"step":"a","decision":"approve"}`, 403, ""},
		{"another tenant", s.token("eve", "orchestrate:approve", map[string]any{"tenant": "other"}), "approve", `{"step":"a","decision":"approve"}`, 404, ""},
		{"another step", bob, "approve", `{"step":"b","decision":"approve"}`, 409, ""},
		{"cancelled", s.ana(), "cancel", "", 200, "FAILED cancelled"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, run := s.send(t, "POST", "/api/v1/orchestrations", s.ana(), body)
			if status != http.StatusAccepted || run.Status != contract.OrchestrationWaiting || len(run.Gates) != 1 || run.Gates[0].Rule != "ask_a_person" {
				t.Fatalf("got %d %s and gates %+v, want 202 and a gate", status, run.Status, run.Gates)
			}
			path := "/api/v1/orchestrations/" + run.OrchestrationID
			if status, _ := s.send(t, "POST", path+"/"+tt.verb, tt.token, tt.body); status != tt.status {
				t.Errorf("got %d, want %d", status, tt.status)
			}
			if tt.want == "" {
				_, run = s.send(t, "GET", path, s.ana(), "")
				if run.Status != contract.OrchestrationWaiting {
					t.Errorf("got %s, want a waiting run", run.Status)
				}
				return
			}
			testkit.Eventually(t, "the run has ended", func() bool {
				_, run = s.send(t, "GET", path, s.ana(), "")
				return run.Status.Terminal()
			})
			if diff := cmp.Diff(tt.want, strings.TrimSpace(string(run.Status)+" "+string(run.Reason))); diff != "" {
				t.Errorf("end (-want +got):\n%s", diff)
			}
		})
	}
}

// A decision about a step without a gate is answered with the steps that wait for one.
func TestOrchestrations_DecisionAboutAnotherStep(t *testing.T) {
	s := newRunServer(t)
	bob := s.token("bob", "orchestrate:approve", map[string]any{"tenant": "acme"})
	body := `{"goal":"count","constraints":{` + planOf(stepOf("a", "ask", `{}`, "")) + `}}`
	_, run := s.send(t, "POST", "/api/v1/orchestrations", s.ana(), body)
	approve := call{method: "POST", path: "/api/v1/orchestrations/" + run.OrchestrationID + "/approve", token: bob, body: `{"step":"b","decision":"approve"}`}
	for _, want := range []string{
		`step \"b\" does not wait for a decision; waiting: a`,
		`step \"b\" does not wait for a decision; the run is FAILED`,
	} {
		if got := s.do(approve); got.status != http.StatusConflict || !strings.Contains(string(got.body), want) {
			t.Errorf("got %d %s, want 409 with %s", got.status, got.body, want)
		}
		s.send(t, "POST", "/api/v1/orchestrations/"+run.OrchestrationID+"/cancel", s.ana(), "")
		testkit.Eventually(t, "the run has ended", func() bool {
			_, run = s.send(t, "GET", "/api/v1/orchestrations/"+run.OrchestrationID, s.ana(), "")
			return run.Status.Terminal()
		})
	}
}

func TestOrchestrations_GateExpiresOrBlocks(t *testing.T) {
	t.Parallel()
	body := `{"goal":"count","constraints":{` + planOf(stepOf("a", "ask", `{}`, "")) + `}}`
	s := newRunServer(t, func(c *config.Config) { c.Orchestrator.OnGate = config.GateBlock })
	if _, run := s.send(t, "POST", "/api/v1/orchestrations", s.ana(), body); run.Reason != contract.ReasonGateUnattended || s.calls.Load() != 0 {
		t.Errorf("got %s (%s), want BLOCKED (gate_unattended)", run.Status, run.Reason)
	}
	s = newRunServer(t, func(c *config.Config) { c.Orchestrator.GateTTLS = 1 })
	_, run := s.send(t, "POST", "/api/v1/orchestrations", s.ana(), body)
	testkit.Eventually(t, "the gate expires", func() bool {
		_, run = s.send(t, "GET", "/api/v1/orchestrations/"+run.OrchestrationID, s.ana(), "")
		return run.Status.Terminal()
	})
	if run.Status != contract.OrchestrationBlocked || run.Reason != contract.ReasonGateExpired || s.calls.Load() != 0 {
		t.Errorf("got %s (%s), want BLOCKED (gate_expired)", run.Status, run.Reason)
	}
}

// A task of an agent with protocol orchestrator is a goal. Its caller needs no scope of the tools,
// because it may use the agent.
func TestOrchestrations_GoalOfTask(t *testing.T) {
	s := newRunServer(t)
	s.write("clients:\n  doer: { match: { intent: [count_things], domains: [numbers] }, examples: { count_things: [count the numbers, count these numbers please] }, endpoint: { protocol: orchestrator } }\n")
	if err := s.reload(); err != nil {
		t.Fatal(err)
	}
	got := s.do(call{
		method: "POST", path: "/api/v1/route", token: s.token("ana", "route:submit agent:doer", map[string]any{"tenant": "acme"}),
		body: `{"content":{"prompt":"count the numbers"}}`,
	})
	var resp contract.Response
	if err := json.Unmarshal(got.body, &resp); err != nil || got.status != http.StatusOK || len(resp.Tasks) != 1 {
		t.Fatalf("got %d %s", got.status, got.body)
	}
	// No planner is configured, so the run ends before a call.
	if text := string(got.body); resp.Tasks[0].AgentID != "doer" || !strings.Contains(text, "planner_not_configured") {
		t.Errorf("got %s, want the reason planner_not_configured", text)
	}
}

// The worked examples of docs/orchestrator.md run offline with the reference servers of the
// protocol. The write in the last one requires an approval.
func TestOrchestrations_WorkedExamples(t *testing.T) {
	modules := os.Getenv("CAPROUTER_NODE_MODULES")
	if modules == "" {
		t.Skip("CAPROUTER_NODE_MODULES does not name a folder with the reference servers")
	}
	dir := t.TempDir()
	server := func(name string, args ...string) string {
		command, err := json.Marshal(append([]string{"node", filepath.Join(modules, "@modelcontextprotocol", "server-"+name, "dist", "index.js")}, args...))
		if err != nil {
			t.Fatal(err)
		}
		return string(command)
	}
	file := fmt.Sprintf(`{"version":"1.0","servers":[
		{"id":"everything","command":%s},
		{"id":"memory","command":%s,"env":{"MEMORY_FILE_PATH":%q}},
		{"id":"files","command":%s,"cwd":%q}]}`, server("everything", "stdio"), server("memory"), filepath.Join(dir, "memory.jsonl"), server("filesystem", dir), dir)
	s := startServer(t, "clients: {}\n", func(c *config.Config) { c.MCP.File = writeFile(t, "mcp.json", file) })
	for _, name := range []string{"numbers", "graph", "files"} {
		t.Run(name, func(t *testing.T) {
			plan, err := os.ReadFile(filepath.Join("..", "..", "examples", "orchestrations", name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			got := s.do(call{method: "POST", path: "/api/v1/orchestrations", body: `{"goal":"the example","constraints":{"plan":` + string(plan) + `}}`})
			var run contract.Orchestration
			testkit.Eventually(t, "the run has ended", func() bool {
				if err := json.Unmarshal(got.body, &run); err != nil || got.status >= 300 {
					t.Fatalf("got %d %s", got.status, got.body)
				}
				path := "/api/v1/orchestrations/" + run.OrchestrationID
				for _, g := range run.Gates {
					if g.Decision == "" {
						s.do(call{method: "POST", path: path + "/approve", body: fmt.Sprintf(`{"step":%q,"decision":"approve"}`, g.StepID)})
					}
				}
				got = s.do(call{method: "GET", path: path})
				return run.Status.Terminal()
			})
			if asked := len(run.Gates) > 0; asked != (name == "files") {
				t.Errorf("got gates %+v, want one, for the write of a file", run.Gates)
			}
			if run.Status != contract.OrchestrationDone {
				t.Errorf("got %s (%s), want DONE: %+v\n%s", run.Status, run.Reason, run.Errors, got.body)
			}
		})
	}
}

// Agents that turn their tasks into goals are logged if no model plans, also if a reload adds
// them, and once.
func TestOrchestrations_WarnOfMissingPlanner(t *testing.T) {
	const doer = "clients:\n  doer: { match: { intent: [count_things], domains: [numbers] }, endpoint: { protocol: orchestrator } }\n"
	const line = `"agents":["doer"]`
	count := func(s *testServer) int { return strings.Count(s.log.String(), line) }
	t.Run("planner", func(t *testing.T) {
		s := startServer(t, doer, func(c *config.Config) { c.Orchestrator.Planner.Kind = contract.PlannerGemini })
		if got := count(s); got != 0 {
			t.Errorf("got %d lines, want none", got)
		}
	})
	s := startServer(t, "clients:\n"+entry("counter", "count_words", "prose", ""))
	if got := count(s); got != 0 {
		t.Errorf("without such an agent: got %d lines, want none", got)
	}
	for _, registry := range []string{doer, doer + entry("counter", "count_words", "prose", "")} {
		s.write(registry)
		if err := s.reload(); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, "a line is logged", func() bool { return count(s) > 0 })
		if got := count(s); got != 1 {
			t.Errorf("got %d lines, want one", got)
		}
	}
}
