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
	}
	return run, err
}

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
