package router_test

import (
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/testkit"
)

// While the disk is full, requests that need a write are rejected, and stored ones
// can be read. Afterwards the router works again without a restart.
func TestRouter_RejectsRequestsWhileDiskIsFull(t *testing.T) {
	h := newHarness(t)
	before, err := h.Handle(t.Context(), newRequest(), alice)
	if err != nil {
		t.Fatal(err)
	}
	h.full.Store(true)
	if _, err := h.Handle(t.Context(), newRequest(), alice); code(err) != contract.CodeAuditUnavailable {
		t.Errorf("a request: got %v, want %s", err, contract.CodeAuditUnavailable)
	}
	if _, err := h.Submit(t.Context(), newRequest(asynchronous), alice); code(err) != contract.CodeOverloaded {
		t.Errorf("an asynchronous request: got %v, want %s", err, contract.CodeOverloaded)
	}
	if _, err := h.Handle(t.Context(), newRequest(keyed("k")), alice); code(err) != contract.CodeOverloaded {
		t.Errorf("a request with a key: got %v, want %s", err, contract.CodeOverloaded)
	}
	if got, err := h.Request(t.Context(), before.RequestID, alice); err != nil || got.Status != contract.StatusCompleted {
		t.Errorf("what was answered before: got %+v, %v", got, err)
	}
	if _, err := h.Handle(t.Context(), newRequest(func(r *contract.Request) { r.Options.DryRun = true }), alice); err != nil {
		t.Errorf("a dry run: got %v", err)
	}
	h.full.Store(false)
	if got, err := h.Handle(t.Context(), newRequest(keyed("k")), alice); err != nil || got.Status != contract.StatusCompleted {
		t.Errorf("afterwards: got %+v, %v", got, err)
	}
	if given := h.target.given(); len(given) != 2 {
		t.Errorf("%d tasks were given out, want 2", len(given))
	}
}

// A result is stored as soon as the disk has space again.
func TestRunner_RetriesWritesUntilDiskHasSpace(t *testing.T) {
	h := newHarness(t)
	h.target.does("payer", h.target.later)
	id := h.submit().RequestID
	call := testkit.Receive(t, h.target.begun)
	h.waits(id)
	h.full.Store(true)
	grant, res := byCallback(&call, "paid")
	if err := h.Callbacks().AcceptResult(t.Context(), grant, res); code(err) != contract.CodeOverloaded {
		t.Errorf("got %v, want the agent to keep its result and try again", err)
	}
	if rec, err := h.requests.Get(t.Context(), id); err != nil || rec.State != requests.StateRunning {
		t.Errorf("got %+v, %v, want it to go on", rec, err)
	}
	h.full.Store(false)
	if err := h.Callbacks().AcceptResult(t.Context(), grant, res); err != nil {
		t.Fatal(err)
	}
	if got := h.final(id); got.Status != contract.StatusCompleted || got.Data.Answer != "paid" {
		t.Errorf("got %s with %q, want it completed", got.Status, got.Data.Answer)
	}
}
