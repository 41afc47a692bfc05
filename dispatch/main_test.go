package dispatch_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/resilience"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a clock that a test sets.
type clock struct{ ns atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.ns.Store(time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC).UnixNano())
	return c
}

func (c *clock) Now() time.Time          { return time.Unix(0, c.ns.Load()) }
func (c *clock) Advance(d time.Duration) { c.ns.Add(int64(d)) }

// scriptedTarget is a target whose outcomes a test sets.
type scriptedTarget struct {
	mu    sync.Mutex
	do    func(ctx context.Context, c dispatch.Call) dispatch.Outcome
	calls []dispatch.Call
}

func (s *scriptedTarget) Execute(ctx context.Context, c dispatch.Call) dispatch.Outcome {
	s.mu.Lock()
	s.calls = append(s.calls, c)
	do := s.do
	s.mu.Unlock()
	return do(ctx, c)
}

func (s *scriptedTarget) answer(out dispatch.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.do = func(context.Context, dispatch.Call) dispatch.Outcome { return out }
}

func (s *scriptedTarget) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls)
}

// Outcomes that most tests need.
var (
	success       = dispatch.Outcome{Result: &contract.Result{Status: contract.ResultSuccess}, Attempts: 1, Health: dispatch.HealthGood}
	unreachable   = dispatch.Outcome{Err: &contract.TaskError{Code: contract.TaskAgentUnavailable, Detail: "connection refused"}, Attempts: 2, Health: dispatch.HealthBad}
	cancelledTask = dispatch.Outcome{Err: &contract.TaskError{Code: contract.TaskWasCancelled, Detail: "left"}, Attempts: 1, Health: dispatch.HealthUnknown}
)

// testDispatcher is a Dispatcher with one scripted target for the protocol http.
type testDispatcher struct {
	*dispatch.Dispatcher
	target *scriptedTarget
	clock  *clock
}

func newTestDispatcher(t testing.TB, change ...func(*dispatch.Config)) *testDispatcher {
	t.Helper()
	b := &testDispatcher{target: &scriptedTarget{}, clock: newClock()}
	b.target.answer(success)
	cfg := dispatch.Config{Breaker: resilience.BreakerConfig{Failures: 3, OpenFor: 10 * time.Second, Now: b.clock.Now}}
	for _, c := range change {
		c(&cfg)
	}
	d, err := dispatch.New(cfg, map[string]dispatch.Target{contract.ProtocolHTTP: b.target})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	b.Dispatcher = d
	return b
}

func agent(id string) *contract.RegistryEntry {
	return &contract.RegistryEntry{ID: id, Endpoint: contract.Endpoint{Protocol: contract.ProtocolHTTP, URL: "http://127.0.0.1:1/"}}
}

func call(a *contract.RegistryEntry) dispatch.Call {
	return dispatch.Call{Agent: a, Caller: &contract.Caller{Subject: "alice"}, Task: contract.Task{TaskID: "t1"}}
}

// send sends a task to the agent and returns the outcome.
func (b *testDispatcher) send(t testing.TB, a *contract.RegistryEntry) dispatch.Outcome {
	t.Helper()
	return b.Send(t.Context(), call(a))
}

// recordFailures makes the agent fail this many times.
func (b *testDispatcher) recordFailures(t testing.TB, a *contract.RegistryEntry, times int) {
	t.Helper()
	b.target.answer(unreachable)
	for range times {
		b.send(t, a)
	}
	b.target.answer(success)
}
