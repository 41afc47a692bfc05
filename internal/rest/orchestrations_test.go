package rest

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/httpserver"
	"github.com/caprouter/caprouter/internal/orchestrations"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/internal/testkit"
)

// fakeRuns has the runs of the examples: the id is the name of the example.
type fakeRuns struct{}

const fakeRunPrefix = "examples/run_"

func (fakeRuns) load(id string) (*contract.Orchestration, error) {
	raw, err := os.ReadFile(fakeRunPrefix + id + ".json")
	if err != nil {
		return nil, errMissing
	}
	run := new(contract.Orchestration)
	return run, strictjson.Unmarshal(raw, run)
}

// Submit returns the run that is named by the goal.
func (f fakeRuns) Submit(_ context.Context, sub orchestrations.Submission) (*contract.Orchestration, error) {
	run, err := f.load(sub.Goal.Goal)
	if err == nil {
		run.OrchestrationID = sub.Goal.Goal
		run.Replayed = sub.Idempotency != nil && sub.Idempotency.Key == sentBefore
	}
	return run, err
}

// sentBefore is the idempotency key of a goal that was sent before.
const sentBefore = "sent-before"

func (f fakeRuns) Get(_ context.Context, id string, _ *contract.Caller) (*contract.Orchestration, error) {
	return f.load(id)
}

func (f fakeRuns) List(_ context.Context, query contract.RunQuery, _ *contract.Caller) (*contract.RunPage, error) {
	page := &contract.RunPage{Orchestrations: []contract.RunSummary{}}
	for _, name := range []string{"waiting", "running", "done", "failed", "blocked", "degraded"} {
		run, err := f.load(name)
		if err != nil {
			return nil, err
		}
		if query.Status == "" || run.Status == query.Status {
			page.Orchestrations = append(page.Orchestrations, contract.RunSummary{
				OrchestrationID: run.OrchestrationID, Status: run.Status, State: run.State, Reason: run.Reason, Goal: run.Goal, Gates: run.Gates,
				CreatedAt: run.CreatedAt, EndedAt: run.EndedAt,
			})
		}
	}
	return page, nil
}

func (f fakeRuns) Wait(_ context.Context, id string, _ *contract.Caller) (*contract.Orchestration, error) {
	return f.load(id)
}

func (f fakeRuns) Follow(_ context.Context, id string, _ *contract.Caller, after int, emit func(contract.RunEvent) error) (*contract.Orchestration, error) {
	run, err := f.load(id)
	if err != nil {
		return nil, err
	}
	for _, ev := range run.AuditTrail[min(after, len(run.AuditTrail)):] {
		if err := emit(ev); err != nil {
			return nil, err
		}
	}
	return run, nil
}

func (f fakeRuns) Approve(_ context.Context, id string, approval contract.Approval, _ *contract.Caller) (*contract.Orchestration, error) {
	if approval.Step != "forecast" {
		return nil, errLate
	}
	return f.load(id)
}

func (f fakeRuns) Cancel(_ context.Context, id string, _ *contract.Caller) (*contract.Orchestration, error) {
	if id == "done" {
		return nil, errLate
	}
	return f.load(id)
}

func (f fakeRuns) Erase(_ context.Context, id string, _ *contract.Caller) error {
	if id == "running" {
		return errLate
	}
	_, err := f.load(id)
	return err
}

// The stream of a run resumes after any event, and ends with the run.
func TestHandleRunEvents_Resumes(t *testing.T) {
	srv := startServer(t, httpserver.Config{}, &fakeBackend{})
	for after, want := range map[int]int{0: 13, 11: 2, 12: 1} {
		resp := srv.send(t, http.MethodGet, fmt.Sprintf("/api/v1/orchestrations/done/events?after=%d", after), nil)
		events := testkit.ReadSSE(t, string(resp.body))
		if len(events) != want || events[len(events)-1].Name != eventFinal || !strings.Contains(events[len(events)-1].Data, `"status":"DONE"`) {
			t.Errorf("after %d: got %d events, want %d, the last one final", after, len(events), want)
		}
	}
}

func TestHandleOrchestrate_IdempotencyKey(t *testing.T) {
	srv := startServer(t, httpserver.Config{}, &fakeBackend{})
	for name, tc := range map[string]struct {
		path, body string
		keys       []string
		status     int
		replayed   string
	}{
		"first":          {"/api/v1/orchestrations", `{"goal":"done"}`, []string{"new"}, http.StatusOK, ""},
		"sent again":     {"/api/v1/orchestrations", `{"goal":"done"}`, []string{sentBefore}, http.StatusOK, "true"},
		"two keys":       {"/api/v1/orchestrations", `{"goal":"done"}`, []string{"a", "b"}, http.StatusUnprocessableEntity, ""},
		"empty key":      {"/api/v1/orchestrations", `{"goal":"done"}`, []string{""}, http.StatusUnprocessableEntity, ""},
		"call of a tool": {"/api/v1/mcp/invoke", `{"action":"weather.query"}`, []string{"new"}, http.StatusUnprocessableEntity, ""},
	} {
		headers := []string{"Content-Type", "application/json"}
		for _, key := range tc.keys {
			headers = append(headers, "Idempotency-Key", key)
		}
		got := srv.send(t, http.MethodPost, tc.path, strings.NewReader(tc.body), headers...)
		if replayed := got.Header.Get("Idempotency-Replayed"); got.StatusCode != tc.status || replayed != tc.replayed {
			t.Errorf("%s: got %d and Idempotency-Replayed %q, want %d and %q: %s", name, got.StatusCode, replayed, tc.status, tc.replayed, got.body)
		}
	}
}
