package dispatch_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caprouter/caprouter/contract"
)

// An agent whose many instances never answer does not prevent the probes of others.
func TestRunProbes_HangingAgentDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var many []contract.Instance
		for i := range 100 {
			many = append(many, instance(fmt.Sprintf("hangs%02d", i)))
		}
		hostile := registered("aaa", many...)
		hostile.Health.IntervalS = 1
		d, target := startProbes(t, hostile, probed(2, instance("down")))
		for _, in := range many {
			target.setHanging(in.Name)
		}
		target.setDown("down", true)
		advance(30 * time.Second)
		if got := d.AgentStatus("a").Breaker; got == "closed" {
			t.Errorf("breaker of the failing agent: got %s, want it opened by probes", got)
		}
	})
}
