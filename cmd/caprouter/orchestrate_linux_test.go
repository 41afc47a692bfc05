package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// toolCounter is a server that counts the calls of each step, and reports each call before it
// answers. A step that starts with heldPrefix is never answered.
type toolCounter struct {
	mu     sync.Mutex
	calls  map[string]int
	called chan string
	answer chan struct{} // receives the permission to answer
}

const heldPrefix = "held-"

func (c *toolCounter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var action struct {
		Input struct {
			Step string `json:"step"`
		} `json:"input"`
	}
	if err := json.NewDecoder(r.Body).Decode(&action); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	c.calls[action.Input.Step]++
	c.mu.Unlock()
	c.called <- action.Input.Step
	if strings.HasPrefix(action.Input.Step, heldPrefix) {
		<-r.Context().Done()
		return
	}
	select {
	case <-c.answer:
	case <-r.Context().Done():
	}
	_, _ = fmt.Fprint(w, `{"type":"text","content":"done","mime_type":"text/plain"}`)
}

func (c *toolCounter) count(step string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[step]
}

const killedGoal = `{"goal":"count","constraints":{"plan":{"steps":[
	{"id":"a","action":"counter.TOOL","arguments":{"step":"a"},"success_criteria":[{"contains":"done"}]},
	{"id":"b","action":"counter.TOOL","arguments":{"step":"b"},"depends_on":["a"]}]}}}`

// A router that is killed continues its runs after a restart. A call of a tool that is not
// repeatable is not repeated, and its run ends with an unknown outcome.
func TestOrchestrations_SurviveKill(t *testing.T) {
	for _, tt := range []struct {
		name, tool string
		killAt     string // the step whose call is in flight; "" = while the run waits for an approval
		want       string
		calls      [2]int
	}{
		{"first call in flight", "add", "a", "DEGRADED outcome_unknown", [2]int{1, 0}},
		{"second call in flight", "add", "b", "DEGRADED outcome_unknown", [2]int{1, 1}},
		{"repeatable call in flight", "read", "a", "DONE ", [2]int{2, 1}},
		{"waiting for an approval", "ask", "", "waiting_approval ", [2]int{0, 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			counter := &toolCounter{calls: map[string]int{}, called: make(chan string, 16), answer: make(chan struct{}, 16)}
			server := httptest.NewServer(counter)
			t.Cleanup(server.Close)
			dir := t.TempDir()
			mcp, rules := filepath.Join(dir, "mcp.json"), filepath.Join(dir, "policy.yaml")
			for file, content := range map[string]string{
				mcp:   fmt.Sprintf(`{"plugins":[{"id":"counter","endpoint":%q,"actions":[{"name":"add"},{"name":"ask"},{"name":"read","retry":{"retries":1}}]}]}`, server.URL),
				rules: "version: 1\nrules:\n  - { id: ask, when: { tools: [counter.ask] }, effect: gate }\n",
			} {
				if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			t.Setenv("CAPROUTER_ORCHESTRATOR_POLICY_FILE", rules)
			r := startRouter(t, dir, "--mcp", mcp)
			id := r.orchestrate(strings.ReplaceAll(killedGoal, "TOOL", tt.tool))
			if tt.killAt == "" {
				testkit.Eventually(t, "the run waits for an approval", func() bool { return strings.HasPrefix(r.stateOf(id), "waiting_approval") })
			} else {
				for step := testkit.Receive(t, counter.called); step != tt.killAt; step = testkit.Receive(t, counter.called) {
					counter.answer <- struct{}{}
				}
			}
			if err := r.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = testkit.Receive(t, r.ended)
			for range 8 { // all calls after the restart are answered at once
				counter.answer <- struct{}{}
			}
			r = startRouter(t, dir, "--mcp", mcp)
			testkit.Eventually(t, "the run has the expected state", func() bool { return r.stateOf(id) == tt.want })
			if got := [2]int{counter.count("a"), counter.count("b")}; got != tt.calls {
				t.Errorf("got %v calls of the steps, want %v", got, tt.calls)
			}
			r.stop()
		})
	}
}

// orchestrate submits a goal and returns the id of its run.
func (r *router) orchestrate(goal string) string {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.url+"/api/v1/orchestrations", strings.NewReader(goal))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Prefer", "respond-async")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusAccepted {
		r.t.Fatalf("got %s, want 202", resp.Status)
	}
	return filepath.Base(resp.Header.Get("Location"))
}

func (r *router) stateOf(id string) string {
	state, _ := r.readRun(id)
	return state
}

// readRun returns the status and reason of a run, and whether a process resumed it.
func (r *router) readRun(id string) (state string, resumed bool) {
	status, body := r.send("GET", "/api/v1/orchestrations/"+id, "")
	var run contract.Orchestration
	if status != http.StatusOK || json.Unmarshal([]byte(body), &run) != nil {
		return body, false
	}
	resumed = slices.ContainsFunc(run.AuditTrail, func(ev contract.RunEvent) bool { return ev.Event == "resumed" })
	return string(run.Status) + " " + string(run.Reason), resumed
}

// killsOr returns the number of kills, from the environment or the default.
func killsOr(kills int) int {
	if n, err := strconv.Atoi(os.Getenv("CAPROUTER_KILLS")); err == nil {
		return n
	}
	return kills
}

// killedEvent returns the event of its run after which the n-th router is killed: each one in turn.
func killedEvent(n int) int {
	const events = 17 // of the run; it has no common divisor with 5
	return n*5%events + 1
}

// killedGoalOf returns a goal with two steps whose tools are not repeatable.
func killedGoalOf(a, b string) string {
	return strings.NewReplacer("TOOL", "add", `"a"`, `"`+a+`"`, `"b"`, `"`+b+`"`).Replace(killedGoal)
}

// serveCounter starts a server that answers at once, and returns it and the registry file that
// declares it.
func serveCounter(t *testing.T, runs int) (counter *toolCounter, mcp string) {
	t.Helper()
	counter = &toolCounter{calls: map[string]int{}, called: make(chan string, 4*runs), answer: make(chan struct{})}
	close(counter.answer)
	server := httptest.NewServer(counter)
	t.Cleanup(server.Close)
	mcp = filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(mcp, fmt.Appendf(nil, `{"plugins":[{"id":"counter","endpoint":%q,"actions":[{"name":"add"}]}]}`, server.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	return counter, mcp
}

// TestOrchestrations_SurviveKillAtEveryEvent kills the router after each event of a run in turn. No
// call is repeated, and every run ends. CAPROUTER_KILLS is the number of runs.
func TestOrchestrations_SurviveKillAtEveryEvent(t *testing.T) {
	kills := killsOr(3)
	counter, mcp := serveCounter(t, kills)
	dir := t.TempDir()
	ends := map[string]int{}
	r := startRouter(t, dir, "--mcp", mcp)
	for n := range kills {
		a, b := fmt.Sprintf("a%d", n), fmt.Sprintf("b%d", n)
		id := r.orchestrate(killedGoalOf(a, b))
		r.awaitEvents(id, killedEvent(n))
		if err := r.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = testkit.Receive(t, r.ended)
		r = startRouter(t, dir, "--mcp", mcp)
		var state string
		testkit.Eventually(t, "the run has ended", func() bool {
			state = r.stateOf(id)
			return state == "DONE " || state == "DEGRADED outcome_unknown"
		})
		ends[state]++
		if counter.count(a) > 1 || counter.count(b) > 1 || state == "DONE " && counter.count(a)+counter.count(b) != 2 {
			t.Errorf("kill %d: got %s after %d and %d calls of the steps, want none repeated", n, state, counter.count(a), counter.count(b))
		}
	}
	t.Logf("ends of %d runs: %v", kills, ends)
	r.stop()
}

// TestOrchestrations_SurviveKilledReplica kills replicas that share a store, each after another
// event of its run or during a call. The remaining replica ends their runs, and repeats no call.
// CAPROUTER_KILLS is the number of kills.
func TestOrchestrations_SurviveKilledReplica(t *testing.T) {
	const together = 6 // replicas that are killed before their runs are awaited
	kills := killsOr(together)
	counter, mcp := serveCounter(t, kills)
	srv := teststore.Serve(t, t.TempDir(), -1)
	keys := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(keys, []byte("dGVzdHMgZW5jcnlwdCB3aXRoIHRoaXMga2V5IG9ubHk=\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"URL": srv.URL, "ENCRYPTION_KEY_FILE": keys, "SYNC": "10s"} {
		t.Setenv("CAPROUTER_STORE_"+name, value)
	}
	remains := startRouter(t, t.TempDir(), "--mcp", mcp)
	ends := map[string]int{}
	for first := 0; first < kills; first += together {
		runs := map[int]*killedRun{}
		for n := first; n < min(first+together, kills); n++ {
			r := startRouter(t, t.TempDir(), "--mcp", mcp)
			runs[n] = newKilledRun(n)
			id := r.orchestrate(killedGoalOf(runs[n].steps[0], runs[n].steps[1]))
			runs[n].id = id
			if runs[n].inFlight {
				for step := ""; !strings.HasPrefix(step, heldPrefix); step = testkit.Receive(t, counter.called) {
				}
			} else {
				r.awaitEvents(id, killedEvent(n))
			}
			if err := r.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = testkit.Receive(t, r.ended)
		}
		for n, run := range runs {
			var state string
			var resumed bool
			testkit.Eventually(t, "the remaining replica has ended the run", func() bool {
				state, resumed = remains.readRun(run.id)
				return state == "DONE " || state == "DEGRADED outcome_unknown"
			})
			a, b := counter.count(run.steps[0]), counter.count(run.steps[1])
			if a > 1 || b > 1 || state == "DONE " && a+b != 2 || run.inFlight && (state == "DONE " || !resumed) {
				t.Errorf("kill %d: got %s after %d and %d calls of the steps %v, want none repeated", n, state, a, b, run.steps)
			}
			ends[state]++
			if resumed {
				ends["taken over"]++
			}
		}
	}
	t.Logf("%d kills: %v", kills, ends)
	remains.stop()
}

// killedRun is a run whose replica is killed.
type killedRun struct {
	id       string
	steps    [2]string
	inFlight bool // during a call
}

// newKilledRun returns the n-th run: every third one is killed during a call, of the first and the
// second step in turn.
func newKilledRun(n int) *killedRun {
	k := &killedRun{steps: [2]string{fmt.Sprintf("a%d", n), fmt.Sprintf("b%d", n)}, inFlight: n%3 == 2}
	if k.inFlight {
		k.steps[n/3%2] = heldPrefix + k.steps[n/3%2]
	}
	return k
}

// awaitEvents returns after n events of a run, or after its end.
func (r *router) awaitEvents(id string, n int) {
	r.t.Helper()
	resp, err := http.Get(r.url + "/api/v1/orchestrations/" + id + "/events")
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for n > 0 && lines.Scan() {
		if strings.HasPrefix(lines.Text(), "data: ") {
			n--
		}
	}
}
