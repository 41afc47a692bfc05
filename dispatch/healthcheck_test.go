package dispatch_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/resilience"
)

// checkedTarget is a scripted target whose instances are healthy unless they are down.
type checkedTarget struct {
	scriptedTarget
	checks atomic.Int64
	mu     sync.Mutex
	down   map[string]bool // by name
	hangs  map[string]bool // names that never answer
}

func (p *checkedTarget) CheckHealth(ctx context.Context, agent *contract.RegistryEntry) error {
	p.checks.Add(1)
	name := calledInstance(dispatch.Call{Agent: agent})
	p.mu.Lock()
	down, hangs := p.down[name], p.hangs[name]
	p.mu.Unlock()
	switch {
	case hangs:
		<-ctx.Done()
		return ctx.Err()
	case down:
		return errors.New("connection refused")
	}
	return nil
}

func (p *checkedTarget) setDown(name string, down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down[name] = down
}

func (p *checkedTarget) setHanging(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hangs[name] = true
}

// startChecks runs the health checks of a dispatcher until the test ends. It is for a synctest
// bubble.
func startChecks(t *testing.T, agents ...*contract.RegistryEntry) (*dispatch.Dispatcher, *checkedTarget) {
	t.Helper()
	target := &checkedTarget{down: map[string]bool{}, hangs: map[string]bool{}}
	target.answer(success)
	d, err := dispatch.New(dispatch.Config{Breaker: resilience.BreakerConfig{Failures: 3, OpenFor: 10 * time.Second}},
		map[string]dispatch.Target{contract.ProtocolHTTP: target})
	if err != nil {
		t.Fatal(err)
	}
	d.SetAgents(agents)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.RunHealthChecks(ctx) }()
	synctest.Wait()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("RunHealthChecks: %v", err)
		}
	})
	return d, target
}

func checkedAgent(interval int, instances ...contract.Instance) *contract.RegistryEntry {
	e := registered("a", instances...)
	e.Health.IntervalS = interval
	return e
}

// advance waits for the time of the bubble to pass.
func advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// An instance that fails its health checks gets no tasks, even if no task has failed.
func TestRunHealthChecks_OpensBreakerOfFailingInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := checkedAgent(2, instance("up"), instance("down"))
		d, target := startChecks(t, a)
		target.setDown("down", true)
		advance(10 * time.Second)
		status := d.AgentStatus("a")
		if status.State != contract.AgentDegraded || status.Instances[0].Breaker == status.Instances[1].Breaker {
			t.Fatalf("got %+v, want a degraded agent with one open breaker", status)
		}
		for range 10 {
			if out := d.Send(t.Context(), call(a)); out.Err != nil {
				t.Fatalf("got %+v, want a result", out.Err)
			}
		}
		for _, name := range target.calledInstances() {
			if name != "up" {
				t.Errorf("got a task at %s, want none", name)
			}
		}
	})
}

// While an instance is down, no task is the trial of its breaker; as soon as it has recovered, the
// next task is.
func TestRunHealthChecks_GuardTheTrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := checkedAgent(1, instance("one"))
		d, target := startChecks(t, a)
		target.setDown("one", true)
		advance(time.Minute) // several open periods of the breaker
		if out := d.Send(t.Context(), call(a)); out.Err == nil || len(target.calledInstances()) != 0 {
			t.Errorf("got %+v, want the task rejected without a call", out)
		}
		if n := d.OpenBreakers(); n != 1 {
			t.Errorf("got %d open breakers while the instance is down, want 1", n)
		}
		target.setDown("one", false)
		advance(15 * time.Second)
		if n := d.OpenBreakers(); n != 0 {
			t.Errorf("got %d open breakers after a successful health check, want 0", n)
		}
		if out := d.Send(t.Context(), call(a)); out.Err != nil {
			t.Errorf("after the recovery: got %+v, want a result", out.Err)
		}
		if got := d.AgentStatus("a").Breaker; got != resilience.Closed {
			t.Errorf("breaker: got %s, want closed", got)
		}
		if n := d.ActiveAgents(); n != 0 {
			t.Errorf("got %d agents with a state after the recovery, want 0", n)
		}
	})
}

// Successful health checks do not close a breaker: a healthy agent may still fail its tasks.
func TestRunHealthChecks_SuccessDoesNotHideFailedTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := checkedAgent(1, instance("one"))
		d, target := startChecks(t, a)
		target.answer(unreachable)
		for range 3 {
			d.Send(t.Context(), call(a))
			advance(2 * time.Second)
		}
		if got := d.AgentStatus("a").Breaker; got != resilience.Open {
			t.Errorf("breaker: got %s, want open after three failed tasks", got)
		}
	})
}

// Health checks follow the registry: agents without an interval are not checked, and a new agent's
// first health check is spread over its interval.
func TestRunHealthChecks_FollowRegistry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, target := startChecks(t, checkedAgent(0, instance("one")))
		advance(time.Minute)
		if n := target.checks.Load(); n != 0 {
			t.Errorf("got %d health checks without an interval, want 0", n)
		}
		d.SetAgents([]*contract.RegistryEntry{checkedAgent(10, instance("one"), instance("two", inState(contract.AgentDraining)))})
		advance(61 * time.Second)
		if n := target.checks.Load(); n < 5 || n > 7 {
			t.Errorf("got %d health checks in a minute, want one of the active instance every 10 s", n)
		}
		d.SetAgents(nil)
		before := target.checks.Load()
		advance(time.Minute)
		if n := target.checks.Load(); n != before {
			t.Errorf("got %d health checks of a removed agent, want 0", n-before)
		}
	})
}
