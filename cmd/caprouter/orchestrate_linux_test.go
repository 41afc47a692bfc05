package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/testkit"
)

// toolCounter is a server that counts the calls of each step, and reports each call before
// it answers.
type toolCounter struct {
	mu     sync.Mutex
	calls  map[string]int
	called chan string
	answer chan struct{} // receives the permission to answer
}

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

// A router that is killed continues its runs after a restart. A call that must not be
// repeated is not, and its run ends honestly.
func TestOrchestrations_SurviveKill(t *testing.T) {
	for _, tt := range []struct {
		name, tool string
		killAt     string // the step whose call is in flight; "" = while the run waits for a person
		want       string
		calls      [2]int
	}{
		{"first call in flight", "add", "a", "DEGRADED outcome_unknown", [2]int{1, 0}},
		{"second call in flight", "add", "b", "DEGRADED outcome_unknown", [2]int{1, 1}},
		{"repeatable call in flight", "read", "a", "DONE ", [2]int{2, 1}},
		{"waiting for a person", "ask", "", "waiting_approval ", [2]int{0, 0}},
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
				testkit.Eventually(t, "the run waits", func() bool { return strings.HasPrefix(r.stateOf(id), "waiting_approval") })
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
			testkit.Eventually(t, "the run is as it should be", func() bool { return r.stateOf(id) == tt.want })
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
	status, body := r.send("GET", "/api/v1/orchestrations/"+id, "")
	var run contract.Orchestration
	if status != http.StatusOK || json.Unmarshal([]byte(body), &run) != nil {
		return body
	}
	return string(run.Status) + " " + string(run.Reason)
}

// TestOrchestrations_SurviveKillAtEveryEvent kills the router after each event of a run in
// turn. No call is repeated, and every run ends. CAPROUTER_KILLS is the number of runs.
func TestOrchestrations_SurviveKillAtEveryEvent(t *testing.T) {
	const events = 17 // of the run
	kills := 3
	if n, err := strconv.Atoi(os.Getenv("CAPROUTER_KILLS")); err == nil {
		kills = n
	}
	counter := &toolCounter{calls: map[string]int{}, called: make(chan string, 4*kills), answer: make(chan struct{})}
	close(counter.answer) // every call is answered at once
	server := httptest.NewServer(counter)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	mcp := filepath.Join(dir, "mcp.json")
	if err := os.WriteFile(mcp, fmt.Appendf(nil, `{"plugins":[{"id":"counter","endpoint":%q,"actions":[{"name":"add"}]}]}`, server.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	ends := map[string]int{}
	r := startRouter(t, dir, "--mcp", mcp)
	for n := range kills {
		a, b := fmt.Sprintf("a%d", n), fmt.Sprintf("b%d", n)
		goal := strings.NewReplacer("TOOL", "add", `"a"`, `"`+a+`"`, `"b"`, `"`+b+`"`).Replace(killedGoal)
		id := r.orchestrate(goal)
		r.awaitEvents(id, n*5%events+1) // 5 and the number of events have no common divisor
		if err := r.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = testkit.Receive(t, r.ended)
		r = startRouter(t, dir, "--mcp", mcp)
		var state string
		testkit.Eventually(t, "the run ends", func() bool {
			state = r.stateOf(id)
			return state == "DONE " || state == "DEGRADED outcome_unknown"
		})
		ends[state]++
		if counter.count(a) > 1 || counter.count(b) > 1 || state == "DONE " && counter.count(a)+counter.count(b) != 2 {
			t.Errorf("kill %d: %s after %d and %d calls of the steps, want none repeated", n, state, counter.count(a), counter.count(b))
		}
	}
	t.Logf("ends of %d runs: %v", kills, ends)
	r.stop()
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
