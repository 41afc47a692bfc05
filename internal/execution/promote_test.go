package execution

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/requests"
)

// promoter is a Promoter that keeps the record.
type promoter struct {
	err   error
	calls int
	rec   *requests.Record
}

func (p *promoter) Promote(_ context.Context, addTasks func(*requests.Record) error) (*OwnedRequest, error) {
	p.calls++
	if p.err != nil {
		return nil, p.err
	}
	p.rec = &requests.Record{State: requests.StateRunning, Parts: []requests.Part{{Agents: []string{"a", "b"}}, {Agents: []string{"c"}}, {Agents: []string{"d"}}}}
	if err := addTasks(p.rec); err != nil {
		return nil, err
	}
	return &OwnedRequest{Store: requests.Disabled(), Permit: NoPermit{}}, nil
}

func newPromotingTaskRecorder(p *promoter) (*PromotingTaskRecorder, *Callbacks) {
	callbacks := newTestCallbacks(storedResults{})
	persistence := New(nil, callbacks, nil, nil).Synchronous(p)
	return persistence.Recorder.(*PromotingTaskRecorder), callbacks
}

func successResult(answer string) *contract.Result {
	return &contract.Result{Status: contract.ResultSuccess, Explanations: []string{answer}}
}

// The record contains what happened before the promotion.
func TestPromotingTaskRecorder_PromotesWithAllTasksSoFar(t *testing.T) {
	ctx, p := t.Context(), new(promoter)
	s, callbacks := newPromotingTaskRecorder(p)
	sent := func(id, agent string, part int) {
		callbacks.pending.add(contract.TaskReport{TaskID: id, AgentID: agent}, &Run{Persistence: Persistence{Results: s}})
		if err := s.Sent(ctx, requests.Task{ID: id, AgentID: agent, Part: part}, false); err != nil {
			t.Fatal(err)
		}
	}
	sent("failed", "a", 0)
	s.Finished(ctx, "failed", dispatch.Outcome{Err: &contract.TaskError{Code: contract.TaskAgentUnavailable}, Attempts: 2})
	sent("waiting", "b", 0)
	sent("delivered", "c", 1)
	if err := callbacks.AcceptResult(ctx, contract.TaskGrant{TaskID: "delivered", AgentID: "c"}, &contract.Result{TaskID: "delivered"}); err != nil {
		t.Fatal(err)
	}
	if p.calls != 0 {
		t.Fatal("promoted the request although all tasks are in memory")
	}
	if out, done := s.AwaitingCallback(ctx, "waiting"); done {
		t.Fatalf("got outcome %+v, want to wait", out)
	}
	got := map[string]requests.TaskState{}
	for _, task := range p.rec.Tasks {
		got[task.ID] = task.State
	}
	want := map[string]requests.TaskState{"failed": requests.TaskDone, "waiting": requests.TaskWaiting, "delivered": requests.TaskDone}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tasks of the record (-want +got):\n%s", diff)
	}
	if p.rec.Tasks[0].Attempts != 2 || p.rec.Tasks[0].Err == nil || p.rec.Tasks[2].Result == nil {
		t.Errorf("got tasks %+v, want their outcomes", p.rec.Tasks)
	}
	if err := s.Sent(ctx, requests.Task{ID: "next", AgentID: "d", Part: 2}, false); err == nil {
		t.Error("a task after the promotion was not written to the record")
	}
}

func TestPromotingTaskRecorder_PromotesBeforeAgentPulls(t *testing.T) {
	p := new(promoter)
	s, _ := newPromotingTaskRecorder(p)
	if err := s.Sent(t.Context(), requests.Task{ID: "t", AgentID: "a"}, true); err != nil {
		t.Fatal(err)
	}
	if len(p.rec.Tasks) != 1 || p.rec.Tasks[0].State != requests.TaskSent {
		t.Errorf("got tasks %+v, want the one that is about to be pulled", p.rec.Tasks)
	}
}

func TestPromotingTaskRecorder_RejectsTaskIfStoreRejectsRequest(t *testing.T) {
	ctx, p := t.Context(), &promoter{err: errors.New("full")}
	s, _ := newPromotingTaskRecorder(p)
	if err := s.Sent(ctx, requests.Task{ID: "pulled", AgentID: "a"}, true); !errors.Is(err, p.err) {
		t.Errorf("a task to pull: got %v, want the error of the store", err)
	}
	for id, idempotent := range map[string]bool{"once": false, "often": true} {
		if err := s.Sent(ctx, requests.Task{ID: id, AgentID: "b", Idempotent: idempotent}, false); err != nil {
			t.Fatal(err)
		}
		out, done := s.AwaitingCallback(ctx, id)
		if !done || out.Err == nil || out.MayHaveExecuted == idempotent {
			t.Errorf("%s: got %+v, %v, want it failed, and uncertain if it is not idempotent", id, out, done)
		}
	}
	if p.calls != 1 {
		t.Errorf("the promotion was tried %d times, want once", p.calls)
	}
}

// If nothing will be awaited, no record is needed.
func TestPromotingTaskRecorder_PromotesOnlyIfItWaits(t *testing.T) {
	p := new(promoter)
	s, callbacks := newPromotingTaskRecorder(p)
	callbacks.pending.add(contract.TaskReport{TaskID: "t", AgentID: "a"}, &Run{Persistence: Persistence{Results: s}})
	if err := s.Sent(t.Context(), requests.Task{ID: "t", AgentID: "a"}, false); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if out, done := s.AwaitingCallback(ended, "t"); done {
		t.Errorf("after a disconnect: got %+v", out)
	}
	res := successResult("fast")
	res.TaskID = "t"
	if err := callbacks.AcceptResult(t.Context(), contract.TaskGrant{TaskID: "t", AgentID: "a"}, res); err != nil {
		t.Fatal(err)
	}
	if out, done := s.AwaitingCallback(t.Context(), "t"); !done || out.Result != res {
		t.Errorf("after the result: got %+v, %v, want it", out, done)
	}
	if p.calls != 0 {
		t.Errorf("the request was promoted %d times, want 0", p.calls)
	}
}
