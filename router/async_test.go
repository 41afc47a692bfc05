package router_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/testkit"
)

func TestRouter_StoresAndExecutesAsynchronousRequest(t *testing.T) {
	h := newHarness(t)
	accepted := h.submit()
	if accepted.Status != contract.StatusAccepted || accepted.RequestID == "" {
		t.Fatalf("got %+v, want it accepted", accepted)
	}
	got := h.final(accepted.RequestID)
	if got.Status != contract.StatusCompleted || got.Data.Answer != "done by payer" {
		t.Errorf("got %s with %q, want it completed by payer", got.Status, got.Data.Answer)
	}
	again, err := h.Request(t.Context(), accepted.RequestID, alice)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, again); diff != "" {
		t.Errorf("final response and later lookup differ (-final +now):\n%s", diff)
	}
	h.restart()
	after, err := h.Request(t.Context(), accepted.RequestID, alice)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, after); diff != "" {
		t.Errorf("final response and lookup after a restart differ (-final +now):\n%s", diff)
	}
	if dispatched := h.target.dispatchedTo(); len(dispatched) != 1 {
		t.Errorf("got tasks sent to %v, want one task", dispatched)
	}
}

func TestRouter_EmitsEventsInOrder(t *testing.T) {
	h := newHarness(t)
	id := h.submit().RequestID
	h.final(id)
	var kinds []contract.EventType
	var second uint64
	if err := h.Events(t.Context(), id, alice, 0, func(seq uint64, ev *contract.Event) error {
		kinds = append(kinds, ev.Type)
		if len(kinds) == 2 {
			second = seq
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	want := []contract.EventType{contract.EventDecision, contract.EventTaskStarted, contract.EventTaskDone, contract.EventFinal}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	kinds = nil
	if err := h.Events(t.Context(), id, alice, second, func(_ uint64, ev *contract.Event) error {
		kinds = append(kinds, ev.Type)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want[2:], kinds); diff != "" {
		t.Errorf("events after the second one (-want +got):\n%s", diff)
	}
}

// After a crash the next process resends idempotent tasks only. The others end with
// outcome_unknown, because the agent may have executed them.
func TestRunner_ResendsOnlyIdempotentTasks(t *testing.T) {
	tests := map[string]struct {
		intent, agent string
		behaviour     func(*agents) func(context.Context, dispatch.Call) dispatch.Outcome
		status        contract.Status
		dispatched    []string
		code          contract.TaskCode
	}{
		"idempotent": {
			"count", "counter", func(a *agents) func(context.Context, dispatch.Call) dispatch.Outcome { return a.hang },
			contract.StatusCompleted,
			[]string{"counter", "counter"},
			"",
		},
		"not idempotent": {
			"pay", "payer", func(a *agents) func(context.Context, dispatch.Call) dispatch.Outcome { return a.hang },
			contract.StatusFailed,
			[]string{"payer"},
			contract.TaskOutcomeUnknown,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.classifier.proposal.Intent, h.classifier.proposal.Domains = tt.intent, map[string][]string{"count": {"words"}, "pay": {"bills"}}[tt.intent]
			h.target.setBehaviour(tt.agent, tt.behaviour(h.target))
			id := h.submit().RequestID
			first := testkit.Receive(t, h.target.begun)
			h.crash()
			h.target.setBehaviour(tt.agent, nil)
			h.open()
			if err := h.Resume(t.Context()); err != nil {
				t.Fatal(err)
			}
			got := h.final(id)
			if got.Status != tt.status {
				t.Errorf("got status %s, want %s", got.Status, tt.status)
			}
			if diff := cmp.Diff(tt.dispatched, h.target.dispatchedTo()); diff != "" {
				t.Errorf("agents that got tasks (-want +got):\n%s", diff)
			}
			report := &got.Tasks[0]
			if report.TaskID != first.Task.TaskID {
				t.Errorf("got task %s, want the first one, %s", report.TaskID, first.Task.TaskID)
			}
			if tt.code == "" && report.Error != nil || tt.code != "" && (report.Error == nil || report.Error.Code != tt.code) {
				t.Errorf("got error %+v, want %q", report.Error, tt.code)
			}
		})
	}
}

// A task that its agent accepted with 202 is still pending after a restart.
func TestRunner_ResumesWaitingForCallback(t *testing.T) {
	h := newHarness(t)
	h.target.setBehaviour("payer", h.target.acceptLater)
	id := h.submit().RequestID
	call := testkit.Receive(t, h.target.begun)
	h.waitForCallback(id)
	h.restart()
	grant, res := callbackResult(&call, "paid")
	if err := h.Callbacks().AcceptResult(t.Context(), grant, res); err != nil {
		t.Fatal(err)
	}
	got := h.final(id)
	if got.Status != contract.StatusCompleted || got.Data.Answer != "paid" {
		t.Errorf("got %s with answer %q, want completed", got.Status, got.Data.Answer)
	}
	if dispatched := h.target.dispatchedTo(); len(dispatched) != 1 {
		t.Errorf("got tasks sent to %v, want one task", dispatched)
	}
	select {
	case id := <-h.target.stops:
		t.Errorf("got a cancellation for task %s, want none", id)
	default:
	}
}

// A result that arrives between the start and Resume is stored.
func TestCallbacks_StoreResultBeforeResume(t *testing.T) {
	h := newHarness(t)
	h.target.setBehaviour("payer", h.target.acceptLater)
	id := h.submit().RequestID
	call := testkit.Receive(t, h.target.begun)
	h.waitForCallback(id)
	h.crash()
	h.open()
	grant, res := callbackResult(&call, "paid")
	for range 2 { // the agent repeats it, because the confirmation got lost
		if err := h.Callbacks().AcceptResult(t.Context(), grant, res); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := h.final(id); got.Status != contract.StatusCompleted || got.Data.Answer != "paid" {
		t.Errorf("got %s with answer %q, want completed", got.Status, got.Data.Answer)
	}
}

// waitForCallback waits until a task of the stored request is waiting for its callback.
func (h *harness) waitForCallback(id string) {
	h.t.Helper()
	h.eventually(func() bool {
		rec, err := h.requests.Get(context.Background(), id)
		return err == nil && slices.ContainsFunc(rec.Tasks, func(task requests.Task) bool { return task.State == requests.TaskWaiting })
	})
}

// eventually waits until the condition is true.
func (h *harness) eventually(condition func() bool) {
	h.t.Helper()
	testkit.Eventually(h.t, "the condition of the test is true", condition)
}

// A resumed request keeps its plan.
func TestRunner_ResumesWithStoredPlan(t *testing.T) {
	h := newHarness(t)
	h.target.setBehaviour("payer", h.target.hang)
	h.target.setBehaviour("second", h.target.hang)
	id := h.submit().RequestID
	testkit.Receive(t, h.target.begun)
	before, err := h.requests.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	h.classifier.proposal.Intent = "count" // the model proposes another intent the second time
	h.restart()
	got := h.final(id)
	if got.Decision.DecisionID != before.Decision.DecisionID || got.Decision.Classification.Intent != "pay" {
		t.Errorf("got decision %s for intent %s, want %s for pay", got.Decision.DecisionID, got.Decision.Classification.Intent, before.Decision.DecisionID)
	}
}

// Close hands over running requests: it neither changes the stored request nor cancels a task.
func TestRunner_CloseHandsOverOpenRequests(t *testing.T) {
	h := newHarness(t)
	h.classifier.proposal.Intent, h.classifier.proposal.Domains = "count", []string{"words"}
	h.target.setBehaviour("counter", h.target.hang)
	id := h.submit().RequestID
	testkit.Receive(t, h.target.begun)
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	h.Close(interrupted)
	rec, err := h.requests.Get(t.Context(), id)
	if err != nil || rec.State != requests.StateRunning || len(rec.Tasks) != 1 || rec.Tasks[0].State != requests.TaskSent {
		t.Errorf("got %+v, %v, want a running request with its task pending", rec, err)
	}
}

// The decision is in the audit log before a task is sent, and the response afterwards.
func TestRouter_RecordsDecisionBeforeDispatch(t *testing.T) {
	h := newHarness(t)
	var atDispatch audit.RequestRecords
	h.target.setBehaviour("payer", func(ctx context.Context, c dispatch.Call) dispatch.Outcome {
		atDispatch, _ = h.auditLog.Find(ctx, c.Task.RequestID)
		return dispatch.Outcome{Result: success("paid"), Attempts: 1}
	})
	resp, err := h.Handle(t.Context(), newRequest(), alice)
	if err != nil {
		t.Fatal(err)
	}
	if atDispatch.Decision == nil || atDispatch.Outcome != nil || atDispatch.Decision.DecisionID != resp.Decision.DecisionID {
		t.Errorf("audit log at dispatch: got %+v, want the decision", atDispatch)
	}
	after, err := h.auditLog.Find(t.Context(), resp.RequestID)
	if err != nil || after.Outcome == nil || after.Outcome.Status != contract.StatusCompleted {
		t.Errorf("audit log after the response: got %+v, %v, want the outcome", after.Outcome, err)
	}
	if _, err := h.Handle(t.Context(), newRequest(func(r *contract.Request) { r.Options.DryRun = true }), alice); err != nil {
		t.Fatal(err)
	}
	page, err := h.Decisions(t.Context(), contract.DecisionQuery{}, alice)
	if err != nil || len(page.Decisions) != 1 {
		t.Fatalf("got %+v, %v, want one decision, because a dry run records none", page, err)
	}
}

// If the decision cannot be recorded, no task is sent.
func TestRouter_DispatchesNothingIfAuditLogFails(t *testing.T) {
	h := newHarness(t)
	if err := h.auditLog.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := h.Handle(t.Context(), newRequest(), alice)
	if e, ok := errors.AsType[*contract.Error](err); !ok || e.Code != contract.CodeAuditUnavailable {
		t.Errorf("got %v, want %s", err, contract.CodeAuditUnavailable)
	}
	if dispatched := h.target.dispatchedTo(); len(dispatched) != 0 {
		t.Errorf("got tasks sent to %v, want none", dispatched)
	}
}

// A synchronous request whose process was killed ends with outcome_unknown, even before recovery.
// Recovery does not touch a request that begins before it.
func TestRunner_ClosesInterruptedSynchronousRequests(t *testing.T) {
	h := newHarness(t)
	h.target.setBehaviour("payer", h.target.hang)
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan string)
	go func() {
		_, _ = h.Handle(ctx, newRequest(), alice)
		close(left)
	}()
	call := testkit.Receive(t, h.target.begun)
	h.crash()
	cancel()
	testkit.WaitClosed(t, left)
	h.open()
	got, err := h.Request(t.Context(), call.Task.RequestID, alice)
	if err != nil {
		t.Fatal(err)
	}
	if got.Status != contract.StatusFailed || len(got.Tasks) != 1 || got.Tasks[0].Error.Code != contract.TaskOutcomeUnknown {
		t.Errorf("got %s with tasks %+v, want failed with an unknown outcome", got.Status, got.Tasks)
	}
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	answers := h.handle(ctx)
	running := testkit.Receive(t, h.target.begun)
	if err := h.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	found, err := h.auditLog.Find(t.Context(), call.Task.RequestID)
	if err != nil || found.Outcome == nil || found.Outcome.Status != contract.StatusFailed {
		t.Errorf("interrupted request: got outcome %+v, %v, want outcome_unknown", found.Outcome, err)
	}
	if found, err := h.auditLog.Find(t.Context(), running.Task.RequestID); err != nil || found.Decision == nil || found.Outcome != nil {
		t.Errorf("running request: got outcome %+v, %v, want the decision only", found.Outcome, err)
	}
	cancel()
	testkit.Receive(t, answers)
}

func code(err error) contract.Code {
	e, _ := errors.AsType[*contract.Error](err)
	if e == nil {
		return ""
	}
	return e.Code
}
