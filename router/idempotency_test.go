package router_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/internal/testkit"
)

// keyed adds an idempotency key to the request, as the HTTP server does.
func keyed(key string) func(*contract.Request) {
	return func(req *contract.Request) {
		req.Idempotency = &contract.Idempotency{Key: key, Body: sha256.Sum256([]byte(req.Content.Prompt + req.Options.Mode))}
	}
}

func TestRouter_DispatchesOneOfConcurrentRequestsWithOneKey(t *testing.T) {
	h := newHarness(t)
	const racers = 200
	var answered, rejected atomic.Int64
	var wg sync.WaitGroup
	for range racers {
		wg.Go(func() {
			switch resp, err := h.Handle(t.Context(), newRequest(keyed("k")), alice); {
			case err == nil && resp.Status == contract.StatusCompleted:
				answered.Add(1)
			case code(err) == contract.CodeConflict:
				rejected.Add(1)
			default:
				t.Errorf("got %+v, %v, want the response or a conflict", resp, err)
			}
		})
	}
	wg.Wait()
	if given := h.target.given(); len(given) != 1 {
		t.Errorf("got %d tasks sent, want 1", len(given))
	}
	if answered.Load() < 1 || answered.Load()+rejected.Load() != racers {
		t.Errorf("got %d responses and %d conflicts of %d requests", answered.Load(), rejected.Load(), racers)
	}
}

func TestRouter_ReplaysStoredResponse(t *testing.T) {
	for name, restart := range map[string]bool{"in the same process": false, "after a restart": true} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			first, err := h.Handle(t.Context(), newRequest(keyed("k")), alice)
			if err != nil || first.Replayed {
				t.Fatalf("got %+v, %v", first, err)
			}
			if restart {
				h.restart()
			}
			again, err := h.Handle(t.Context(), newRequest(keyed("k")), alice)
			if err != nil || !again.Replayed {
				t.Fatalf("got %+v, %v, want the stored response", again, err)
			}
			again.Replayed = false
			if diff := cmp.Diff(wire(t, first), wire(t, again)); diff != "" {
				t.Errorf("the stored response (-first +again):\n%s", diff)
			}
			other := newRequest(func(r *contract.Request) { r.Content.Prompt = "another" }, keyed("k"))
			if _, err := h.Handle(t.Context(), other, alice); code(err) != contract.CodeInvalidRequest {
				t.Errorf("the key with another body: got %v, want invalid_request", err)
			}
			if _, err := h.Handle(t.Context(), newRequest(keyed("k")), &contract.Caller{Subject: "bob", Tenant: "north", AllAgents: true}); err != nil {
				t.Errorf("another caller's key of the same name: got %v", err)
			}
			if given := h.target.given(); len(given) != 2 {
				t.Errorf("got %d tasks sent, want alice's and bob's", len(given))
			}
		})
	}
}

func TestRouter_ReplaysAsynchronousRequest(t *testing.T) {
	h := newHarness(t)
	h.target.does("payer", h.target.later)
	first := h.submit(keyed("k"))
	call := testkit.Receive(t, h.target.begun)
	again := h.submit(keyed("k"))
	if !again.Replayed || again.RequestID != first.RequestID || again.Status.Terminal() {
		t.Errorf("got %+v, want the same request, not ended", again)
	}
	h.waits(first.RequestID)
	h.restart()
	grant, res := byCallback(&call, "paid")
	if err := h.Callbacks().AcceptResult(t.Context(), grant, res); err != nil {
		t.Fatal(err)
	}
	h.final(first.RequestID)
	if again = h.submit(keyed("k")); again.RequestID != first.RequestID || again.Status != contract.StatusCompleted {
		t.Errorf("got %+v, want it completed", again)
	}
	if given := h.target.given(); len(given) != 1 {
		t.Errorf("got %d tasks sent, want 1", len(given))
	}
}

func TestRouter_FinishesKeyedRequestAfterCallerDisconnects(t *testing.T) {
	h := newHarness(t)
	goOn := make(chan struct{})
	h.target.does("payer", func(ctx context.Context, c dispatch.Call) dispatch.Outcome {
		h.target.begun <- c
		select {
		case <-goOn:
			return dispatch.Outcome{Result: success("paid"), Attempts: 1}
		case <-ctx.Done():
			return dispatch.Outcome{Err: &contract.TaskError{Code: contract.TaskWasCancelled}, Attempts: 1, MayHaveExecuted: true}
		}
	})
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		_, _ = h.Handle(ctx, newRequest(keyed("k")), alice)
		close(ended)
	}()
	testkit.Receive(t, h.target.begun)
	leave()
	if _, err := h.Handle(t.Context(), newRequest(keyed("k")), alice); code(err) != contract.CodeConflict {
		t.Errorf("while it is executed: got %v, want a conflict", err)
	}
	close(goOn)
	testkit.WaitClosed(t, ended)
	got, err := h.Handle(t.Context(), newRequest(keyed("k")), alice)
	if err != nil || got.Status != contract.StatusCompleted || got.Data.Answer != "paid" {
		t.Errorf("got %+v, %v, want the response", got, err)
	}
}

func TestRouter_ReleasesKeyOfRejectedRequest(t *testing.T) {
	h := newHarness(t)
	if err := h.auditLog.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Handle(t.Context(), newRequest(keyed("k")), alice); code(err) != contract.CodeAuditUnavailable {
		t.Fatalf("got %v, want %s", err, contract.CodeAuditUnavailable)
	}
	h.restart()
	got, err := h.Handle(t.Context(), newRequest(keyed("k")), alice)
	if err != nil || got.Replayed || got.Status != contract.StatusCompleted {
		t.Errorf("got %+v, %v, want it executed now", got, err)
	}
}

// The record is not in the index of open requests, so no restart would find it.
func TestRouter_ResumesOrphanedRequestByItsKey(t *testing.T) {
	h := newHarness(t)
	h.classifier.proposal.Intent, h.classifier.proposal.Domains = "count", []string{"words"}
	h.target.does("counter", h.target.hangs)
	id := h.submit(keyed("k")).RequestID
	testkit.Receive(t, h.target.begun)
	if err := h.requests.RemoveOpen(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	h.target.does("counter", nil)
	h.restart()
	if got := h.submit(keyed("k")); got.RequestID != id {
		t.Fatalf("got %s, want %s", got.RequestID, id)
	}
	if got := h.final(id); got.Status != contract.StatusCompleted {
		t.Errorf("got %s, want it completed", got.Status)
	}
}

// wire returns the response as the HTTP server sends it.
func wire(t *testing.T, resp *contract.Response) string {
	t.Helper()
	data, err := strictjson.Marshal(resp)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestRouter_NeverExecutesKeyedRequestAgain sends a request again after everything that
// was stored about it was deleted to make space.
func TestRouter_NeverExecutesKeyedRequestAgain(t *testing.T) {
	for name, mode := range map[string]string{"synchronous": contract.ModeSync, "asynchronous": contract.ModeAsync} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.retention = audit.Retention{Contents: time.Nanosecond, Chain: time.Nanosecond}
			h.restart()
			req := func() *contract.Request {
				return newRequest(func(r *contract.Request) { r.Options.Mode = mode }, keyed("k"))
			}
			send := func() (*contract.Response, error) {
				if mode == contract.ModeAsync {
					return h.Submit(t.Context(), req(), alice)
				}
				return h.Handle(t.Context(), req(), alice)
			}
			first, err := send()
			if err != nil {
				t.Fatal(err)
			}
			if mode == contract.ModeAsync {
				h.final(first.RequestID)
				h.restart() // its outcome is in the audit log and in its key
				h.must(h.requests.Delete(t.Context(), first.RequestID))
			}
			if _, err := h.Handle(t.Context(), newRequest(), alice); err != nil {
				t.Fatal(err)
			}
			h.must(h.auditLog.EnforceRetention(t.Context()))
			if _, err := h.auditLog.Find(t.Context(), first.RequestID); !errors.Is(err, store.ErrNotFound) {
				t.Fatalf("got %v, want the audit log trimmed", err)
			}
			given := len(h.target.given())

			_, err = send()
			e, ok := errors.AsType[*contract.Error](err)
			if !ok || e.Code != contract.CodeResultExpired {
				t.Fatalf("got %v, want result_expired", err)
			}
			if e.Ended.RequestID != first.RequestID || e.Ended.Status != contract.StatusCompleted || len(e.Ended.AnswerHash) != sha256.Size || e.Ended.EndedAt.IsZero() {
				t.Errorf("got %+v, want the outcome of the first request", e.Ended)
			}
			if again := len(h.target.given()); again != given {
				t.Errorf("got %d tasks sent again, want none", again-given)
			}
		})
	}
}
