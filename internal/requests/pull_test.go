package requests

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/contract"
)

// newPulledRecord returns a running record with a task that the agent "costs" pulls.
func newPulledRecord(t *testing.T, idempotent bool) *Record {
	t.Helper()
	r := inState(t, StateRunning)
	must(t, r.Send(Task{
		ID: "p", AgentID: "costs", Part: 1, SentAt: now, Idempotent: idempotent,
		Pull: &Pull{BeginBy: now.Add(20 * time.Second), DueBy: now.Add(10 * time.Minute)},
	}))
	return r
}

func TestRecord_LeaseFollowsPhases(t *testing.T) {
	at := func(s int) time.Time { return now.Add(time.Duration(s) * time.Second) }
	for _, idempotent := range []bool{false, true} {
		r := newPulledRecord(t, idempotent)
		task := r.FindTask("p")
		if task.State != TaskWaiting {
			t.Errorf("got state %s, want waiting from the start", task.State)
		}
		if err := r.Lease("p", "quality", "i", 30, now); !errors.Is(err, ErrUnknownTask) {
			t.Errorf("another agent: got %v, want ErrUnknownTask", err)
		}
		if err := r.Lease("p", "costs", "i", 30, at(20)); !errors.Is(err, ErrNotLeasable) {
			t.Errorf("after the time to begin: got %v, want ErrNotLeasable", err)
		}
		if phase, _ := task.PhaseAt(at(20)); phase != PullMissed {
			t.Errorf("got phase %d, want missed", phase)
		}
		must(t, r.Lease("p", "costs", "i", 30, at(19)))
		if err := r.Lease("p", "costs", "j", 30, at(48)); !errors.Is(err, ErrNotLeasable) {
			t.Errorf("while leased: got %v, want ErrNotLeasable", err)
		}
		must(t, r.Renew("p", "costs", 1, at(48)))
		if phase, until := r.FindTask("p").PhaseAt(at(77)); phase != PullLeased || !until.Equal(at(78)) {
			t.Errorf("got phase %d until %s, want the renewed lease", phase, until)
		}
		for _, lease := range []int{0, 2} {
			if err := r.Renew("p", "costs", lease, at(50)); !errors.Is(err, ErrNotLeasable) {
				t.Errorf("renew lease %d: got %v, want ErrNotLeasable", lease, err)
			}
		}
		err := r.Lease("p", "costs", "j", 30, at(78))
		if !idempotent {
			if phase, _ := r.FindTask("p").PhaseAt(at(78)); phase != PullLost || !errors.Is(err, ErrNotLeasable) {
				t.Errorf("expired, not idempotent: got phase %d and %v, want it lost", phase, err)
			}
			continue
		}
		must(t, err)
		if task := r.FindTask("p"); task.Attempts != 2 || task.Pull.Holder != "j" {
			t.Errorf("got attempt %d at %s, want 2 at j", task.Attempts, task.Pull.Holder)
		}
		for n := 3; n <= contract.MaxTaskLeases; n++ {
			must(t, r.Lease("p", "costs", "j", 30, at(78+30*(n-2))))
		}
		if phase, _ := r.FindTask("p").PhaseAt(at(500)); phase != PullExhausted {
			t.Errorf("after %d leases: got phase %d, want exhausted", contract.MaxTaskLeases, phase)
		}
		if err := r.Lease("p", "costs", "j", 30, at(500)); !errors.Is(err, ErrNotLeasable) {
			t.Errorf("after %d leases: got %v, want ErrNotLeasable", contract.MaxTaskLeases, err)
		}
	}
}

func TestRecord_FinishIsUncertainAfterLease(t *testing.T) {
	for _, tc := range []struct {
		leased, idempotent, want bool
	}{{false, false, false}, {true, false, true}, {true, true, false}} {
		r := newPulledRecord(t, tc.idempotent)
		if tc.leased {
			must(t, r.Lease("p", "costs", "i", 30, now))
		}
		must(t, r.Finish("p", failed(contract.TaskAgentUnavailable)))
		task := r.FindTask("p")
		if unknown := task.Err.Code == contract.TaskOutcomeUnknown; task.Uncertain != tc.want || unknown != tc.want {
			t.Errorf("%+v: got uncertain %v, code %s", tc, task.Uncertain, task.Err.Code)
		}
		if err := r.Renew("p", "costs", 1, now); !errors.Is(err, ErrNotLeasable) {
			t.Errorf("%+v: renew after the end: got %v, want ErrNotLeasable", tc, err)
		}
	}
}

// For any order in which workers lease a task and its owner, with an older record, gives it up: a
// non-idempotent agent gets it once, and no other agent gets it afterwards.
func TestRecord_PulledTaskIsExecutedOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		idempotent := rapid.Bool().Draw(rt, "idempotent")
		r := inState(t, StateRunning)
		must(t, r.Finish("t1", failed(contract.TaskAgentUnavailable)))
		clock, seen := now, now
		offer := func(id, agent string) error {
			return r.Send(Task{ID: id, AgentID: agent, Part: 0, SentAt: clock, Idempotent: idempotent, Pull: &Pull{
				BeginBy: clock.Add(5 * time.Second), DueBy: clock.Add(time.Minute),
			}})
		}
		must(t, offer("p", "quality"))
		leases := 0
		rt.Repeat(map[string]func(*rapid.T){
			"time": func(rt *rapid.T) {
				clock = clock.Add(time.Duration(rapid.IntRange(0, 8).Draw(rt, "s")) * time.Second)
			},
			"owner reads": func(*rapid.T) { seen = clock },
			"lease": func(rt *rapid.T) {
				// The clock of the process that leases may be late.
				late := time.Duration(rapid.IntRange(0, 3).Draw(rt, "late")) * time.Second
				if r.Lease("p", "quality", fmt.Sprint(leases), 3, clock.Add(-late)) == nil {
					leases++
				}
			},
			"renew":  func(*rapid.T) { _ = r.Renew("p", "quality", leases, clock) },
			"result": func(*rapid.T) { _, _ = r.Deliver("p", "quality", result("done")) },
			"give up": func(*rapid.T) {
				if phase, _ := r.FindTask("p").PhaseAt(seen); phase == PullMissed || phase == PullLost {
					_ = r.Finish("p", failed(contract.TaskAgentUnavailable))
				}
			},
			"standby": func(rt *rapid.T) {
				if offer("s", "second") == nil && leases > 0 && !idempotent {
					rt.Fatalf("got the task at the standby after %d leases: %+v", leases, r.Tasks)
				}
			},
			"": func(rt *rapid.T) {
				if limit := map[bool]int{false: 1, true: contract.MaxTaskLeases}[idempotent]; leases > limit {
					rt.Fatalf("got %d leases, want at most %d", leases, limit)
				}
				if data, err := encodeRecord(r.ID, r); err != nil {
					rt.Fatal(err)
				} else if _, err := decodeRecord(r.ID, data); err != nil {
					rt.Fatal(err)
				}
			},
		})
	})
}
