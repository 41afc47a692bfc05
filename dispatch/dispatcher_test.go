package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/testkit"
)

func TestNew_RejectsInvalidConfig(t *testing.T) {
	for name, tc := range map[string]struct {
		cfg     dispatch.Config
		targets map[string]dispatch.Target
		want    string
	}{
		"negative bound":   {dispatch.Config{MaxInFlight: -1}, nil, "max_in_flight"},
		"negative timeout": {dispatch.Config{Timeout: -1}, nil, "timeout"},
		"no target":        {dispatch.Config{}, map[string]dispatch.Target{"http": nil}, "http"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := dispatch.New(tc.cfg, tc.targets); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("New: got %v, want an error about %s", err, tc.want)
			}
		})
	}
}

func TestDispatcher_ReturnsOutcomeOfTarget(t *testing.T) {
	for name, want := range map[string]dispatch.Outcome{"success": success, "broken": unreachable, "cancelled": cancelledTask} {
		t.Run(name, func(t *testing.T) {
			b := newTestDispatcher(t)
			b.target.answer(want)
			c := call(agent("a"))
			c.Standbys = 3
			got := b.Send(t.Context(), c)
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(dispatch.Outcome{}, "Latency")); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
			if got.Latency <= 0 {
				t.Errorf("got latency %v, want the duration of the call", got.Latency)
			}
			if diff := cmp.Diff([]dispatch.Call{c}, b.target.calls); diff != "" {
				t.Errorf("calls of the target (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDispatcher_RejectsAgentWithoutTarget(t *testing.T) {
	for _, tc := range []struct {
		name     string
		endpoint contract.Endpoint
		want     string // "" = the target is called
	}{
		{"no endpoint", contract.Endpoint{}, "a names no endpoint"},
		{"http without a URL", contract.Endpoint{Protocol: "http"}, "a names no endpoint"},
		{"URL without a protocol", contract.Endpoint{URL: "http://127.0.0.1:1/"}, ""},
		{"pull", contract.Endpoint{Protocol: "pull"}, "a cannot be reached: protocol pull is not served by this version"},
		{"mcp", contract.Endpoint{Protocol: "mcp", URL: "http://x"}, "a cannot be reached: protocol mcp is not served by this version"},
		{"nonsense", contract.Endpoint{Protocol: "smoke", URL: "x"}, "a cannot be reached: protocol smoke is not served by this version"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newTestDispatcher(t)
			got := b.send(t, &contract.RegistryEntry{ID: "a", Endpoint: tc.endpoint})
			if tc.want == "" {
				if got.Err != nil {
					t.Errorf("Send: got %+v, want a result", got.Err)
				}
				return
			}
			checkUnavailable(t, got, tc.want)
			if b.target.count() != 0 {
				t.Error("got a call of the target, want none")
			}
		})
	}
}

func TestDispatcher_RejectsAgentByState(t *testing.T) {
	for state, want := range map[contract.AgentState]string{
		contract.AgentActive: "", contract.AgentDegraded: "",
		contract.AgentDraining: "a is draining and takes no new tasks",
		contract.AgentExpired:  "a has expired: no heartbeat came in time",
		contract.AgentDisabled: "a is disabled",
	} {
		t.Run(string(state), func(t *testing.T) {
			b := newTestDispatcher(t)
			a := agent("a")
			b.SetAgents([]*contract.RegistryEntry{a})[0].SetState(state)
			got := b.send(t, a)
			if want == "" {
				if got.Err != nil {
					t.Errorf("Send: got %+v, want a result", got.Err)
				}
				return
			}
			checkUnavailable(t, got, want)
			if b.target.count() != 0 || b.AgentStatus("a").State != state {
				t.Errorf("got %d calls and state %s, want none and %s", b.target.count(), b.AgentStatus("a").State, state)
			}
		})
	}
}

// checkUnavailable checks for agent_unavailable without an attempt, so that the task was certainly
// not executed.
func checkUnavailable(t testing.TB, got dispatch.Outcome, detail string) {
	t.Helper()
	if got.Err == nil || got.Err.Code != contract.TaskAgentUnavailable || !strings.Contains(got.Err.Detail, detail) ||
		got.MayHaveExecuted || got.Attempts != 0 || got.Result != nil {
		t.Errorf("got %+v with %+v; want agent_unavailable without an attempt and with %q", got, got.Err, detail)
	}
}

func TestDispatcher_UsesEarliestDeadline(t *testing.T) {
	const soon, late = time.Second, time.Minute
	for _, tc := range []struct {
		name      string
		ctx, task time.Duration // 0 = none
		want      time.Duration
	}{
		{"deadline of the task", 0, soon, soon},
		{"deadline of the context", soon, 0, soon},
		{"task's deadline earlier", late, soon, soon},
		{"context's deadline earlier", soon, late, soon},
		{"equal deadlines", soon, soon, soon},
		{"none", 0, 0, dispatch.DefaultTimeout},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newTestDispatcher(t)
				var got time.Duration
				b.target.do = func(ctx context.Context, _ dispatch.Call) dispatch.Outcome {
					deadline, _ := ctx.Deadline()
					got = time.Until(deadline)
					return success
				}
				ctx, c := t.Context(), call(agent("a"))
				if tc.ctx != 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tc.ctx)
					defer cancel()
				}
				if tc.task != 0 {
					c.Task.Deadline = time.Now().Add(tc.task)
				}
				b.Send(ctx, c)
				if got != tc.want {
					t.Errorf("got deadline %v at the target, want %v", got, tc.want)
				}
			})
		})
	}
}

// blockUntil returns a target function that signals its start and blocks until end
// is closed.
func blockUntil(begun chan<- string, end <-chan struct{}) func(context.Context, dispatch.Call) dispatch.Outcome {
	return func(_ context.Context, c dispatch.Call) dispatch.Outcome {
		begun <- c.Agent.ID
		<-end
		return success
	}
}

func TestDispatcher_BoundsTasksOfOneAgent(t *testing.T) {
	b := newTestDispatcher(t)
	busy, idle := agent("busy"), agent("idle")
	busy.MaxInFlight = 2
	live := b.SetAgents([]*contract.RegistryEntry{busy, idle})
	begun, end := make(chan string, 3), make(chan struct{})
	b.target.do = blockUntil(begun, end)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { b.send(t, busy) })
		testkit.Receive(t, begun)
	}
	if got := live[0].InFlight(); got != 2 {
		t.Errorf("got %d in flight, want 2", got)
	}
	if diff := cmp.Diff(dispatch.AgentStatus{Breaker: "closed", InFlight: 2, State: contract.AgentActive}, b.AgentStatus("busy")); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	checkUnavailable(t, b.send(t, busy), "busy is at its limit of 2 tasks in flight (max_in_flight)")
	wg.Go(func() { b.send(t, idle) }) // the limit is per agent
	testkit.Receive(t, begun)
	close(end)
	wg.Wait()
	if got := b.send(t, busy); got.Err != nil || live[0].InFlight() != 0 {
		t.Errorf("after the release: got %+v and %d in flight, want a result and 0", got.Err, live[0].InFlight())
	}
}

func TestDispatcher_SemaphoreBoundsAllTasks(t *testing.T) {
	one := func(c *dispatch.Config) { c.MaxInFlight = 1 }
	// occupy holds the only permit until the returned function is called.
	occupy := func(t *testing.T, b *testDispatcher) (free func()) {
		begun, end := make(chan string, 1), make(chan struct{})
		b.target.do = blockUntil(begun, end)
		var wg sync.WaitGroup
		wg.Go(func() { b.send(t, agent("first")) })
		testkit.Receive(t, begun)
		b.target.answer(success)
		return func() { close(end); wg.Wait() }
	}
	t.Run("waits for a permit", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newTestDispatcher(t, one)
			free := occupy(t, b)
			var got dispatch.Outcome
			var wg sync.WaitGroup
			wg.Go(func() { got = b.send(t, agent("second")) })
			synctest.Wait()
			if b.target.count() != 1 {
				t.Fatalf("got %d concurrent tasks, want at most 1", b.target.count())
			}
			free()
			wg.Wait()
			if got.Err != nil {
				t.Errorf("waiting task: got %+v, want a result", got.Err)
			}
		})
	})
	t.Run("at most a quarter of its time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newTestDispatcher(t, one)
			free := occupy(t, b)
			ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
			defer cancel()
			got := b.Send(ctx, call(agent("second")))
			checkUnavailable(t, got, "the router is at its limit of 1 tasks in flight (dispatch.max_in_flight); waited 2000 ms")
			if got.Latency != 2*time.Second {
				t.Errorf("got a wait of %v, want 2s", got.Latency)
			}
			if s := b.AgentStatus("second"); s.InFlight != 0 {
				t.Errorf("got %d tasks in flight after the wait, want 0", s.InFlight)
			}
			free()
		})
	})
	for _, tc := range []struct {
		name string
		end  error
		want contract.TaskCode
	}{
		{"caller disconnects", context.Canceled, contract.TaskWasCancelled},
		{"caller disconnected before", nil, contract.TaskWasCancelled},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newTestDispatcher(t, one)
				free := occupy(t, b)
				ctx, cancel := context.WithCancel(t.Context())
				if tc.end == nil {
					cancel()
				}
				var got dispatch.Outcome
				var wg sync.WaitGroup
				wg.Go(func() { got = b.Send(ctx, call(agent("second"))) })
				synctest.Wait()
				cancel()
				wg.Wait()
				if got.Err == nil || got.Err.Code != tc.want || got.MayHaveExecuted || got.Attempts != 0 {
					t.Errorf("got %+v with %+v, want %s without an attempt", got, got.Err, tc.want)
				}
				free()
			})
		})
	}
	t.Run("expired deadline", func(t *testing.T) {
		b := newTestDispatcher(t)
		c := call(agent("a"))
		c.Task.Deadline = time.Now().Add(-time.Second)
		if got := b.Send(t.Context(), c); got.Err == nil || got.Err.Code != contract.TaskDeadlineExceeded || b.target.count() != 0 {
			t.Errorf("got %+v after %d calls, want deadline_exceeded after none", got.Err, b.target.count())
		}
	})
}

func TestDispatcher_ReleasesEverythingAfterPanic(t *testing.T) {
	b := newTestDispatcher(t, func(c *dispatch.Config) { c.MaxInFlight = 1 })
	a := agent("a")
	live := b.SetAgents([]*contract.RegistryEntry{a})
	boom := errors.New("boom")
	b.target.do = func(context.Context, dispatch.Call) dispatch.Outcome { panic(boom) }
	func() {
		defer func() {
			if got := recover(); got != boom {
				t.Errorf("got panic %v, want the target's", got)
			}
		}()
		b.send(t, a)
	}()
	b.target.answer(success)
	if got := b.send(t, a); got.Err != nil || live[0].InFlight() != 0 {
		t.Errorf("next task: got %+v with %d in flight, want a result, because everything was released", got.Err, live[0].InFlight())
	}
}

func TestDispatcher_KeepsBoundsUnderConcurrency(t *testing.T) {
	const most = 8
	b := newTestDispatcher(t, func(c *dispatch.Config) { c.MaxInFlight = most })
	agents := make([]*contract.RegistryEntry, 5)
	for i := range agents {
		agents[i] = agent(fmt.Sprintf("a%d", i))
		agents[i].MaxInFlight = 4
	}
	live := b.SetAgents(agents)
	var now, peak atomic.Int64
	var turn atomic.Int64
	b.target.do = func(context.Context, dispatch.Call) dispatch.Outcome {
		n := now.Add(1)
		for p := peak.Load(); n > p && !peak.CompareAndSwap(p, n); p = peak.Load() {
		}
		defer now.Add(-1)
		return []dispatch.Outcome{success, unreachable, cancelledTask, success}[turn.Add(1)%4]
	}
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := range 200 {
				b.send(t, agents[(i+j)%len(agents)])
				if j%50 == 0 {
					b.SetAgents(agents)
					b.OpenBreakers()
					b.clock.Advance(time.Second)
				}
			}
		})
	}
	wg.Wait()
	if got := peak.Load(); got > most {
		t.Errorf("got %d tasks in flight at once, want at most %d", got, most)
	}
	for i, s := range live {
		if s.InFlight() != 0 {
			t.Errorf("agent %d: got %d in flight at the end, want 0", i, s.InFlight())
		}
	}
}
