package httptarget_test

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/dispatch/httptarget"
	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/testkit"
)

// clock is a clock that a test sets.
type clock struct{ ns atomic.Int64 }

func (c *clock) Now() time.Time { return time.Unix(1_800_000_000, c.ns.Load()) }

func newDispatcher(t testing.TB, target *httptarget.Target) (*dispatch.Dispatcher, *clock) {
	t.Helper()
	c := &clock{}
	d, err := dispatch.New(dispatch.Config{Breaker: resilience.BreakerConfig{Failures: 3, OpenFor: 10 * time.Second, Now: c.Now}},
		map[string]dispatch.Target{contract.ProtocolHTTP: target})
	if err != nil {
		t.Fatal(err)
	}
	return d, c
}

func TestTarget_OutcomesOpenBreaker(t *testing.T) {
	for name, tc := range map[string]struct {
		agent func(n network, t testing.TB) string
		opens bool
	}{
		"no listener": {func(network, testing.TB) string { return refusingURL }, true},
		"silence":     {network.neverAnswers, true},
		"500":         {status(500), true},
		"no result":   {status(200), true},
		"a redirect":  {status(302), true},
		"accepted":    {status(202), true},
		"401":         {status(401), false},
		"404":         {status(404), false},
		"429":         {status(429), false},
		"failure": {func(n network, t testing.TB) string {
			return n.newAgent(t, answering(200, `{"status":"failure"}`)).URL
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork()
				d, _ := newDispatcher(t, n.newTarget(t))
				c := newCall(tc.agent(n, t), timeout(time.Second))
				for range 3 {
					d.Send(t.Context(), c)
				}
				if open := d.AgentStatus("quality_agent").Breaker == resilience.Open; open != tc.opens {
					t.Errorf("got breaker open %v, want %v", open, tc.opens)
				}
			})
		})
	}
	t.Run("callers disconnect", func(t *testing.T) {
		a := newWorkingAgent(t)
		d, _ := newDispatcher(t, newTarget(t))
		for range 5 {
			ctx, leave := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				d.Send(ctx, newCall(a.URL))
			}()
			testkit.Receive(t, a.begun)
			leave()
			testkit.WaitClosed(t, done)
		}
		if got := d.AgentStatus("quality_agent").Breaker; got != resilience.Closed {
			t.Errorf("got breaker %s, want closed", got)
		}
	})
}

func status(code int) func(n network, t testing.TB) string {
	return func(n network, t testing.TB) string { return n.newAgent(t, answering(code, "")).URL }
}

func TestTarget_BreakerOpensAndCloses(t *testing.T) {
	var ill atomic.Bool
	ill.Store(true)
	a := newAgent(t, func(w http.ResponseWriter, _ *http.Request) {
		if ill.Load() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		_, _ = io.WriteString(w, successBody)
	})
	d, clock := newDispatcher(t, newTarget(t))
	for range 10 {
		d.Send(t.Context(), newCall(a.URL))
	}
	if got := len(a.received()); got != 3 {
		t.Errorf("unhealthy agent: got %d tasks, want the 3 that opened the breaker", got)
	}
	clock.ns.Add(int64(10 * time.Second))
	d.Send(t.Context(), newCall(a.URL)) // a trial that fails
	d.Send(t.Context(), newCall(a.URL))
	if got := len(a.received()); got != 4 {
		t.Errorf("after the open period: got %d tasks, want the trial as the 4th", got)
	}
	ill.Store(false)
	clock.ns.Add(int64(10 * time.Second))
	for range 3 {
		if got := d.Send(t.Context(), newCall(a.URL)); got.Err != nil {
			t.Errorf("recovered agent: got %+v, want a result", got.Err)
		}
	}
}

// Each attempt gets its share of the remaining time, so that the standbys have time as well; the
// agent receives the deadline of its share.
func TestTarget_SendsDeadlineShares(t *testing.T) {
	const total = 12 * time.Second
	for _, tc := range []struct {
		name        string
		kind        func(*dispatch.Call)
		others      int
		first, next time.Duration // from the start; next = 0: no second attempt
	}{
		{"idempotent, no standby", idempotent, 0, total / 2, total},
		{"idempotent, one standby", idempotent, 1, total / 3, total / 2},
		{"idempotent, two standbys", idempotent, 2, total / 4, total / 3},
		{"not idempotent", func(*dispatch.Call) {}, 2, total, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork()
				a := n.newAgent(t, answering(http.StatusServiceUnavailable, ""))
				start := time.Now()
				c := newCall(a.URL, tc.kind, withStandbys(tc.others))
				c.Task.Deadline = start.Add(total)
				execute(t, n.newTarget(t), c)
				tasks := a.received()
				limits := []time.Duration{tc.first, tc.next}
				if tc.next == 0 {
					limits = limits[:1]
				}
				if len(tasks) != len(limits) {
					t.Fatalf("got %d attempts, want %d", len(tasks), len(limits))
				}
				for i, task := range tasks {
					// The first response arrives at once. The second attempt starts after the
					// backoff, which has jitter.
					got := task.Deadline.Sub(start)
					if (got-limits[i]).Abs() > 100*time.Millisecond || task.Attempt != i+1 {
						t.Errorf("request %d: got attempt %d with %v left, want %v", i+1, task.Attempt, got, limits[i])
					}
				}
			})
		})
	}
}

// An idempotent agent that hangs leaves enough time for the next one.
func TestTarget_LeavesTimeForFailover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		hanging, healthy := n.neverAnswers(t), n.newAgent(t, answering(http.StatusOK, successBody))
		d, _ := newDispatcher(t, n.newTarget(t))
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		first := d.Send(ctx, newCall(hanging, idempotent, withStandbys(1)))
		checkOutcome(t, first, want{code: contract.TaskDeadlineExceeded, attempts: 2, health: first.Health})
		second := d.Send(ctx, newCall(healthy.URL, func(c *dispatch.Call) { c.Agent.ID = "other_agent" }))
		checkOutcome(t, second, want{attempts: 1, health: dispatch.HealthGood})
	})
}
