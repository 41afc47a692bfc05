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
	goOn := make(chan struct{})
	h.target.does("payer", func(ctx context.Context, c dispatch.Call) dispatch.Outcome {
		h.target.begun <- c
		<-goOn
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
	close(goOn)
	testkit.WaitClosed(t, closed)
	if rec, err := h.requests.Get(t.Context(), id); err != nil || rec.State != requests.State(contract.StatusCompleted) {
		t.Errorf("got %+v, %v, want it completed", rec, err)
	}
	if rec, err := h.requests.Get(t.Context(), late); err != nil || rec.State.Terminal() || len(rec.Tasks) != 0 {
		t.Errorf("got %+v, %v, want nothing of it given out", rec, err)
	}
}

// A disconnect during Submit does not interrupt the write of the request.
func TestRouter_StoresRequestIfCallerDisconnects(t *testing.T) {
	h := newHarness(t)
	gone, leave := context.WithCancel(t.Context())
	leave()
	resp, err := h.Submit(gone, newRequest(asynchronous), alice)
	if err != nil {
		t.Fatal(err)
	}
	if got := h.final(resp.RequestID); got.Status != contract.StatusCompleted {
		t.Errorf("got %s, want it completed", got.Status)
	}
}

// A disconnect while the decision is written does not leave a decision without an
// outcome.
func TestRouter_RecordsOutcomeIfCallerDisconnects(t *testing.T) {
	h := newHarness(t)
	gone, leave := context.WithCancel(t.Context())
	leave()
	resp, err := h.Handle(gone, newRequest(), alice)
	if err != nil || resp.Status != contract.StatusCancelled {
		t.Fatalf("got %+v, %v, want it cancelled", resp, err)
	}
	found, err := h.auditLog.Find(t.Context(), resp.RequestID)
	if err != nil || found.Decision == nil || found.Outcome == nil || found.Outcome.Status != contract.StatusCancelled {
		t.Errorf("the trail has %+v, %v, want the decision and its end", found, err)
	}
	if given := h.target.given(); len(given) != 0 {
		t.Errorf("tasks went to %v, want none", given)
	}
}
