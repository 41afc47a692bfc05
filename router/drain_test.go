package router_test

import (
	"context"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/testkit"
)

// Close waits for the tasks that were sent, and records the response.
func TestRunner_CloseAwaitsSentTasks(t *testing.T) {
	h := newHarness(t)
	resume := make(chan struct{})
	h.target.setBehaviour("payer", func(ctx context.Context, c dispatch.Call) dispatch.Outcome {
		h.target.begun <- c
		<-resume
		return dispatch.Outcome{Result: success("paid"), Attempts: 1, Health: dispatch.HealthGood}
	})
	id := h.submit().RequestID
	testkit.Receive(t, h.target.begun)
	closed := make(chan struct{})
	go func() {
		h.Close(t.Context())
		close(closed)
	}()
	h.eventually(h.IsDraining)
	late := h.submit().RequestID // accepted, and handed over to the next process
	close(resume)
	testkit.WaitClosed(t, closed)
	if rec, err := h.requests.Get(t.Context(), id); err != nil || rec.State != requests.State(contract.StatusCompleted) {
		t.Errorf("got %+v, %v, want completed", rec, err)
	}
	if rec, err := h.requests.Get(t.Context(), late); err != nil || rec.State.Terminal() || len(rec.Tasks) != 0 {
		t.Errorf("got %+v, %v, want no task sent", rec, err)
	}
}

// A disconnect during Submit does not interrupt the write of the request.
func TestRouter_StoresRequestIfCallerDisconnects(t *testing.T) {
	h := newHarness(t)
	disconnected, disconnect := context.WithCancel(t.Context())
	disconnect()
	resp, err := h.Submit(disconnected, newRequest(asynchronous), alice)
	if err != nil {
		t.Fatal(err)
	}
	if got := h.final(resp.RequestID); got.Status != contract.StatusCompleted {
		t.Errorf("got %s, want completed", got.Status)
	}
}

// A disconnect while the decision is written does not leave a decision without an
// outcome.
func TestRouter_RecordsOutcomeIfCallerDisconnects(t *testing.T) {
	h := newHarness(t)
	disconnected, disconnect := context.WithCancel(t.Context())
	disconnect()
	resp, err := h.Handle(disconnected, newRequest(), alice)
	if err != nil || resp.Status != contract.StatusCancelled {
		t.Fatalf("got %+v, %v, want cancelled", resp, err)
	}
	found, err := h.auditLog.Find(t.Context(), resp.RequestID)
	if err != nil || found.Decision == nil || found.Outcome == nil || found.Outcome.Status != contract.StatusCancelled {
		t.Errorf("audit log: got %+v, %v, want the decision and its outcome", found, err)
	}
	if dispatched := h.target.dispatchedTo(); len(dispatched) != 0 {
		t.Errorf("got tasks sent to %v, want none", dispatched)
	}
}
