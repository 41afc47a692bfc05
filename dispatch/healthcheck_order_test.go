package dispatch_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caprouter/caprouter/contract"
)

// An agent with many instances that never answer does not delay the health checks of other agents.
func TestRunHealthChecks_HangingAgentDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var many []contract.Instance
		for i := range 100 {
			many = append(many, instance(fmt.Sprintf("hangs%02d", i)))
		}
		hanging := registered("aaa", many...)
		hanging.Health.IntervalS = 1
		d, target := startChecks(t, hanging, checkedAgent(2, instance("down")))
		for _, in := range many {
			target.setHanging(in.Name)
		}
		target.setDown("down", true)
		advance(30 * time.Second)
		if got := d.AgentStatus("a").Breaker; got == "closed" {
			t.Errorf("breaker of the failing agent: got %s, want it opened by health checks", got)
		}
	})
}

// Even if health checks are less frequent than the trials of the breaker, no task is the trial
// before a health check has succeeded.
func TestRunHealthChecks_GuardTheTrialWithLongInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := checkedAgent(60, instance("one"))
		d, target := startChecks(t, a)
		target.setDown("one", true)
		target.answer(unreachable)
		for range 3 {
			d.Send(t.Context(), call(a))
		}
		if got := d.AgentStatus("a").Breaker; got != "open" {
			t.Fatalf("breaker: got %s, want open", got)
		}
		target.calledInstances()
		advance(11 * time.Second)
		d.Send(t.Context(), call(a))
		if n := len(target.calledInstances()); n != 0 {
			t.Errorf("got %d tasks at an instance that fails its health checks, want 0", n)
		}
		target.setDown("one", false)
		target.answer(success)
		advance(13 * time.Second) // less than the interval
		if out := d.Send(t.Context(), call(a)); out.Err != nil {
			t.Errorf("after the recovery: got %+v, want a result", out.Err)
		}
	})
}
