package dispatch_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/testkit"
)

// If one of two instances is down, every task succeeds, and after its breaker has opened, only one
// task at a time is sent to it.
func TestDispatcher_OneDeadInstance(t *testing.T) {
	b := newTestDispatcher(t)
	a := registered("a", instance("dead"), instance("well"))
	live := b.SetAgents([]*contract.RegistryEntry{a})
	b.target.answerBy(map[string]dispatch.Outcome{"dead": unreachable})
	attemptsAtDead := func(tasks int) int {
		t.Helper()
		n := 0
		for range tasks {
			if out := b.send(t, a); out.Result == nil {
				t.Fatalf("Send: got %+v, want a result", out.Err)
			}
		}
		for _, name := range b.target.calledInstances() {
			if name == "dead" {
				n++
			}
		}
		return n
	}
	if got := attemptsAtDead(20); got != 3 {
		t.Errorf("got %d of 20 tasks at the dead instance, want 3 until its breaker opened", got)
	}
	until := b.clock.Now().Add(10 * time.Second)
	want := dispatch.AgentStatus{State: contract.AgentDegraded, Breaker: resilience.Closed, Instances: []dispatch.InstanceStatus{
		{Name: "dead", Breaker: resilience.Open, OpenUntil: until, MaxInFlight: contract.DefaultMaxInFlight},
		{Name: "well", Breaker: resilience.Closed, MaxInFlight: contract.DefaultMaxInFlight},
	}}
	if diff := cmp.Diff(want, b.AgentStatus("a")); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	if live[0].OpenUntil() != 0 || b.OpenBreakers() != 0 {
		t.Errorf("got open until %d, %d open breakers; want none, because one instance is available", live[0].OpenUntil(), b.OpenBreakers())
	}
	b.clock.Advance(10*time.Second - 1)
	if got := attemptsAtDead(20); got != 0 {
		t.Errorf("got %d tasks at the dead instance while its breaker was open, want 0", got)
	}
	b.clock.Advance(1)
	if got := attemptsAtDead(20); got != 1 {
		t.Errorf("got %d tasks at the dead instance after its breaker was open, want 1 trial", got)
	}
	b.target.answer(success)
	b.clock.Advance(10 * time.Second)
	if got := attemptsAtDead(20); got != 10 {
		t.Errorf("got %d of 20 tasks at the recovered instance, want half of them", got)
	}
	if s := b.AgentStatus("a"); s.State != contract.AgentActive || b.ActiveAgents() != 0 {
		t.Errorf("after the recovery: got state %s, %d agents with a state; want active and 0", s.State, b.ActiveAgents())
	}
}

func TestDispatcher_AllInstancesDead(t *testing.T) {
	b := newTestDispatcher(t)
	a := registered("a", instance("i1"), instance("i2"))
	live := b.SetAgents([]*contract.RegistryEntry{a})
	b.target.answerBy(map[string]dispatch.Outcome{"i1": unreachable, "i2": unreachable})
	out := b.send(t, a)
	if out.Err == nil || out.Err.Code != contract.TaskAgentUnavailable || out.Attempts != 4 {
		t.Errorf("Send: got %+v with %+v, want agent_unavailable after 2 attempts at each instance", out, out.Err)
	}
	if diff := cmp.Diff([]string{"i1", "i2"}, b.target.calledInstances()); diff != "" {
		t.Errorf("instances (-want +got):\n%s", diff)
	}
	b.send(t, a)
	until := b.clock.Now().Add(10 * time.Second)
	b.target.answerBy(map[string]dispatch.Outcome{"i1": unreachable, "i2": cancelledTask})
	for range 2 { // the third failure of i1, which opens its breaker
		b.send(t, a)
	}
	b.clock.Advance(time.Second) // i2 follows
	b.target.answerBy(map[string]dispatch.Outcome{"i1": unreachable, "i2": unreachable})
	b.send(t, a)
	b.target.calledInstances()

	checkUnavailable(t, b.send(t, a), "a has failed repeatedly and gets no tasks until 2026-01-02T15:04:15Z")
	if got := b.target.calledInstances(); len(got) != 0 {
		t.Errorf("got calls of %v while all breakers were open, want none", got)
	}
	s := b.AgentStatus("a")
	if s.State != contract.AgentActive || s.Breaker != resilience.Open || !s.OpenUntil.Equal(until) || live[0].OpenUntil() != until.UnixMilli() {
		t.Errorf("got status %+v, live state open until %d; want open until %v, when the first instance can be tried", s, live[0].OpenUntil(), until)
	}
	if got := b.OpenBreakers(); got != 1 {
		t.Errorf("OpenBreakers = %d, want 1 agent", got)
	}
	b.clock.Advance(9 * time.Second)
	if s := b.AgentStatus("a"); s.Breaker != resilience.HalfOpen {
		t.Errorf("got breaker %s when the first instance can be tried, want half open", s.Breaker)
	}
}

func TestDispatcher_TriesNextInstanceOnlyIfUnexecuted(t *testing.T) {
	refused := dispatch.Outcome{Err: &contract.TaskError{Code: contract.TaskAgentUnavailable}, Attempts: 1, Health: dispatch.HealthGood}
	maybe := dispatch.Outcome{Err: &contract.TaskError{Code: contract.TaskAgentUnavailable}, Attempts: 1, MayHaveExecuted: true}
	late := dispatch.Outcome{Err: &contract.TaskError{Code: contract.TaskDeadlineExceeded}, Attempts: 1}
	failure := dispatch.Outcome{Result: &contract.Result{Status: contract.ResultFailure}, Attempts: 1, Health: dispatch.HealthGood}
	for _, tc := range []struct {
		name  string
		first dispatch.Outcome
		next  bool
	}{
		{"unreachable", unreachable, true},
		{"refused", refused, true},
		{"may have executed it", maybe, false},
		{"deadline exceeded", late, false},
		{"cancelled", cancelledTask, false},
		{"result", success, false},
		{"result with status failure", failure, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newTestDispatcher(t)
			a := registered("a", instance("i1"), instance("i2"), instance("i3", inState(contract.AgentDraining)))
			b.SetAgents([]*contract.RegistryEntry{a})
			b.target.answerBy(map[string]dispatch.Outcome{"i1": tc.first})
			c := call(a)
			c.Standbys = 1
			out := b.Send(t.Context(), c)
			standbys := make([]int, 0, 2)
			for _, c := range b.target.calls {
				standbys = append(standbys, c.Standbys)
			}
			want, wantStandbys, attempts := []string{"i1"}, []int{2}, tc.first.Attempts
			if tc.next {
				want, wantStandbys, attempts = []string{"i1", "i2"}, []int{2, 1}, attempts+1
			}
			if diff := cmp.Diff(want, b.target.calledInstances()); diff != "" {
				t.Errorf("instances (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(wantStandbys, standbys); diff != "" {
				t.Errorf("standbys, which include another instance (-want +got):\n%s", diff)
			}
			if out.Attempts != attempts || (out.Result == nil) != (!tc.next && tc.first.Result == nil) {
				t.Errorf("got %+v, want %d attempts and the result of the last instance", out, attempts)
			}
		})
	}
	t.Run("caller disconnected", func(t *testing.T) {
		b := newTestDispatcher(t)
		a := registered("a", instance("i1"), instance("i2"))
		b.SetAgents([]*contract.RegistryEntry{a})
		ctx, cancel := context.WithCancel(t.Context())
		b.target.do = func(context.Context, dispatch.Call) dispatch.Outcome {
			cancel()
			return unreachable
		}
		if b.Send(ctx, call(a)); b.target.count() != 1 {
			t.Errorf("got %d instances called, want 1", b.target.count())
		}
	})
	t.Run("next instance at its limit", func(t *testing.T) {
		b := newTestDispatcher(t)
		a := registered("a", instance("i1", withLimit(1)), instance("i2", withLimit(1)))
		b.SetAgents([]*contract.RegistryEntry{a})
		begun, end := make(chan string, 1), make(chan struct{})
		b.target.do = blockUntil(begun, end)
		var wg sync.WaitGroup
		wg.Go(func() { b.send(t, a) }) // at i1
		testkit.Receive(t, begun)
		b.target.answer(unreachable)
		if out := b.send(t, a); out.Err == nil || out.Err.Detail != unreachable.Err.Detail || out.Attempts != unreachable.Attempts {
			t.Errorf("Send: got %+v with %+v, want the outcome of the only free instance", out, out.Err)
		}
		close(end)
		wg.Wait()
		if got := b.AgentStatus("a").InFlight; got != 0 {
			t.Errorf("got %d tasks in flight at the end, want 0", got)
		}
	})
}

// A task is recorded once, and checked again before each send.
func TestDispatcher_ChecksAgainBeforeNextInstance(t *testing.T) {
	for _, tc := range []struct {
		name     string
		refuseAt int // number of the check; 0 = none
		want     []string
		code     contract.TaskCode // "" = a result
		attempts int
	}{
		{"admitted", 0, []string{"check", "record", "i1", "check", "i2"}, "", 3},
		{"rejected before the first", 1, []string{"check"}, contract.TaskAgentUnavailable, 0},
		{"rejected before the second", 2, []string{"check", "record", "i1", "check"}, contract.TaskAgentUnavailable, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newTestDispatcher(t)
			a := registered("a", instance("i1"), instance("i2"))
			live := b.SetAgents([]*contract.RegistryEntry{a})
			var events []string
			checks := 0
			b.target.answerBy(map[string]dispatch.Outcome{"i1": unreachable})
			do := b.target.do
			b.target.do = func(ctx context.Context, c dispatch.Call) dispatch.Outcome {
				events = append(events, calledInstance(c))
				return do(ctx, c)
			}
			c := call(a)
			c.Recheck = func() string {
				events = append(events, "check")
				if checks++; checks == tc.refuseAt {
					return "a is not registered any more"
				}
				return ""
			}
			c.BeforeSend = func(context.Context) error {
				events = append(events, "record")
				return nil
			}
			out := b.Send(t.Context(), c)
			if diff := cmp.Diff(tc.want, events); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			var code contract.TaskCode
			if out.Err != nil {
				code = out.Err.Code
			}
			if code != tc.code || out.Attempts != tc.attempts || live[0].InFlight() != 0 {
				t.Errorf("got %+v with %+v, want code %q after %d attempts", out, out.Err, tc.code, tc.attempts)
			}
		})
	}
	t.Run("not recorded", func(t *testing.T) {
		b := newTestDispatcher(t)
		a := registered("a", instance("i1"), instance("i2"))
		b.SetAgents([]*contract.RegistryEntry{a})
		c, records := call(a), 0
		c.BeforeSend = func(context.Context) error { records++; return errors.New("disk full") }
		checkUnavailable(t, b.Send(t.Context(), c), "could not be recorded")
		if records != 1 || b.target.count() != 0 {
			t.Errorf("got %d records and %d calls, want one try to record and no call", records, b.target.count())
		}
	})
}

// The current registry decides which instances get tasks, not the entry that the caller used at
// first.
func TestDispatcher_UsesInstancesOfCurrentRegistry(t *testing.T) {
	old := registered("a", instance("i1"), instance("i2"))
	file := agent("a")
	for _, tc := range []struct {
		name    string
		inForce []*contract.RegistryEntry
		call    *contract.RegistryEntry
		want    string // the instance or the error
	}{
		{"drained", []*contract.RegistryEntry{registered("a", instance("i1", inState(contract.AgentDraining)), instance("i2"))}, old, "i2"},
		{"expired", []*contract.RegistryEntry{registered("a", instance("i1", inState(contract.AgentExpired)), instance("i2"))}, old, "i2"},
		{"replaced", []*contract.RegistryEntry{registered("a", instance("i3"))}, old, "i3"},
		{"unregistered", nil, old, "a has no active instance"},
		{"moved to the file", []*contract.RegistryEntry{file}, old, "a has no active instance"},
		{"moved from the file", []*contract.RegistryEntry{old}, file, "127.0.0.1:1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newTestDispatcher(t)
			b.SetAgents(tc.inForce)
			out := b.send(t, tc.call)
			if out.Err != nil {
				checkUnavailable(t, out, tc.want)
			} else if got := strings.TrimSuffix(calledInstance(b.target.calls[0]), "/"); got != tc.want {
				t.Errorf("got call of %s, want %s", got, tc.want)
			}
			if s := b.AgentStatus("a"); s.InFlight != 0 || b.ActiveAgents() != 0 {
				t.Errorf("got %d in flight and %d agents with a state at the end, want none", s.InFlight, b.ActiveAgents())
			}
		})
	}
}
