package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/run"
)

// newTestAgents starts agents whose door leads to a router that is the handler.
func newTestAgents(t *testing.T, router http.HandlerFunc) *agents {
	t.Helper()
	to := newDoor()
	if router != nil {
		server := httptest.NewServer(router)
		t.Cleanup(server.Close)
		to.open(strings.TrimPrefix(server.URL, "http://"))
	}
	t.Cleanup(to.shut)
	group := run.New(t.Context())
	a, err := startAgents(t.Context(), group, newLedger(), newDice(1), to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		group.Stop(nil)
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
	})
	return a
}

func taskFor(agent string, inputs map[string]json.RawMessage) *contract.Task {
	return &contract.Task{
		TaskID: "t-" + agent, RequestID: "r", Intent: "i", Inputs: inputs, Deadline: time.Now().Add(time.Minute),
		Callback: &contract.Callback{URL: publicURL + "/api/v1/tasks/t-" + agent + "/result", Token: "secret"},
	}
}

// give posts a task and returns status and body of the answer.
func give(t *testing.T, a *agents, agent string, body []byte) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.base+"/"+agent, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

func TestAgentsCountEveryExecution(t *testing.T) {
	a := newTestAgents(t, nil)
	for _, agent := range []string{plainAgent, onceStandby, spareAgent} {
		for range 2 {
			status, body := give(t, a, agent, encode(taskFor(agent, map[string]json.RawMessage{inputKey: encode("k-1")})))
			if status != http.StatusOK || !strings.Contains(body, `"mark":"`+agent+"-") {
				t.Errorf("%s: got %d %s, want 200 and a result with its mark", agent, status, body)
			}
		}
	}
	if got, want := len(a.ledger.work), 6; got != want {
		t.Errorf("got %d executions, want %d", got, want)
	}
	marks := map[string]bool{}
	for _, e := range a.ledger.work {
		marks[e.mark] = true
		if want := e.agent != onceStandby; e.repeatable != want {
			t.Errorf("%s: repeatable is %v, want %v", e.agent, e.repeatable, want)
		}
	}
	if len(marks) != 6 {
		t.Errorf("got %d different marks, want 6", len(marks))
	}
	if diff := cmp.Diff(map[string][]string{"k-1": {"r"}}, a.ledger.keys); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

func TestAgentsWonderAtWhatIsNoTask(t *testing.T) {
	a := newTestAgents(t, nil)
	if status, _ := give(t, a, plainAgent, []byte("{")); status != http.StatusBadRequest {
		t.Errorf("half a task: got %d, want 400", status)
	}
	task := taskFor(laterAgent, nil)
	task.Callback = nil
	if status, _ := give(t, a, laterAgent, encode(task)); status != http.StatusInternalServerError {
		t.Errorf("no callback: got %d, want 500", status)
	}
	if got := len(a.ledger.odd); got != 2 {
		t.Errorf("got %d oddities, want 2", got)
	}
}

// A shaky agent's failures are known to the ledger, however it shows them.
func TestShakyAgentBooksItsFailures(t *testing.T) {
	a := newTestAgents(t, nil)
	failed := 0
	const times = 40
	for range times {
		if status, body := give(t, a, shakyAgent, encode(taskFor(shakyAgent, nil))); status != http.StatusOK || strings.Contains(body, "failure") {
			failed++
		}
	}
	booked := 0
	for _, e := range a.ledger.work {
		if e.failed {
			booked++
		}
	}
	// A broken connection may be tried again by the client below us.
	if failed == 0 || failed == times || booked < failed {
		t.Errorf("%d of %d answers were failures and %d are booked", failed, times, booked)
	}
}

func TestLaterAgentTriesUntilItIsAnswered(t *testing.T) {
	var mu sync.Mutex
	answers := []int{http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusOK}
	var marks []string
	a := newTestAgents(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		marks = append(marks, string(body))
		if got, want := r.Header.Get("Authorization"), "Bearer secret"; got != want {
			t.Errorf("authorization %q, want %q", got, want)
		}
		w.WriteHeader(answers[0])
		answers = answers[1:]
	})
	if !a.deliver(t.Context(), taskFor(laterAgent, nil), "m") {
		t.Error("the result was not accepted")
	}
	if len(marks) != 3 || marks[0] != marks[2] || !strings.Contains(marks[0], `"mark":"m"`) {
		t.Errorf("sent %q, want the same result three times", marks)
	}
	want := []callback{{part: part{"r", "i"}, task: "t-" + laterAgent, mark: "m", status: http.StatusOK}}
	if diff := cmp.Diff(want, a.ledger.callbacks, cmp.AllowUnexported(callback{}, part{})); diff != "" {
		t.Errorf("booked (-want +got):\n%s", diff)
	}
}

func TestLaterAgentGivesUpWhenItIsRefused(t *testing.T) {
	a := newTestAgents(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusConflict) })
	if a.deliver(t.Context(), taskFor(laterAgent, nil), "m") {
		t.Error("a refused result was taken for an accepted one")
	}
	if got := a.ledger.callbacks; len(got) != 1 || got[0].status != http.StatusConflict {
		t.Errorf("booked %v, want one conflict", got)
	}
}

// While nobody listens a callback is neither accepted nor refused.
func TestLaterAgentBooksNothingWhileTheRouterIsDown(t *testing.T) {
	a := newTestAgents(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if a.deliver(ctx, taskFor(laterAgent, nil), "m") || len(a.ledger.callbacks) != 0 {
		t.Errorf("booked %v, want nothing", a.ledger.callbacks)
	}
}

func TestHeldTasksAreKeptUntilRelease(t *testing.T) {
	a := newTestAgents(t, nil)
	hold := map[string]json.RawMessage{inputHold: encode(true)}
	if status, _ := give(t, a, laterAgent, encode(taskFor(laterAgent, hold))); status != http.StatusAccepted {
		t.Errorf("got %d, want 202", status)
	}
	if accepted, connections := a.holding(); accepted != 1 || connections != 0 {
		t.Errorf("holding %d and %d, want 1 and 0", accepted, connections)
	}
	if held := a.release(); len(held) != 1 || held[0].TaskID != "t-"+laterAgent {
		t.Errorf("released %v, want the one task", held)
	}
	if status, _ := give(t, a, plainAgent, encode(taskFor(plainAgent, hold))); status != http.StatusOK {
		t.Errorf("after release: got %d, want 200", status)
	}
}
