package workload

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
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/run"
)

// newTestAgents starts agents that call back the handler.
func newTestAgents(t *testing.T, router http.HandlerFunc) *Agents {
	t.Helper()
	to := NewRouters()
	if router != nil {
		server := httptest.NewServer(router)
		t.Cleanup(server.Close)
		to.Add(strings.TrimPrefix(server.URL, "http://"))
	}
	group := run.New(t.Context())
	a, err := StartAgents(t.Context(), group, NewLedger(), NewRand(1), to)
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
		Callback: &contract.Callback{URL: PublicURL + "/api/v1/tasks/t-" + agent + "/result", Token: "secret"},
	}
}

// postTask posts a task and returns status and body of the answer.
func postTask(t *testing.T, a *Agents, agent string, body []byte) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.Base+"/"+agent, bytes.NewReader(body))
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

func TestAgents_CountEveryExecution(t *testing.T) {
	a := newTestAgents(t, nil)
	for _, agent := range []string{PlainAgent, OnceStandby, SpareAgent} {
		for range 2 {
			status, body := postTask(t, a, agent, encodeJSON(taskFor(agent, map[string]json.RawMessage{inputKey: encodeJSON("k-1")})))
			if status != http.StatusOK || !strings.Contains(body, `"mark":"`+agent+"-") {
				t.Errorf("%s: got %d %s, want 200 and a result with its mark", agent, status, body)
			}
		}
	}
	if got, want := len(a.ledger.executions), 6; got != want {
		t.Errorf("got %d executions, want %d", got, want)
	}
	marks := map[string]bool{}
	for _, e := range a.ledger.executions {
		marks[e.mark] = true
		if want := e.agent != OnceStandby; e.idempotent != want {
			t.Errorf("%s: repeatable is %v, want %v", e.agent, e.idempotent, want)
		}
	}
	if len(marks) != 6 {
		t.Errorf("got %d different marks, want 6", len(marks))
	}
	if diff := cmp.Diff(map[string][]string{"k-1": {"r"}}, a.ledger.keys); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

func TestAgents_RecordInvalidTasks(t *testing.T) {
	a := newTestAgents(t, nil)
	if status, _ := postTask(t, a, PlainAgent, []byte("{")); status != http.StatusBadRequest {
		t.Errorf("half a task: got %d, want 400", status)
	}
	task := taskFor(AsyncAgent, nil)
	task.Callback = nil
	if status, _ := postTask(t, a, AsyncAgent, encodeJSON(task)); status != http.StatusInternalServerError {
		t.Errorf("no callback: got %d, want 500", status)
	}
	if got := len(a.ledger.unexpected); got != 2 {
		t.Errorf("got %d unexpected answers, want 2", got)
	}
}

func TestUnreliableAgent_RecordsFailures(t *testing.T) {
	a := newTestAgents(t, nil)
	failed := 0
	const times = 40
	for range times {
		if status, body := postTask(t, a, UnreliableAgent, encodeJSON(taskFor(UnreliableAgent, nil))); status != http.StatusOK || strings.Contains(body, "failure") {
			failed++
		}
	}
	booked := 0
	for _, e := range a.ledger.executions {
		if e.failed {
			booked++
		}
	}
	// The HTTP client may repeat a request on a broken connection.
	if failed == 0 || failed == times || booked < failed {
		t.Errorf("got %d failures in %d answers and %d recorded, want some failures, all recorded", failed, times, booked)
	}
}

func TestAsyncAgent_RetriesUntilAccepted(t *testing.T) {
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
	if !a.DeliverResult(t.Context(), taskFor(AsyncAgent, nil), "m") {
		t.Error("DeliverResult: got false, want true")
	}
	if len(marks) != 3 || marks[0] != marks[2] || !strings.Contains(marks[0], `"mark":"m"`) {
		t.Errorf("got bodies %q, want the same result three times", marks)
	}
	want := []callback{{subtask: subtask{"r", "i"}, task: "t-" + AsyncAgent, mark: "m", status: http.StatusOK}}
	if diff := cmp.Diff(want, a.ledger.callbacks, cmp.AllowUnexported(callback{}, subtask{}), cmpopts.IgnoreTypes(time.Time{})); diff != "" {
		t.Errorf("recorded callbacks (-want +got):\n%s", diff)
	}
}

func TestAsyncAgent_StopsWhenRefused(t *testing.T) {
	a := newTestAgents(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusConflict) })
	if a.DeliverResult(t.Context(), taskFor(AsyncAgent, nil), "m") {
		t.Error("DeliverResult: got true for a refused result, want false")
	}
	if got := a.ledger.callbacks; len(got) != 1 || got[0].status != http.StatusConflict {
		t.Errorf("got callbacks %v, want one conflict", got)
	}
}

func TestAsyncAgent_RecordsNothingWhileRouterIsDown(t *testing.T) {
	a := newTestAgents(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if a.DeliverResult(ctx, taskFor(AsyncAgent, nil), "m") || len(a.ledger.callbacks) != 0 {
		t.Errorf("got callbacks %v, want none", a.ledger.callbacks)
	}
}

func TestHeldTasks_WaitForRelease(t *testing.T) {
	a := newTestAgents(t, nil)
	hold := map[string]json.RawMessage{inputHold: encodeJSON(true)}
	if status, _ := postTask(t, a, AsyncAgent, encodeJSON(taskFor(AsyncAgent, hold))); status != http.StatusAccepted {
		t.Errorf("got %d, want 202", status)
	}
	if got := a.CountHeld(); got != 1 {
		t.Errorf("got %d held tasks, want 1", got)
	}
	if held := a.ReleaseHeld(); len(held) != 1 || held[0].TaskID != "t-"+AsyncAgent {
		t.Errorf("got tasks %v, want the one task", held)
	}
	if status, _ := postTask(t, a, PlainAgent, encodeJSON(taskFor(PlainAgent, hold))); status != http.StatusOK {
		t.Errorf("after release: got %d, want 200", status)
	}
}
