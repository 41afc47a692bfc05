package router_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// newReplicas returns two routers that share a store. They have the same agents.
func newReplicas(t *testing.T) (a, b *harness) {
	t.Helper()
	srv := teststore.Serve(t, t.TempDir(), -1)
	members := &sharedMembers{gone: map[string]bool{}}
	a = newReplica(t, srv.URL, "a", members)
	b = newReplica(t, srv.URL, "b", members)
	b.target = a.target
	b.crash()
	b.open()
	return a, b
}

// sharedMembers is what the replicas know of each other.
type sharedMembers struct {
	mu   sync.Mutex
	gone map[string]bool
}

func (m *sharedMembers) isLive(owner string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.gone[owner]
}

// verify is the audit.VerifyFunc: these tests trust every replica.
func (*sharedMembers) verify(string, string, []byte, []byte) bool { return true }

// vanish makes the replicas know that the process has ended.
func (m *sharedMembers) vanish(owner string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gone[owner] = true
}

// result posts the result of a task to the replica.
func (h *harness) result(call *dispatch.Call, answer string) error {
	grant, res := byCallback(call, answer)
	return h.Callbacks().AcceptResult(h.t.Context(), grant, res)
}

func TestReplicas_AcceptResultAnywhere(t *testing.T) {
	a, b := newReplicas(t)
	t.Run("asynchronous", func(t *testing.T) {
		a.target.does("payer", a.target.later)
		id := a.submit().RequestID
		call := testkit.Receive(t, a.target.begun)
		a.waits(id)
		if err := b.result(&call, "paid"); err != nil {
			t.Fatal(err)
		}
		for name, h := range map[string]*harness{"executing": a, "other": b} {
			if got := h.final(id); got.Status != contract.StatusCompleted || got.Data.Answer != "paid" {
				t.Errorf("%s: got %s with %q, want it completed", name, got.Status, got.Data.Answer)
			}
		}
		a.wantOneEnd(id, contract.StatusCompleted)
	})
	t.Run("synchronous", func(t *testing.T) {
		call, answers := a.waiting(t.Context())
		id := call.Task.RequestID
		if got, err := b.Request(t.Context(), id, alice); err != nil || got.Status != contract.StatusRunning || got.Decision == nil {
			t.Errorf("got %+v, %v, want it running with its decision", got, err)
		}
		if err := b.result(&call, "paid"); err != nil {
			t.Fatal(err)
		}
		if got := testkit.Receive(t, answers); got.err != nil || got.resp.Status != contract.StatusCompleted {
			t.Errorf("got %+v, %v, want it completed", got.resp, got.err)
		}
		a.wantOneEnd(id, contract.StatusCompleted)
		if err := b.result(&call, "paid twice"); code(err) != contract.CodeConflict {
			t.Errorf("another result: got %v, want a conflict", err)
		}
	})
	t.Run("before the agent answers 202", func(t *testing.T) {
		posted := make(chan error, 1)
		a.target.does("payer", func(ctx context.Context, c dispatch.Call) dispatch.Outcome {
			posted <- b.result(&c, "paid")
			return a.target.later(ctx, c)
		})
		got := testkit.Receive(t, a.handle(t.Context()))
		if err := testkit.Receive(t, posted); err != nil {
			t.Errorf("the result: got %v, want it stored", err)
		}
		if got.err != nil || got.resp.Status != contract.StatusCompleted || got.resp.Data.Answer != "paid" {
			t.Fatalf("got %+v, %v, want it completed", got.resp, got.err)
		}
		testkit.Receive(t, a.target.begun)
		a.wantOneEnd(got.resp.RequestID, contract.StatusCompleted)
	})
}

func TestReplicas_CancelAnywhere(t *testing.T) {
	a, b := newReplicas(t)
	for name, tt := range map[string]struct {
		does   func(context.Context, dispatch.Call) dispatch.Outcome
		stored bool
	}{"stored": {a.target.later, true}, "in memory": {a.target.hangs, false}} {
		t.Run(name, func(t *testing.T) {
			a.target.does("payer", tt.does)
			answers := a.handle(t.Context())
			call := testkit.Receive(t, a.target.begun)
			id := call.Task.RequestID
			if tt.stored {
				a.waits(id)
			}
			if got, err := b.Request(t.Context(), id, alice); err != nil || got.Status != contract.StatusRunning || got.Decision == nil {
				t.Errorf("before: got %+v, %v, want it running with its decision", got, err)
			}
			if err := b.Erase(t.Context(), id, alice); code(err) != contract.CodeConflict {
				t.Errorf("erase: got %v, want a conflict", err)
			}
			if got, err := b.Cancel(t.Context(), id, alice); err != nil || got.Status != contract.StatusCancelled {
				t.Errorf("got %+v, %v, want it cancelled", got, err)
			}
			if got := testkit.Receive(t, answers); got.err != nil || got.resp.Status != contract.StatusCancelled {
				t.Errorf("the caller got %+v, %v, want it cancelled", got.resp, got.err)
			}
			if !tt.stored {
				return
			}
			if stopped := testkit.Receive(t, a.target.stops); stopped != call.Task.TaskID {
				t.Errorf("stopped task %s, want %s", stopped, call.Task.TaskID)
			}
			a.wantOneEnd(id, contract.StatusCancelled)
		})
	}
}

func TestReplicas_PassProgressOn(t *testing.T) {
	a, b := newReplicas(t)
	a.target.does("payer", a.target.later)
	seen := make(chan string, 10)
	ended := make(chan error, 1)
	go func() {
		_, err := a.Stream(t.Context(), newRequest(), alice, func(ev *contract.Event) {
			if ev.Type == contract.EventTaskProgress {
				seen <- ev.Progress.Message
			}
		})
		ended <- err
	}()
	call := testkit.Receive(t, a.target.begun)
	a.waits(call.Task.RequestID)
	grant, _ := byCallback(&call, "")
	if err := b.Callbacks().AcceptProgress(t.Context(), grant, &contract.Progress{Message: "half"}); err != nil {
		t.Fatal(err)
	}
	if got := testkit.Receive(t, seen); got != "half" {
		t.Errorf("got progress %q, want half", got)
	}
	if err := b.result(&call, "paid"); err != nil {
		t.Fatal(err)
	}
	if err := testkit.Receive(t, ended); err != nil {
		t.Fatal(err)
	}
	if err := b.Callbacks().AcceptProgress(t.Context(), grant, &contract.Progress{Message: "late"}); code(err) != contract.CodeConflict {
		t.Errorf("after the end: got %v, want a conflict", err)
	}
}

func TestReplicas_TakeOverRequestsOfEndedProcessOnly(t *testing.T) {
	a, b := newReplicas(t)
	a.target.does("payer", a.target.later)
	id := a.submit().RequestID
	call := testkit.Receive(t, a.target.begun)
	a.waits(id)
	rec, err := a.requests.Get(t.Context(), id)
	a.must(err)
	for range 3 { // its owner is live
		b.must(b.Resume(t.Context()))
	}
	if now, err := a.requests.Get(t.Context(), id); err != nil || now.Owner != rec.Owner || now.Epoch != rec.Epoch {
		t.Fatalf("got owner %s in epoch %d, want %s", now.Owner, now.Epoch, rec.Owner)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	watching := make(chan error, 1)
	go func() { watching <- b.TakeOver(ctx) }()
	a.crash()
	a.members.vanish(rec.Owner)
	b.NoticeGone()
	testkit.Eventually(t, "the request is taken over", func() bool {
		now, err := b.requests.Get(t.Context(), id)
		return err == nil && now.Owner != rec.Owner
	})
	if err := b.result(&call, "paid"); err != nil {
		t.Fatal(err)
	}
	if got := b.final(id); got.Status != contract.StatusCompleted {
		t.Errorf("got %s, want it completed", got.Status)
	}
	b.wantOneEnd(id, contract.StatusCompleted)
	stop()
	if err := testkit.Receive(t, watching); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the end of the context", err)
	}
	a.open() // for its cleanup
}

// A process that was presumed dead stops the request that another one has taken over,
// and does not cancel its task.
func TestReplicas_PresumedDeadProcessStopsRequest(t *testing.T) {
	a, b := newReplicas(t)
	call, answers := a.waiting(t.Context())
	id := call.Task.RequestID
	rec, err := a.requests.Get(t.Context(), id)
	a.must(err)
	a.members.vanish(rec.Owner)
	testkit.Eventually(t, "the request is taken over", func() bool {
		b.must(b.Resume(t.Context())) // again, because the index is written beside the record
		now, err := b.requests.Get(t.Context(), id)
		return err == nil && now.Owner != rec.Owner
	})
	a.Callbacks().Refresh(t.Context(), id)
	if got := testkit.Receive(t, answers); got.err != nil || got.resp.Status != contract.StatusRunning {
		t.Errorf("the caller got %+v, %v, want it running elsewhere", got.resp, got.err)
	}
	if err := a.result(&call, "paid"); err != nil {
		t.Fatal(err)
	}
	if got := b.final(id); got.Status != contract.StatusCompleted {
		t.Errorf("got %s, want it completed", got.Status)
	}
	b.wantOneEnd(id, contract.StatusCompleted)
	select {
	case task := <-a.target.stops:
		t.Errorf("task %s was cancelled", task)
	default:
	}
}

// The same idempotency key is sent to two replicas at the same time.
func TestReplicas_ExecuteKeyOnce(t *testing.T) {
	a, b := newReplicas(t)
	a.target.does("payer", a.target.later)
	answers := []<-chan handled{a.handle(t.Context(), keyed("k")), b.handle(t.Context(), keyed("k"))}
	call := testkit.Receive(t, a.target.begun)
	winner := testkit.Receive(t, firstOf(answers))
	if code(winner.err) != contract.CodeConflict {
		t.Fatalf("got %+v, %v, want one request in progress", winner.resp, winner.err)
	}
	if err := b.result(&call, "paid"); err != nil {
		t.Fatal(err)
	}
	executed := testkit.Receive(t, firstOf(answers))
	if executed.err != nil || executed.resp.Status != contract.StatusCompleted {
		t.Fatalf("got %+v, %v, want it completed", executed.resp, executed.err)
	}
	for name, h := range map[string]*harness{"a": a, "b": b} {
		got, err := h.Handle(t.Context(), newRequest(keyed("k")), alice)
		if err != nil || !got.Replayed || got.RequestID != executed.resp.RequestID {
			t.Errorf("sent to %s again: got %+v, %v, want the response of the first", name, got, err)
		}
	}
	if given := a.target.given(); len(given) != 1 {
		t.Errorf("tasks went to %v, want one", given)
	}
}

// firstOf returns the first value of several channels.
func firstOf(channels []<-chan handled) <-chan handled {
	first := make(chan handled, 1)
	go func() {
		select {
		case v := <-channels[0]:
			first <- v
		case v := <-channels[1]:
			first <- v
		}
	}()
	return first
}

// One conversation alternates between the replicas.
func TestReplicas_ShareSessions(t *testing.T) {
	a, b := newReplicas(t)
	inSession := func(r *contract.Request) { r.SessionID = "s" }
	for i, h := range []*harness{a, b, a, b} {
		if got, err := h.Handle(t.Context(), newRequest(inSession), alice); err != nil || got.Status != contract.StatusCompleted {
			t.Fatalf("turn %d: got %+v, %v", i, got, err)
		}
	}
	a.target.mu.Lock()
	defer a.target.mu.Unlock()
	for i := range a.target.calls {
		if got, want := len(a.target.calls[i].Task.History), 2*i; got != want {
			t.Errorf("turn %d: got %d turns before it, want %d", i, got, want)
		}
	}
}
