package router_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/testkit"
)

// handled is the result of a synchronous request.
type handled struct {
	resp *contract.Response
	err  error
}

// handle sends a synchronous request in the background.
func (h *harness) handle(ctx context.Context, change ...func(*contract.Request)) <-chan handled {
	answers := make(chan handled, 1)
	go func() {
		resp, err := h.Handle(ctx, newRequest(change...), alice)
		answers <- handled{resp, err}
	}()
	return answers
}

// handleUntilStored sends a synchronous request whose agent answers 202, and returns when the
// request is stored.
func (h *harness) handleUntilStored(ctx context.Context, change ...func(*contract.Request)) (dispatch.Call, <-chan handled) {
	h.t.Helper()
	h.target.setBehaviour("payer", h.target.acceptLater)
	answers := h.handle(ctx, change...)
	call := testkit.Receive(h.t, h.target.begun)
	h.waitForCallback(call.Task.RequestID)
	return call, answers
}

// checkOneOutcome fails unless the stored request and the audit log contain one outcome with this
// status.
func (h *harness) checkOneOutcome(id string, want contract.Status) {
	h.t.Helper()
	testkit.Eventually(h.t, "the request leaves the index of open requests", func() bool {
		open, err := h.requests.IsOpen(h.t.Context(), id)
		return err == nil && !open
	})
	rec, err := h.requests.Get(h.t.Context(), id)
	if err != nil || rec.State != requests.State(want) {
		h.t.Errorf("got record %+v and error %v, want status %s", rec, err, want)
	}
	page, err := h.auditLog.Read(h.t.Context(), audit.Query{Limit: 100, Filter: func(r *audit.Record) bool { return r.RequestID == id }})
	if err != nil {
		h.t.Fatal(err)
	}
	var outcomes []contract.Status
	for _, r := range page.Records {
		if r.Kind == audit.KindOutcome {
			outcomes = append(outcomes, r.Status)
		}
	}
	if diff := cmp.Diff([]contract.Status{want}, outcomes); diff != "" {
		h.t.Errorf("outcomes in the audit log (-want +got):\n%s", diff)
	}
}

func TestRouter_StoresSynchronousRequestOnlyIfItsResultComesLater(t *testing.T) {
	h := newHarness(t)
	resp, err := h.Handle(t.Context(), newRequest(), alice)
	if err != nil || resp.Status != contract.StatusCompleted {
		t.Fatalf("got %+v, %v, want completed", resp, err)
	}
	if rec, err := h.requests.Get(t.Context(), resp.RequestID); err == nil {
		t.Errorf("request completed at once: got record %+v, want none", rec)
	}

	call, answers := h.handleUntilStored(t.Context(), keyed("k"))
	id := call.Task.RequestID
	running, err := h.Request(t.Context(), id, alice)
	if err != nil || running.Status != contract.StatusRunning || running.Decision == nil || len(running.Tasks) != 1 {
		t.Errorf("during execution: got %+v, %v, want a running request with its task", running, err)
	}
	if _, err := h.Handle(t.Context(), newRequest(keyed("k")), alice); code(err) != contract.CodeConflict {
		t.Errorf("second request during execution: got %v, want a conflict", err)
	}
	grant, res := callbackResult(&call, "paid")
	h.must(h.Callbacks().AcceptResult(t.Context(), grant, res))
	if got := testkit.Receive(t, answers); got.err != nil || got.resp.Status != contract.StatusCompleted || got.resp.Data.Answer != "paid" {
		t.Fatalf("got %+v, %v, want completed", got.resp, got.err)
	}
	h.checkOneOutcome(id, contract.StatusCompleted)
	if again, err := h.Handle(t.Context(), newRequest(keyed("k")), alice); err != nil || !again.Replayed || again.RequestID != id {
		t.Errorf("second request after the end: got %+v, %v, want the stored response", again, err)
	}
	if final := h.final(id); final.Status != contract.StatusCompleted {
		t.Errorf("got last event %+v, want completed", final)
	}
}

func TestRouter_CompletesSynchronousRequestAfterCrash(t *testing.T) {
	h := newHarness(t)
	h.classifier.proposal.Subtasks = []contract.Subtask{
		{Title: "count", Intent: "count", Domains: []string{"words"}}, {Title: "pay", Intent: "pay", Domains: []string{"bills"}},
	}
	counted := make(chan struct{})
	h.target.setBehaviour("counter", func(context.Context, dispatch.Call) dispatch.Outcome {
		defer close(counted)
		return dispatch.Outcome{Result: success("12 words"), Attempts: 1}
	})
	h.target.setBehaviour("payer", func(ctx context.Context, c dispatch.Call) dispatch.Outcome {
		<-counted
		return h.target.acceptLater(ctx, c)
	})
	h.handle(t.Context(), keyed("k")) // its caller waits for the first process
	call := testkit.Receive(t, h.target.begun)
	id := call.Task.RequestID
	testkit.Eventually(t, "both tasks are stored", func() bool {
		rec, err := h.requests.Get(t.Context(), id)
		if err != nil || len(rec.Tasks) != 2 {
			return false
		}
		states := map[requests.TaskState]bool{rec.Tasks[0].State: true, rec.Tasks[1].State: true}
		return states[requests.TaskDone] && states[requests.TaskWaiting]
	})
	h.restart()
	grant, res := callbackResult(&call, "paid")
	h.must(h.Callbacks().AcceptResult(t.Context(), grant, res))
	got := h.final(id)
	if got.Status != contract.StatusCompleted || len(got.Tasks) != 2 {
		t.Errorf("got %s with tasks %+v, want both completed", got.Status, got.Tasks)
	}
	h.checkOneOutcome(id, contract.StatusCompleted)
	if dispatched := h.target.dispatchedTo(); len(dispatched) != 2 {
		t.Errorf("got tasks sent to %v, want each once", dispatched)
	}
	if again, err := h.Handle(t.Context(), newRequest(keyed("k")), alice); err != nil || !again.Replayed || again.Status != contract.StatusCompleted {
		t.Errorf("second request: got %+v, %v, want the stored response", again, err)
	}
}

func TestRouter_CancelsStoredSynchronousRequest(t *testing.T) {
	for name, cancel := range map[string]func(h *harness, id string, disconnect func()){
		"disconnect": func(_ *harness, _ string, disconnect func()) { disconnect() },
		"cancel": func(h *harness, id string, _ func()) {
			if got, err := h.Cancel(h.t.Context(), id, alice); err != nil || got.Status != contract.StatusCancelled {
				h.t.Errorf("got %+v, %v, want cancelled", got, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			ctx, disconnect := context.WithCancel(t.Context())
			defer disconnect()
			call, answers := h.handleUntilStored(ctx)
			cancel(h, call.Task.RequestID, disconnect)
			if got := testkit.Receive(t, answers); got.err != nil || got.resp.Status != contract.StatusCancelled {
				t.Errorf("synchronous response: got %+v, %v, want cancelled", got.resp, got.err)
			}
			if stopped := testkit.Receive(t, h.target.stops); stopped != call.Task.TaskID {
				t.Errorf("got cancelled task %s, want %s", stopped, call.Task.TaskID)
			}
			h.checkOneOutcome(call.Task.RequestID, contract.StatusCancelled)
			grant, res := callbackResult(&call, "paid")
			if err := h.Callbacks().AcceptResult(t.Context(), grant, res); code(err) != contract.CodeConflict {
				t.Errorf("result after the cancellation: got %v, want a conflict", err)
			}
		})
	}
}

// The store accepts the decision, and rejects all later writes.
func TestRouter_EndsTaskThatCannotBeStored(t *testing.T) {
	for _, tt := range []struct {
		intent, domain, agent string
		code                  contract.TaskCode
		dispatched            []string
	}{
		{"pay", "bills", "payer", contract.TaskOutcomeUnknown, []string{"payer"}},
		{"count", "words", "counter", contract.TaskAgentUnavailable, []string{"counter"}},
	} {
		t.Run(tt.agent, func(t *testing.T) {
			h := newHarness(t)
			h.classifier.proposal.Intent, h.classifier.proposal.Domains = tt.intent, []string{tt.domain}
			h.target.setBehaviour(tt.agent, func(ctx context.Context, c dispatch.Call) dispatch.Outcome {
				h.full.Store(true)
				return h.target.acceptLater(ctx, c)
			})
			resp, err := h.Handle(t.Context(), newRequest(), alice)
			if err != nil || resp.Status != contract.StatusFailed || resp.Tasks[0].Error == nil || resp.Tasks[0].Error.Code != tt.code {
				t.Fatalf("got %+v, %v, want its task failed with %s", resp, err, tt.code)
			}
			call := testkit.Receive(t, h.target.begun)
			if stopped := testkit.Receive(t, h.target.stops); stopped != call.Task.TaskID {
				t.Errorf("got cancelled task %s, want %s", stopped, call.Task.TaskID)
			}
			if diff := cmp.Diff(tt.dispatched, h.target.dispatchedTo()); diff != "" {
				t.Errorf("agents that got tasks (-want +got):\n%s", diff)
			}
			if rec, err := h.requests.Get(t.Context(), resp.RequestID); err == nil {
				t.Errorf("got record %+v, want none", rec)
			}
			grant, res := callbackResult(&call, "done")
			if err := h.Callbacks().AcceptResult(t.Context(), grant, res); code(err) != contract.CodeConflict {
				t.Errorf("result after the end: got %v, want a conflict", err)
			}
		})
	}
}

// A process that was presumed dead finds another owner in its request.
func TestRouter_ReturnsStateOfRequestWithNewOwner(t *testing.T) {
	h := newHarness(t)
	call, answers := h.handleUntilStored(t.Context())
	id := call.Task.RequestID
	h.must(second(h.requests.Update(t.Context(), id, func(rec *requests.Record) error { return rec.TakeOver("another", rec.CreatedAt) })))
	grant, res := callbackResult(&call, "paid")
	h.must(h.Callbacks().AcceptResult(t.Context(), grant, res))
	if got := testkit.Receive(t, answers); got.err != nil || got.resp.Status != contract.StatusRunning || got.resp.RequestID != id {
		t.Errorf("got %+v, %v, want running", got.resp, got.err)
	}
	if rec, err := h.requests.Get(t.Context(), id); err != nil || rec.State.Terminal() || rec.Owner != "another" {
		t.Errorf("got record %+v, %v, want running with its new owner", rec, err)
	}
}

// A panic after the request was stored ends the stored request.
func TestRouter_FailsStoredRequestIfPipelinePanics(t *testing.T) {
	h := newHarness(t)
	h.target.setBehaviour("payer", h.target.acceptLater)
	panics := make(chan any, 1)
	go func() {
		defer func() { panics <- recover() }()
		_, _ = h.Stream(t.Context(), newRequest(), alice, func(ev *contract.Event) {
			if ev.Type == contract.EventTaskDone {
				panic("boom")
			}
		})
	}()
	call := testkit.Receive(t, h.target.begun)
	h.waitForCallback(call.Task.RequestID)
	grant, res := callbackResult(&call, "paid")
	h.must(h.Callbacks().AcceptResult(t.Context(), grant, res))
	if testkit.Receive(t, panics) == nil {
		t.Fatal("got no panic")
	}
	h.checkOneOutcome(call.Task.RequestID, contract.StatusCompleted)
}

// A record whose write the store did not confirm is not executed after a restart, because the
// request has ended without it.
func TestRunner_DeletesUnconfirmedRecordOfEndedRequest(t *testing.T) {
	h := newHarness(t)
	resp, err := h.Handle(t.Context(), newRequest(), alice)
	h.must(err)
	rec := &requests.Record{
		ID: resp.RequestID, TraceID: resp.TraceID, Caller: *alice, Request: *newRequest(), Deadline: time.Now().Add(time.Minute),
		State: requests.StateAccepted, Owner: "another", Epoch: 1,
	}
	h.must(h.requests.Create(t.Context(), rec))
	h.must(h.Resume(t.Context()))
	if rec, err := h.requests.Get(t.Context(), resp.RequestID); err == nil {
		t.Errorf("got record %+v, want none", rec)
	}
	if got, err := h.Request(t.Context(), resp.RequestID, alice); err != nil || got.Status != contract.StatusCompleted {
		t.Errorf("got %+v, %v, want its response", got, err)
	}
	if dispatched := h.target.dispatchedTo(); len(dispatched) != 1 {
		t.Errorf("got tasks sent to %v, want one task", dispatched)
	}
}
