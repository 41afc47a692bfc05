package httptarget_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/agentkit"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/dispatch/httptarget"
	"github.com/caprouter/caprouter/internal/testkit"
)

// workingAgent is an agent whose tasks end when their connection closes.
type workingAgent struct {
	*agentServer
	begun chan struct{}
	ended chan error // error of each handler's context
}

func newWorkingAgent(t testing.TB) *workingAgent { return startWorkingAgent(t, newAgent) }

func startWorkingAgent(t testing.TB, newAgent func(testing.TB, http.HandlerFunc) *agentServer) *workingAgent {
	w := &workingAgent{begun: make(chan struct{}, 100), ended: make(chan error, 100)}
	w.agentServer = newAgent(t, func(_ http.ResponseWriter, r *http.Request) {
		w.begun <- struct{}{}
		<-r.Context().Done()
		w.ended <- r.Context().Err()
	})
	return w
}

func TestTarget_CancelsTaskAfterDisconnect(t *testing.T) {
	for name, tc := range map[string]struct {
		kind      func(*dispatch.Call)
		uncertain bool
	}{
		"once":  {func(*dispatch.Call) {}, true},
		"twice": {idempotent, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := newWorkingAgent(t)
			target := newTarget(t)
			ctx, leave := context.WithCancel(t.Context())
			var got dispatch.Outcome
			var wg sync.WaitGroup
			wg.Go(func() { got = target.Execute(ctx, newCall(a.URL+"/tasks", tc.kind)) })
			testkit.Receive(t, a.begun)
			leave()
			wg.Wait()
			checkOutcome(t, got, want{code: contract.TaskWasCancelled, detail: "the caller disconnected", attempts: 1, uncertain: tc.uncertain})
			testkit.Receive(t, a.ended) // the connection was closed
			target.Close()
			if diff := cmp.Diff([]string{"/tasks/" + taskID + "/cancel"}, a.stopped()); diff != "" {
				t.Errorf("cancellations (-want +got):\n%s", diff)
			}
			if got := len(a.received()); got != 1 {
				t.Errorf("got the task %d times at the agent, want once", got)
			}
		})
	}
}

// A task that is handed over to the next process continues at its agent.
func TestTarget_DoesNotCancelTaskAfterHandover(t *testing.T) {
	a := newWorkingAgent(t)
	target := newTarget(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	var got dispatch.Outcome
	var wg sync.WaitGroup
	wg.Go(func() { got = target.Execute(ctx, newCall(a.URL)) })
	testkit.Receive(t, a.begun)
	cancel(dispatch.ErrHandedOver)
	wg.Wait()
	checkOutcome(t, got, want{code: contract.TaskWasCancelled, detail: "the router stopped the task", attempts: 1, uncertain: true})
	checkOutcome(t, target.Execute(ctx, newCall(a.URL)), want{code: contract.TaskAgentUnavailable, detail: "the router stopped before the task was sent"})
	testkit.Receive(t, a.ended)
	target.Close()
	if stops := a.stopped(); len(stops) != 0 || len(a.received()) != 1 {
		t.Errorf("got cancellations %v after %d tasks, want none after one", stops, len(a.received()))
	}
}

func TestTarget_SendsNothingAfterDisconnect(t *testing.T) {
	a := newWorkingAgent(t)
	target := newTarget(t)
	ctx, leave := context.WithCancel(t.Context())
	leave()
	checkOutcome(t, target.Execute(ctx, newCall(a.URL)), want{code: contract.TaskWasCancelled})
	target.Close()
	if len(a.received())+len(a.stopped()) != 0 {
		t.Error("got a request at the agent, want none")
	}
}

func TestTarget_DisconnectBetweenAttempts(t *testing.T) {
	asked := make(chan struct{}, 2)
	a := newAgent(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "5")
		w.WriteHeader(http.StatusServiceUnavailable)
		asked <- struct{}{}
	})
	ctx, leave := context.WithTimeout(t.Context(), time.Minute)
	target := newTarget(t)
	var got dispatch.Outcome
	var wg sync.WaitGroup
	wg.Go(func() { got = target.Execute(ctx, newCall(a.URL, idempotent)) })
	testkit.Receive(t, asked)
	leave()
	wg.Wait()
	if got.Attempts != 1 || got.Err == nil {
		t.Errorf("got %+v, want the failure of the only attempt", got)
	}
}

// At the deadline the agent gets one cancellation, after the last attempt.
func TestTarget_CancelsTaskOnceAfterDeadline(t *testing.T) {
	for name, tc := range map[string]struct {
		kind     func(*dispatch.Call)
		attempts int
	}{"once": {func(*dispatch.Call) {}, 1}, "twice": {idempotent, 2}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork()
				a := startWorkingAgent(t, n.newAgent)
				target := n.newTarget(t)
				execute(t, target, newCall(a.URL+"/tasks?tenant=x", tc.kind, timeout(800*time.Millisecond)))
				target.Close()
				if diff := cmp.Diff([]string{"/tasks/" + taskID + "/cancel"}, a.stopped()); diff != "" {
					t.Errorf("cancellations (-want +got):\n%s", diff)
				}
				if got := len(a.received()); got != tc.attempts {
					t.Errorf("got the task %d times at the agent, want %d", got, tc.attempts)
				}
			})
		})
	}
}

// A failed first attempt must not cancel the second one.
func TestTarget_DoesNotCancelBeforeSecondAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		var tasks atomic.Int64
		a := n.newAgent(t, func(w http.ResponseWriter, r *http.Request) {
			if tasks.Add(1) == 1 {
				<-r.Context().Done()
				return
			}
			_, _ = io.WriteString(w, successBody)
		})
		target := n.newTarget(t)
		checkOutcome(t, execute(t, target, newCall(a.URL, idempotent, timeout(2*time.Second))), want{attempts: 2, health: dispatch.HealthGood})
		target.Close()
		if got := a.stopped(); len(got) != 0 {
			t.Errorf("got cancellations %v, want none", got)
		}
	})
}

// An accepted task whose result cannot be delivered is cancelled as well; a task that was answered
// or never sent is not.
func TestTarget_CancelsOnlyUnansweredTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		for _, tc := range []struct {
			status, stops int
		}{{202, 1}, {200, 0}, {204, 0}, {400, 0}, {429, 0}, {500, 0}} {
			a := n.newAgent(t, answering(tc.status, ""))
			target := n.newTarget(t)
			execute(t, target, newCall(a.URL))
			target.Close()
			if got := len(a.stopped()); got != tc.stops {
				t.Errorf("got %d cancellations after status %d, want %d", got, tc.status, tc.stops)
			}
		}
	})
	t.Run("never sent", func(t *testing.T) {
		var connections atomic.Int64
		url := rawAgent(t, func(net.Conn, int) { connections.Add(1) })
		target := newTarget(t)
		execute(t, target, newCall(url, func(c *dispatch.Call) { c.Task.Deadline = time.Now().Add(-time.Second) }))
		target.Close()
		if got := connections.Load(); got != 0 {
			t.Errorf("got %d connections for a task without time, want 0", got)
		}
	})
}

// A cancellation carries the token of its task, and an agentkit agent accepts it.
func TestTarget_CancelReachesAgentkit(t *testing.T) {
	for _, reuse := range []time.Duration{0, time.Minute} {
		t.Run("reuse "+reuse.String(), func(t *testing.T) {
			signer := newSigner(t)
			keys := httptest.NewServer(answering(http.StatusOK, string(signer.keys.JWKS())))
			defer keys.Close()
			begun, ended := make(chan struct{}), make(chan error, 1)
			agent, err := agentkit.New(agentkit.Config{AgentID: "quality_agent", JWKSURL: keys.URL, Client: keys.Client()},
				func(ctx context.Context, _ contract.Task) (contract.Result, error) {
					close(begun)
					<-ctx.Done()
					ended <- ctx.Err()
					return contract.Result{}, nil
				})
			if err != nil {
				t.Fatal(err)
			}
			server := httptest.NewServer(agent)
			defer server.Close()
			target := newTargetWith(t, signer, func(c *httptarget.Config) { c.TokenReuse = reuse })
			ctx, leave := context.WithTimeout(t.Context(), time.Minute)
			var wg sync.WaitGroup
			wg.Go(func() { target.Execute(ctx, newCall(server.URL)) })
			testkit.WaitClosed(t, begun)
			leave()
			if got := testkit.Receive(t, ended); got != context.Canceled {
				t.Errorf("got work's context ended with %v, want cancelled", got)
			}
			wg.Wait()
		})
	}
}

// If a thousand requests are cancelled at once, a thousand cancellations are sent.
func TestCancelSender_SendsManyRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tasks = 1000
		n := newNetwork()
		a := n.newAgent(t, nil)
		target := n.newTarget(t)
		for i := range tasks {
			target.CancelTask(newCall(a.URL+"/tasks", func(c *dispatch.Call) { c.Task.TaskID = strconv.Itoa(i) }))
		}
		synctest.Wait()
		seen := map[string]bool{}
		for _, path := range a.stopped() {
			seen[path] = true
		}
		if len(seen) != tasks || len(a.stopped()) != tasks {
			t.Errorf("got %d tasks cancelled by %d requests, want %d by as many", len(seen), len(a.stopped()), tasks)
		}
		target.Close()
		target.CancelTask(newCall(a.URL)) // after Close: no effect
	})
}

// An agent that does not answer cancellations does not delay the caller, and Close ends within a
// limit: it drops queued cancellations.
func TestCancelSender_CloseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stops atomic.Int64
		n := newNetwork()
		url := n.rawAgent(t, func(conn net.Conn, _ int) {
			if !readRequest(conn) {
				stops.Add(1)
			}
			readUntilClosed(conn)
		})
		target := n.newTarget(t)
		start := time.Now()
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() { execute(t, target, newCall(url, timeout(100*time.Millisecond))) })
		}
		wg.Wait()
		if took := time.Since(start); took != 100*time.Millisecond {
			t.Errorf("got a wait of %v for the callers, want 100 ms", took)
		}
		target.Close()
		if got := stops.Load(); got != 64 {
			t.Errorf("got %d cancellations sent at once, want 64", got)
		}
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("got Close return after %v, want at most 3 s", took)
		}
	})
}
