package router_test

import (
	"context"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/testkit"
)

// While the disk is full, requests that need a write are rejected, and stored requests can be read.
// Afterwards the router works again without a restart.
func TestRouter_RejectsRequestsWhileDiskIsFull(t *testing.T) {
	h := newHarness(t)
	before, err := h.Handle(t.Context(), newRequest(), alice)
	if err != nil {
		t.Fatal(err)
	}
	h.full.Store(true)
	if _, err := h.Handle(t.Context(), newRequest(), alice); code(err) != contract.CodeAuditUnavailable {
		t.Errorf("synchronous request: got %v, want %s", err, contract.CodeAuditUnavailable)
	}
	if _, err := h.Submit(t.Context(), newRequest(asynchronous), alice); code(err) != contract.CodeOverloaded {
		t.Errorf("asynchronous request: got %v, want %s", err, contract.CodeOverloaded)
	}
	if _, err := h.Handle(t.Context(), newRequest(keyed("k")), alice); code(err) != contract.CodeOverloaded {
		t.Errorf("request with an idempotency key: got %v, want %s", err, contract.CodeOverloaded)
	}
	if got, err := h.Request(t.Context(), before.RequestID, alice); err != nil || got.Status != contract.StatusCompleted {
		t.Errorf("request stored earlier: got %+v, %v, want it", got, err)
	}
	if _, err := h.Handle(t.Context(), newRequest(func(r *contract.Request) { r.Options.DryRun = true }), alice); err != nil {
		t.Errorf("dry run: got error %v, want none", err)
	}
	h.full.Store(false)
	if got, err := h.Handle(t.Context(), newRequest(keyed("k")), alice); err != nil || got.Status != contract.StatusCompleted {
		t.Errorf("request after space was freed: got %+v, %v, want completed", got, err)
	}
	if dispatched := h.target.dispatchedTo(); len(dispatched) != 2 {
		t.Errorf("got %d tasks sent, want 2", len(dispatched))
	}
}

// A result is stored as soon as the disk has space again.
func TestRunner_RetriesWritesUntilDiskHasSpace(t *testing.T) {
	h := newHarness(t)
	h.target.setBehaviour("payer", h.target.acceptLater)
	id := h.submit().RequestID
	call := testkit.Receive(t, h.target.begun)
	h.waitForCallback(id)
	h.full.Store(true)
	grant, res := callbackResult(&call, "paid")
	if err := h.Callbacks().AcceptResult(t.Context(), grant, res); code(err) != contract.CodeOverloaded {
		t.Errorf("got %v, want overloaded, so that the agent retries", err)
	}
	if rec, err := h.requests.Get(t.Context(), id); err != nil || rec.State != requests.StateRunning {
		t.Errorf("got %+v, %v, want a running request", rec, err)
	}
	h.full.Store(false)
	if err := h.Callbacks().AcceptResult(t.Context(), grant, res); err != nil {
		t.Fatal(err)
	}
	if got := h.final(id); got.Status != contract.StatusCompleted || got.Data.Answer != "paid" {
		t.Errorf("got %s with answer %q, want completed", got.Status, got.Data.Answer)
	}
}

// A response that cannot be recorded is found nevertheless, and recorded when the disk has
// space again, so that its caller can send the request again.
func TestRouter_RecordsResponseWhenDiskHasSpaceAgain(t *testing.T) {
	for name, answerFirst := range map[string]bool{"caller waits for the record": false, "caller does not wait": true} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.crash()
			h.answerFirst = answerFirst
			h.open()
			h.target.setBehaviour("payer", func(context.Context, dispatch.Call) dispatch.Outcome {
				h.full.Store(true)
				return dispatch.Outcome{Result: success("paid"), Attempts: 1, Health: dispatch.HealthGood}
			})
			var change []func(*contract.Request)
			if !answerFirst {
				change = append(change, keyed("k"))
			}
			resp, err := h.Handle(t.Context(), newRequest(change...), alice)
			if err != nil || resp.Status != contract.StatusCompleted {
				t.Fatalf("got %+v, %v, want a completed request", resp, err)
			}
			checkStored := func(when string) {
				t.Helper()
				got, err := h.Request(t.Context(), resp.RequestID, alice)
				if err != nil || got.Status != contract.StatusCompleted || got.Data.Answer != "paid" {
					t.Errorf("%s: got %+v, %v, want the response", when, got, err)
				}
			}
			checkStored("without space")
			if err := h.Erase(t.Context(), resp.RequestID, alice); code(err) != contract.CodeConflict {
				t.Errorf("erase before it is recorded: got %v, want %s", err, contract.CodeConflict)
			}
			h.full.Store(false)
			h.eventually(func() bool {
				found, err := h.auditLog.Find(t.Context(), resp.RequestID)
				return err == nil && found.Outcome != nil
			})
			h.restart()
			checkStored("after a restart")
			if answerFirst {
				return
			}
			again, err := h.Handle(t.Context(), newRequest(change...), alice)
			if err != nil || again.RequestID != resp.RequestID || !again.Replayed {
				t.Errorf("sent again: got %+v, %v, want the first response", again, err)
			}
		})
	}
}

// If the idempotency key cannot be stored after the decision, no task is sent, and the log
// does not state that the agent may have executed it.
func TestRouter_RecordsThatNothingWasSentIfDiskIsFullAfterDecision(t *testing.T) {
	h := newHarness(t)
	var id string
	h.onDecision = func(requestID string) {
		id = requestID
		h.full.Store(true)
	}
	if _, err := h.Handle(t.Context(), newRequest(keyed("k")), alice); code(err) != contract.CodeOverloaded {
		t.Fatalf("got %v, want %s", err, contract.CodeOverloaded)
	}
	h.onDecision = nil
	checkNotSent := func(when string) {
		t.Helper()
		got, err := h.Request(t.Context(), id, alice)
		if err != nil || got.Status != contract.StatusFailed || len(got.Tasks) != 1 || got.Tasks[0].Error.Code != contract.TaskAgentUnavailable {
			t.Errorf("%s: got %+v, %v, want a failed request whose task was not sent", when, got, err)
		}
	}
	checkNotSent("without space")
	h.full.Store(false)
	h.eventually(func() bool {
		found, err := h.auditLog.Find(t.Context(), id)
		return err == nil && found.Outcome != nil
	})
	h.restart()
	checkNotSent("after a restart")
	if dispatched := h.target.dispatchedTo(); len(dispatched) != 0 {
		t.Errorf("got tasks for %v, want none", dispatched)
	}
	again, err := h.Handle(t.Context(), newRequest(keyed("k")), alice)
	if err != nil || again.Replayed || again.Status != contract.StatusCompleted {
		t.Errorf("sent again: got %+v, %v, want it executed", again, err)
	}
}
