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
	const concurrent = 200
	var answered, rejected atomic.Int64
	var wg sync.WaitGroup
	for range concurrent {
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
	if dispatched := h.target.dispatchedTo(); len(dispatched) != 1 {
		t.Errorf("got %d tasks sent, want 1", len(dispatched))
	}
	if answered.Load() < 1 || answered.Load()+rejected.Load() != concurrent {
		t.Errorf("got %d responses and %d conflicts for %d requests", answered.Load(), rejected.Load(), concurrent)
	}
}

func TestRouter_ReplaysStoredResponse(t *testing.T) {
	for name, restart := range map[string]bool{"in the same process": false, "after a restart": true} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			first, err := h.Handle(t.Context(), newRequest(keyed("k")), alice)
			if err != nil || first.Replayed {
				t.Fatalf("got %+v, %v, want completed", first, err)
			}
			if restart {
				h.restart()
			}
			again, err := h.Handle(t.Context(), newRequest(keyed("k")), alice)
			if err != nil || !again.Replayed {
				t.Fatalf("second request: got %+v, %v, want the stored response", again, err)
			}
			again.Replayed = false
			if diff := cmp.Diff(encodeResponse(t, first), encodeResponse(t, again)); diff != "" {
				t.Errorf("first and stored response differ (-first +again):\n%s", diff)
			}
			other := newRequest(func(r *contract.Request) { r.Content.Prompt = "another" }, keyed("k"))
			if _, err := h.Handle(t.Context(), other, alice); code(err) != contract.CodeInvalidRequest {
				t.Errorf("same key with another body: got %v, want invalid_request", err)
			}
			if _, err := h.Handle(t.Context(), newRequest(keyed("k")), &contract.Caller{Subject: "bob", Tenant: "north", AllAgents: true}); err != nil {
				t.Errorf("same key of another caller: got error %v, want none", err)
			}
			if dispatched := h.target.dispatchedTo(); len(dispatched) != 2 {
				t.Errorf("got %d tasks sent, want one for each caller", len(dispatched))
			}
		})
	}
}

func TestRouter_ReplaysAsynchronousRequest(t *testing.T) {
	h := newHarness(t)
	h.target.setBehaviour("payer", h.target.acceptLater)
	first := h.submit(keyed("k"))
	call := testkit.Receive(t, h.target.begun)
	again := h.submit(keyed("k"))
	if !again.Replayed || again.RequestID != first.RequestID || again.Status.Terminal() {
		t.Errorf("got %+v, want the same request, still open", again)
	}
	h.waitForCallback(first.RequestID)
	h.restart()
	grant, res := callbackResult(&call, "paid")
	if err := h.Callbacks().AcceptResult(t.Context(), grant, res); err != nil {
		t.Fatal(err)
	}
	h.final(first.RequestID)
	if again = h.submit(keyed("k")); again.RequestID != first.RequestID || again.Status != contract.StatusCompleted {
		t.Errorf("got %+v, want completed", again)
	}
	if dispatched := h.target.dispatchedTo(); len(dispatched) != 1 {
		t.Errorf("got %d tasks sent, want 1", len(dispatched))
	}
}

func TestRouter_FinishesKeyedRequestAfterCallerDisconnects(t *testing.T) {
	h := newHarness(t)
	resume := make(chan struct{})
	h.target.setBehaviour("payer", func(ctx context.Context, c dispatch.Call) dispatch.Outcome {
		h.target.begun <- c
		select {
		case <-resume:
			return dispatch.Outcome{Result: success("paid"), Attempts: 1}
		case <-ctx.Done():
			return dispatch.Outcome{Err: &contract.TaskError{Code: contract.TaskWasCancelled}, Attempts: 1, MayHaveExecuted: true}
		}
	})
	ctx, disconnect := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		_, _ = h.Handle(ctx, newRequest(keyed("k")), alice)
		close(ended)
	}()
	testkit.Receive(t, h.target.begun)
	disconnect()
	if _, err := h.Handle(t.Context(), newRequest(keyed("k")), alice); code(err) != contract.CodeConflict {
		t.Errorf("during execution: got %v, want a conflict", err)
	}
	close(resume)
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
		t.Errorf("got %+v, %v, want completed", got, err)
	}
}

// The record is missing from the index of open requests, so a restart does not find it.
func TestRouter_ResumesOrphanedRequestByItsKey(t *testing.T) {
	h := newHarness(t)
	h.classifier.proposal.Intent, h.classifier.proposal.Domains = "count", []string{"words"}
	h.target.setBehaviour("counter", h.target.hang)
	id := h.submit(keyed("k")).RequestID
	testkit.Receive(t, h.target.begun)
	if err := h.requests.RemoveOpen(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	h.target.setBehaviour("counter", nil)
	h.restart()
	if got := h.submit(keyed("k")); got.RequestID != id {
		t.Fatalf("got request %s, want %s", got.RequestID, id)
	}
	if got := h.final(id); got.Status != contract.StatusCompleted {
		t.Errorf("got %s, want completed", got.Status)
	}
}

// encodeResponse returns the response as the HTTP server encodes it.
func encodeResponse(t *testing.T, resp *contract.Response) string {
	t.Helper()
	data, err := strictjson.Marshal(resp)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestRouter_NeverExecutesKeyedRequestAgain sends a request again after all its records were
// deleted to free space.
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
				h.restart() // its outcome is in the audit log and in the record of its key
				h.must(h.requests.Delete(t.Context(), first.RequestID))
			}
			if _, err := h.Handle(t.Context(), newRequest(), alice); err != nil {
				t.Fatal(err)
			}
			h.must(h.auditLog.EnforceRetention(t.Context()))
			if _, err := h.auditLog.Find(t.Context(), first.RequestID); !errors.Is(err, store.ErrNotFound) {
				t.Fatalf("got %v, want a trimmed audit log", err)
			}
			dispatched := len(h.target.dispatchedTo())

			_, err = send()
			e, ok := errors.AsType[*contract.Error](err)
			if !ok || e.Code != contract.CodeResultExpired {
				t.Fatalf("got error %v, want result_expired", err)
			}
			if e.Ended.RequestID != first.RequestID || e.Ended.Status != contract.StatusCompleted || len(e.Ended.AnswerHash) != sha256.Size || e.Ended.EndedAt.IsZero() {
				t.Errorf("got %+v, want the outcome of the first request", e.Ended)
			}
			if again := len(h.target.dispatchedTo()); again != dispatched {
				t.Errorf("got %d further tasks sent, want none", again-dispatched)
			}
		})
	}
}
