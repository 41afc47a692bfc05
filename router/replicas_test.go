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

// newReplicas returns two routers that share a store and their agents.
func newReplicas(t *testing.T) (a, b *harness) {
	t.Helper()
	srv := teststore.Serve(t, t.TempDir(), -1)
	members := &sharedMembers{dead: map[string]bool{}}
	a = newReplica(t, srv.URL, "a", members)
	b = newReplica(t, srv.URL, "b", members)
	b.target = a.target
	b.crash()
	b.open()
	return a, b
}

// sharedMembers is the list of live replicas, as every replica sees it.
type sharedMembers struct {
	mu   sync.Mutex
	dead map[string]bool
}

func (m *sharedMembers) isLive(owner string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.dead[owner]
}

// verify is the audit.VerifyFunc. These tests trust every replica.
func (*sharedMembers) verify(string, string, []byte, []byte) bool { return true }

// markDead removes the process from the list of live replicas.
func (m *sharedMembers) markDead(owner string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead[owner] = true
}

// postResult posts the result of a task to the replica.
func (h *harness) postResult(call *dispatch.Call, answer string) error {
	grant, res := callbackResult(call, answer)
	return h.Callbacks().AcceptResult(h.t.Context(), grant, res)
}

func TestReplicas_AcceptResultAnywhere(t *testing.T) {
	a, b := newReplicas(t)
	t.Run("asynchronous", func(t *testing.T) {
		a.target.setBehaviour("payer", a.target.acceptLater)
		id := a.submit().RequestID
		call := testkit.Receive(t, a.target.begun)
		a.waitForCallback(id)
		if err := b.postResult(&call, "paid"); err != nil {
			t.Fatal(err)
		}
		for name, h := range map[string]*harness{"executing": a, "other": b} {
			if got := h.final(id); got.Status != contract.StatusCompleted || got.Data.Answer != "paid" {
				t.Errorf("%s: got %s with answer %q, want completed", name, got.Status, got.Data.Answer)
			}
		}
		a.checkOneOutcome(id, contract.StatusCompleted)
	})
	t.Run("synchronous", func(t *testing.T) {
		call, answers := a.handleUntilStored(t.Context())
		id := call.Task.RequestID
		if got, err := b.Request(t.Context(), id, alice); err != nil || got.Status != contract.StatusRunning || got.Decision == nil {
			t.Errorf("got %+v, %v, want running with its decision", got, err)
		}
		if err := b.postResult(&call, "paid"); err != nil {
			t.Fatal(err)
		}
		if got := testkit.Receive(t, answers); got.err != nil || got.resp.Status != contract.StatusCompleted {
			t.Errorf("got %+v, %v, want completed", got.resp, got.err)
		}
		a.checkOneOutcome(id, contract.StatusCompleted)
		if err := b.postResult(&call, "paid twice"); code(err) != contract.CodeConflict {
			t.Errorf("different result: got %v, want a conflict", err)
		}
	})
	t.Run("before the agent answers 202", func(t *testing.T) {
		posted := make(chan error, 1)
		a.target.setBehaviour("payer", func(ctx context.Context, c dispatch.Call) dispatch.Outcome {
			posted <- b.postResult(&c, "paid")
			return a.target.acceptLater(ctx, c)
		})
		got := testkit.Receive(t, a.handle(t.Context()))
		if err := testkit.Receive(t, posted); err != nil {
			t.Errorf("got error %v, want the result stored", err)
		}
		if got.err != nil || got.resp.Status != contract.StatusCompleted || got.resp.Data.Answer != "paid" {
			t.Fatalf("got %+v, %v, want completed", got.resp, got.err)
		}
		testkit.Receive(t, a.target.begun)
		a.checkOneOutcome(got.resp.RequestID, contract.StatusCompleted)
	})
}

func TestReplicas_CancelAnywhere(t *testing.T) {
	a, b := newReplicas(t)
	for name, tt := range map[string]struct {
		behaviour func(context.Context, dispatch.Call) dispatch.Outcome
		stored    bool
	}{"stored": {a.target.acceptLater, true}, "in memory": {a.target.hang, false}} {
		t.Run(name, func(t *testing.T) {
			a.target.setBehaviour("payer", tt.behaviour)
			answers := a.handle(t.Context())
			call := testkit.Receive(t, a.target.begun)
			id := call.Task.RequestID
			if tt.stored {
				a.waitForCallback(id)
			}
			if got, err := b.Request(t.Context(), id, alice); err != nil || got.Status != contract.StatusRunning || got.Decision == nil {
				t.Errorf("before the cancellation: got %+v, %v, want running with its decision", got, err)
			}
			if err := b.Erase(t.Context(), id, alice); code(err) != contract.CodeConflict {
				t.Errorf("erase: got %v, want a conflict", err)
			}
			if got, err := b.Cancel(t.Context(), id, alice); err != nil || got.Status != contract.StatusCancelled {
				t.Errorf("got %+v, %v, want cancelled", got, err)
			}
			if got := testkit.Receive(t, answers); got.err != nil || got.resp.Status != contract.StatusCancelled {
				t.Errorf("synchronous response: got %+v, %v, want cancelled", got.resp, got.err)
			}
			if !tt.stored {
				return
			}
			if stopped := testkit.Receive(t, a.target.stops); stopped != call.Task.TaskID {
				t.Errorf("got cancelled task %s, want %s", stopped, call.Task.TaskID)
			}
			a.checkOneOutcome(id, contract.StatusCancelled)
		})
	}
}

// While a replica waits for a slow write of one request, it cancels another one.
func TestReplicas_CancelWhilePromotionWaits(t *testing.T) {
	a, b := newReplicas(t)
	a.target.setBehaviour("payer", a.target.hang)
	ctx, disconnect := context.WithCancel(t.Context())
	defer disconnect()
	slowAnswers := a.handle(ctx)
	slow := testkit.Receive(t, a.target.begun)
	answers := a.handle(t.Context())
	id := testkit.Receive(t, a.target.begun).Task.RequestID

	writing, confirm := make(chan struct{}), make(chan struct{})
	hook := func(string) {
		a.onStore.Store(nil)
		close(writing)
		<-confirm
	}
	a.onStore.Store(&hook)
	release := sync.OnceFunc(func() { close(confirm) })
	t.Cleanup(release)
	if err := b.postResult(&slow, "paid"); err != nil { // the record is there, and not confirmed yet
		t.Fatal(err)
	}
	testkit.WaitClosed(t, writing)
	if got, err := b.Cancel(t.Context(), id, alice); err != nil || got.Status != contract.StatusCancelled {
		t.Errorf("got %+v, %v, want cancelled", got, err)
	}
	if got := testkit.Receive(t, answers); got.err != nil || got.resp.Status != contract.StatusCancelled {
		t.Errorf("got %+v, %v, want cancelled", got.resp, got.err)
	}
	release()
	disconnect()
	testkit.Receive(t, slowAnswers)
}

func TestReplicas_ForwardProgress(t *testing.T) {
	a, b := newReplicas(t)
	a.target.setBehaviour("payer", a.target.acceptLater)
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
	a.waitForCallback(call.Task.RequestID)
	grant, _ := callbackResult(&call, "")
	if err := b.Callbacks().AcceptProgress(t.Context(), grant, &contract.Progress{Message: "half"}); err != nil {
		t.Fatal(err)
	}
	if got := testkit.Receive(t, seen); got != "half" {
		t.Errorf("got progress %q, want half", got)
	}
	if err := b.postResult(&call, "paid"); err != nil {
		t.Fatal(err)
	}
	if err := testkit.Receive(t, ended); err != nil {
		t.Fatal(err)
	}
	if err := b.Callbacks().AcceptProgress(t.Context(), grant, &contract.Progress{Message: "late"}); code(err) != contract.CodeConflict {
		t.Errorf("progress after the end: got %v, want a conflict", err)
	}
}

func TestReplicas_TakeOverRequestsOfEndedProcessOnly(t *testing.T) {
	a, b := newReplicas(t)
	a.target.setBehaviour("payer", a.target.acceptLater)
	id := a.submit().RequestID
	call := testkit.Receive(t, a.target.begun)
	a.waitForCallback(id)
	rec, err := a.requests.Get(t.Context(), id)
	a.must(err)
	for range 3 { // its owner is alive
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
	a.members.markDead(rec.Owner)
	b.TriggerTakeOver()
	testkit.Eventually(t, "the request has a new owner", func() bool {
		now, err := b.requests.Get(t.Context(), id)
		return err == nil && now.Owner != rec.Owner
	})
	if err := b.postResult(&call, "paid"); err != nil {
		t.Fatal(err)
	}
	if got := b.final(id); got.Status != contract.StatusCompleted {
		t.Errorf("got %s, want completed", got.Status)
	}
	b.checkOneOutcome(id, contract.StatusCompleted)
	stop()
	if err := testkit.Receive(t, watching); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the error of the context", err)
	}
	a.open() // for its cleanup
}

// A process that was presumed dead stops its request when another process has resumed it, and does
// not cancel its task.
func TestReplicas_PresumedDeadProcessStopsRequest(t *testing.T) {
	a, b := newReplicas(t)
	call, answers := a.handleUntilStored(t.Context())
	id := call.Task.RequestID
	rec, err := a.requests.Get(t.Context(), id)
	a.must(err)
	a.members.markDead(rec.Owner)
	testkit.Eventually(t, "the request has a new owner", func() bool {
		b.must(b.Resume(t.Context())) // repeated, because the index is written separately from the record
		now, err := b.requests.Get(t.Context(), id)
		return err == nil && now.Owner != rec.Owner
	})
	a.Callbacks().Refresh(t.Context(), id)
	if got := testkit.Receive(t, answers); got.err != nil || got.resp.Status != contract.StatusRunning {
		t.Errorf("got %+v, %v, want a request that runs elsewhere", got.resp, got.err)
	}
	if err := a.postResult(&call, "paid"); err != nil {
		t.Fatal(err)
	}
	if got := b.final(id); got.Status != contract.StatusCompleted {
		t.Errorf("got %s, want completed", got.Status)
	}
	b.checkOneOutcome(id, contract.StatusCompleted)
	select {
	case task := <-a.target.stops:
		t.Errorf("got task %s cancelled, want none", task)
	default:
	}
}

// The same idempotency key is sent to two replicas at the same time.
func TestReplicas_ExecuteKeyOnce(t *testing.T) {
	a, b := newReplicas(t)
	a.target.setBehaviour("payer", a.target.acceptLater)
	answers := []<-chan handled{a.handle(t.Context(), keyed("k")), b.handle(t.Context(), keyed("k"))}
	call := testkit.Receive(t, a.target.begun)
	winner := testkit.Receive(t, firstOf(answers))
	if code(winner.err) != contract.CodeConflict {
		t.Fatalf("got %+v, %v, want one request in progress", winner.resp, winner.err)
	}
	if err := b.postResult(&call, "paid"); err != nil {
		t.Fatal(err)
	}
	executed := testkit.Receive(t, firstOf(answers))
	if executed.err != nil || executed.resp.Status != contract.StatusCompleted {
		t.Fatalf("got %+v, %v, want completed", executed.resp, executed.err)
	}
	for name, h := range map[string]*harness{"a": a, "b": b} {
		got, err := h.Handle(t.Context(), newRequest(keyed("k")), alice)
		if err != nil || !got.Replayed || got.RequestID != executed.resp.RequestID {
			t.Errorf("replay at replica %s: got %+v, %v, want the response of the first request", name, got, err)
		}
	}
	if dispatched := a.target.dispatchedTo(); len(dispatched) != 1 {
		t.Errorf("got tasks sent to %v, want one task", dispatched)
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
			t.Fatalf("turn %d: got %+v, %v, want completed", i, got, err)
		}
	}
	a.target.mu.Lock()
	defer a.target.mu.Unlock()
	for i := range a.target.calls {
		if got, want := len(a.target.calls[i].Task.History), 2*i; got != want {
			t.Errorf("turn %d: got %d earlier turns, want %d", i, got, want)
		}
	}
}
