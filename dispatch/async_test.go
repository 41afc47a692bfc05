package dispatch_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/testkit"
)

// cancellableTarget is a scripted target that supports cancellation.
type cancellableTarget struct {
	scriptedTarget
	cancelled chan dispatch.Call
}

func (s *cancellableTarget) CancelTask(c dispatch.Call) { s.cancelled <- c }

// newPendingDispatcher returns a Dispatcher whose agents accept every task
// asynchronously.
func newPendingDispatcher(t testing.TB, change ...func(*dispatch.Config)) (*dispatch.Dispatcher, *cancellableTarget) {
	t.Helper()
	target := &cancellableTarget{cancelled: make(chan dispatch.Call, 8)}
	target.answer(dispatch.Outcome{Pending: true, Attempts: 2, Health: dispatch.HealthGood})
	cfg := dispatch.Config{Breaker: resilience.BreakerConfig{Failures: 3, OpenFor: 10 * time.Second, Now: newClock().Now}}
	for _, c := range change {
		c(&cfg)
	}
	d, err := dispatch.New(cfg, map[string]dispatch.Target{contract.ProtocolHTTP: target})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return d, target
}

// Outcomes of AwaitResult.
var (
	delivered    = dispatch.Outcome{Result: &contract.Result{Status: contract.ResultPartial}}
	cancelled    = dispatch.Outcome{Err: &contract.TaskError{Code: contract.TaskWasCancelled, Detail: "cancelled"}}
	stillPending = dispatch.Outcome{Pending: true}
)

// awaitContextEnd returns an AwaitResult function that waits for the end of the
// context.
func awaitContextEnd(out dispatch.Outcome) func(context.Context) dispatch.Outcome {
	return func(ctx context.Context) dispatch.Outcome {
		<-ctx.Done()
		return out
	}
}

func TestDispatcher_AwaitsPendingResult(t *testing.T) {
	at := func(n int, out dispatch.Outcome) dispatch.Outcome { out.Attempts = n; return out }
	for _, tc := range []struct {
		name    string
		await   func(context.Context) dispatch.Outcome
		want    dispatch.Outcome
		latency time.Duration
		stops   int
	}{
		{"delivered", func(context.Context) dispatch.Outcome { return delivered }, at(2, delivered), 0, 0},
		{"cancelled before the deadline", func(context.Context) dispatch.Outcome { return cancelled }, at(2, cancelled), 0, 0},
		{"deadline exceeded", awaitContextEnd(cancelled), at(2, cancelled), 3 * time.Second, 1},
		{"delivered at the deadline", awaitContextEnd(delivered), at(2, delivered), 3 * time.Second, 0},
		{"handed over", awaitContextEnd(stillPending), at(2, stillPending), 3 * time.Second, 0},
		{"with its own attempt count", func(context.Context) dispatch.Outcome { return at(5, delivered) }, at(5, delivered), 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, target := newPendingDispatcher(t)
				c := call(agent("a"))
				c.AwaitResult, c.Task.Deadline = tc.await, time.Now().Add(3*time.Second)
				got := d.Send(t.Context(), c)
				if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(dispatch.Outcome{}, "Latency")); diff != "" {
					t.Errorf("outcome (-want +got):\n%s", diff)
				}
				if got.Latency != tc.latency {
					t.Errorf("got latency %v, want the whole wait, %v", got.Latency, tc.latency)
				}
				if got := len(target.cancelled); got != tc.stops {
					t.Fatalf("got %d cancellations, want %d", got, tc.stops)
				}
				if tc.stops > 0 && testkit.Receive(t, target.cancelled).Task.TaskID != "t1" {
					t.Error("got the cancellation of another task, want t1")
				}
			})
		})
	}
}

// A pending task counts for its agent's limit and not for the semaphore of all
// tasks, so that a few slow agents do not block the others.
func TestDispatcher_PendingTaskReleasesSemaphore(t *testing.T) {
	d, target := newPendingDispatcher(t, func(c *dispatch.Config) { c.MaxInFlight = 1 })
	slow, quick := agent("slow"), agent("quick")
	slow.MaxInFlight = 2
	live := d.SetAgents([]*contract.RegistryEntry{slow, quick})
	awaited, deliver := make(chan struct{}, 2), make(chan struct{})
	c := call(slow)
	c.AwaitResult = func(context.Context) dispatch.Outcome {
		awaited <- struct{}{}
		<-deliver
		return delivered
	}
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			if out := d.Send(t.Context(), c); out.Result == nil {
				t.Errorf("Send: got %+v, want the result", out)
			}
		})
		testkit.Receive(t, awaited)
	}
	if got := live[0].InFlight(); got != 2 {
		t.Errorf("got %d tasks in flight at the slow agent, want 2", got)
	}
	checkUnavailable(t, d.Send(t.Context(), c), "slow is at its limit of 2 tasks in flight")
	target.answer(success)
	if out := d.Send(t.Context(), call(quick)); out.Result == nil {
		t.Errorf("Send to another agent: got %+v, want a result", out)
	}
	close(deliver)
	wg.Wait()
	if got := live[0].InFlight(); got != 0 {
		t.Errorf("got %d tasks in flight at the end, want 0", got)
	}
}

// An agent that accepts a task is healthy, however the task ends: the breaker
// counts the response only.
func TestDispatcher_AcceptedTaskCountsAsHealthy(t *testing.T) {
	b := newTestDispatcher(t)
	a := agent("a")
	b.recordFailures(t, a, 2)
	b.target.answer(dispatch.Outcome{Pending: true, Attempts: 1})
	c := call(a)
	c.AwaitResult = func(context.Context) dispatch.Outcome {
		if got := b.AgentStatus("a").Breaker; got != resilience.Closed {
			t.Errorf("breaker during the wait: got %s, want closed", got)
		}
		out := unreachable
		out.Health = dispatch.HealthBad
		return out
	}
	for range 5 {
		b.Send(t.Context(), c)
	}
	if got := b.AgentStatus("a").Breaker; got != resilience.Closed {
		t.Errorf("breaker: got %s, want closed", got)
	}
	b.recordFailures(t, a, 3)
	b.clock.Advance(10 * time.Second)
	c.AwaitResult = func(context.Context) dispatch.Outcome {
		if got := b.AgentStatus("a").Breaker; got != resilience.Closed {
			t.Errorf("breaker after an accepted trial: got %s, want closed", got)
		}
		return delivered
	}
	b.target.answer(dispatch.Outcome{Pending: true, Attempts: 1, Health: dispatch.HealthGood})
	if out := b.Send(t.Context(), c); out.Result == nil {
		t.Errorf("trial: got %+v, want its result", out)
	}
}

// A task that this process hands over to the next one continues: it is not cancelled at its agent.
func TestDispatcher_LeavesTaskAfterHandover(t *testing.T) {
	cancelledTask := dispatch.Outcome{Err: &contract.TaskError{Code: contract.TaskWasCancelled}, Attempts: 1, MayHaveExecuted: true}
	unsent := dispatch.Outcome{Err: &contract.TaskError{Code: contract.TaskAgentUnavailable}, Attempts: 1}
	for _, tc := range []struct {
		name   string
		target dispatch.Outcome
		await  func(context.Context) dispatch.Outcome
		want   dispatch.Outcome
	}{
		{"sent", cancelledTask, nil, dispatch.Outcome{Pending: true, Attempts: 1}},
		{"not sent", unsent, nil, unsent},
		{"answered", success, nil, success},
		{"accepted", dispatch.Outcome{Pending: true, Attempts: 1}, awaitContextEnd(stillPending), dispatch.Outcome{Pending: true, Attempts: 1}},
		{"accepted, then failed", dispatch.Outcome{Pending: true, Attempts: 1}, awaitContextEnd(unsent), unsent},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d, target := newPendingDispatcher(t)
			ctx, cancel := context.WithCancelCause(t.Context())
			target.do = func(context.Context, dispatch.Call) dispatch.Outcome {
				cancel(dispatch.ErrHandedOver)
				return tc.target
			}
			c := call(agent("a"))
			c.AwaitResult = tc.await
			got := d.Send(ctx, c)
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(dispatch.Outcome{}, "Latency")); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
			if len(target.cancelled) != 0 {
				t.Error("got a cancellation, want none")
			}
			checkUnavailable(t, d.Send(ctx, c), "the router stopped before the task was sent")
		})
	}
}

func TestDispatcher_ReleasesSlotAfterPanicInAwait(t *testing.T) {
	d, _ := newPendingDispatcher(t, func(c *dispatch.Config) { c.MaxInFlight = 1 })
	a := agent("a")
	live := d.SetAgents([]*contract.RegistryEntry{a})
	c := call(a)
	c.AwaitResult = func(context.Context) dispatch.Outcome { panic("boom") }
	for range 2 {
		func() {
			defer func() { _ = recover() }()
			d.Send(t.Context(), c)
			t.Error("got no panic, want the one of AwaitResult")
		}()
	}
	if got := live[0].InFlight(); got != 0 {
		t.Errorf("got %d tasks in flight, want 0", got)
	}
}

func TestCancelTask_ReachesTarget(t *testing.T) {
	d, target := newPendingDispatcher(t)
	c := call(agent("a"))
	d.CancelTask(c)
	if got := testkit.Receive(t, target.cancelled); got.Task.TaskID != c.Task.TaskID {
		t.Errorf("got the cancellation of task %s, want %s", got.Task.TaskID, c.Task.TaskID)
	}
	if got := d.AgentStatus("a").InFlight; got != 0 {
		t.Errorf("got %d tasks in flight after a cancellation, want 0", got)
	}
	d.CancelTask(call(&contract.RegistryEntry{ID: "nowhere"}))                                          // an agent without a target
	newTestDispatcher(t).CancelTask(c)                                                                  // a target without CancelTask
	d.CancelTask(call(&contract.RegistryEntry{ID: "p", Endpoint: contract.Endpoint{Protocol: "pull"}})) // a protocol without a target
	if len(target.cancelled) != 0 {
		t.Error("got another cancellation, want none")
	}
}

func TestDispatcher_CallsBeforeSendAfterAdmission(t *testing.T) {
	t.Run("once, before the task is sent", func(t *testing.T) {
		b := newTestDispatcher(t)
		var events []string
		b.target.do = func(context.Context, dispatch.Call) dispatch.Outcome {
			events = append(events, "sent")
			return success
		}
		c := call(agent("a"))
		c.BeforeSend = func(ctx context.Context) error {
			if _, ok := ctx.Deadline(); !ok {
				t.Error("got a BeforeSend context without a deadline, want one")
			}
			if got := b.AgentStatus("a").InFlight; got != 1 {
				t.Errorf("got %d tasks in flight in BeforeSend, want 1, because it is called after admission", got)
			}
			events = append(events, "recorded")
			return nil
		}
		b.Send(t.Context(), c)
		if diff := cmp.Diff([]string{"recorded", "sent"}, events); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
	t.Run("not for a rejected task", func(t *testing.T) {
		b := newTestDispatcher(t)
		a := agent("a")
		b.recordFailures(t, a, 3)
		c := call(a)
		c.BeforeSend = func(context.Context) error { t.Error("BeforeSend was called for a rejected task"); return nil }
		checkUnavailable(t, b.Send(t.Context(), c), "gets no tasks until")
	})
	t.Run("error prevents the send", func(t *testing.T) {
		b := newTestDispatcher(t)
		a := agent("a")
		live := b.SetAgents([]*contract.RegistryEntry{a})
		b.recordFailures(t, a, 2)
		sent := b.target.count()
		c := call(a)
		c.BeforeSend = func(context.Context) error { return errors.New("disk full: /secret") }
		for range 5 {
			out := b.Send(t.Context(), c)
			checkUnavailable(t, out, "could not be recorded")
			if strings.Contains(out.Err.Detail, "secret") {
				t.Errorf("got detail %q, want none of the text that is only for the log", out.Err.Detail)
			}
		}
		if b.target.count() != sent {
			t.Error("got a task sent, want none because it could not be recorded")
		}
		if got := b.AgentStatus("a"); got.Breaker != resilience.Closed || live[0].InFlight() != 0 {
			t.Errorf("got agent %+v, want it idle and closed, because it did not fail", got)
		}
		b.recordFailures(t, a, 1)
		if got := b.AgentStatus("a").Breaker; got != resilience.Open {
			t.Errorf("breaker: got %s, want open, because the earlier failures still count", got)
		}
	})
	t.Run("error permits another trial", func(t *testing.T) {
		b := newTestDispatcher(t)
		a := agent("a")
		b.recordFailures(t, a, 3)
		b.clock.Advance(10 * time.Second)
		c := call(a)
		c.BeforeSend = func(context.Context) error { return errors.New("disk full") }
		checkUnavailable(t, b.Send(t.Context(), c), "could not be recorded")
		b.clock.Advance(10 * time.Second)
		if out := b.send(t, a); out.Result == nil {
			t.Errorf("next trial: got %+v, want a result", out.Err)
		}
	})
	for _, tc := range []struct {
		name string
		end  func(context.Context) (context.Context, context.CancelFunc)
		want contract.TaskCode
	}{
		{"caller disconnects", context.WithCancel, contract.TaskWasCancelled},
		{"deadline passes", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		}, contract.TaskDeadlineExceeded},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newTestDispatcher(t)
				ctx, cancel := tc.end(t.Context())
				defer cancel()
				c := call(agent("a"))
				c.BeforeSend = func(ctx context.Context) error {
					if tc.want == contract.TaskWasCancelled {
						cancel()
					}
					<-ctx.Done()
					return ctx.Err()
				}
				if out := b.Send(ctx, c); out.Err == nil || out.Err.Code != tc.want || out.MayHaveExecuted || b.target.count() != 0 {
					t.Errorf("Send: got %+v with %+v after %d calls, want %s after none", out, out.Err, b.target.count(), tc.want)
				}
			})
		})
	}
}

// A task that is sent again continues its attempt count, even if it does not reach
// its agent.
func TestDispatcher_ContinuesAttemptCount(t *testing.T) {
	b := newTestDispatcher(t)
	c := call(agent("a"))
	for _, tc := range []struct{ first, want int }{{0, 0}, {1, 0}, {2, 1}, {4, 3}} {
		c.Task.Attempt = tc.first
		c.BeforeSend = func(context.Context) error { return errors.New("disk full") }
		if got := b.Send(t.Context(), c).Attempts; got != tc.want {
			t.Errorf("unsent, from attempt %d on: got %d attempts, want %d", tc.first, got, tc.want)
		}
	}
	c.Task.Attempt, c.BeforeSend = 1, nil
	if got := b.Send(t.Context(), c).Attempts; got != 1 {
		t.Errorf("got %d attempts, want the target's 1", got)
	}
}
