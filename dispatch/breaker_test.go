package dispatch_test

import (
	"context"
	"encoding/json"
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

func TestDispatcher_BreakerOpensAndCloses(t *testing.T) {
	b := newTestDispatcher(t)
	a, other := agent("a"), agent("other")
	live := b.SetAgents([]*contract.RegistryEntry{a, other})
	b.recordFailures(t, a, 2)
	if s := b.AgentStatus("a"); s.Breaker != resilience.Closed || live[0].OpenUntil() != 0 {
		t.Fatalf("after two failures: got %+v, open until %d; want closed", s, live[0].OpenUntil())
	}
	b.recordFailures(t, a, 1)
	until := b.clock.Now().Add(10 * time.Second)
	want := dispatch.AgentStatus{Breaker: resilience.Open, OpenUntil: until, State: contract.AgentActive}
	if diff := cmp.Diff(want, b.AgentStatus("a")); diff != "" {
		t.Errorf("status after three failures (-want +got):\n%s", diff)
	}
	if got := live[0].OpenUntil(); got != until.UnixMilli() {
		t.Errorf("live state: got open until %d, want %d", got, until.UnixMilli())
	}
	if got := b.OpenBreakers(); got != 1 {
		t.Errorf("OpenBreakers = %d, want 1", got)
	}
	before := b.target.count()
	checkUnavailable(t, b.send(t, a), "a has failed repeatedly and gets no tasks until 2026-01-02T15:04:15Z")
	if got := b.send(t, other); got.Err != nil {
		t.Errorf("another agent: got %+v, want a result", got.Err)
	}
	if got := b.target.count() - before; got != 1 {
		t.Errorf("got %d calls while open, want the other agent's one", got)
	}

	b.clock.Advance(10 * time.Second)
	if s := b.AgentStatus("a"); s.Breaker != resilience.HalfOpen || b.OpenBreakers() != 1 {
		t.Errorf("after the open period: got %+v and %d open, want half open and 1, because nothing has succeeded", s, b.OpenBreakers())
	}
	if got := b.send(t, a); got.Err != nil {
		t.Fatalf("trial: got %+v, want a result", got.Err)
	}
	if s := b.AgentStatus("a"); s.Breaker != resilience.Closed || live[0].OpenUntil() != 0 || b.OpenBreakers() != 0 {
		t.Errorf("after a successful trial: got %+v, open until %d, %d open; want closed", s, live[0].OpenUntil(), b.OpenBreakers())
	}
}

func TestDispatcher_TrialDecidesBreakerState(t *testing.T) {
	for _, tc := range []struct {
		name string
		out  dispatch.Outcome
		want string
	}{
		{"success", success, resilience.Closed},
		{"failure", unreachable, resilience.Open},
		{"no result for the breaker", cancelledTask, resilience.HalfOpen},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newTestDispatcher(t)
			a := agent("a")
			live := b.SetAgents([]*contract.RegistryEntry{a})
			b.recordFailures(t, a, 3)
			b.clock.Advance(10 * time.Second)
			begun, end := make(chan string), make(chan struct{})
			b.target.do = func(context.Context, dispatch.Call) dispatch.Outcome {
				begun <- ""
				<-end
				return tc.out
			}
			var wg sync.WaitGroup
			wg.Go(func() { b.send(t, a) })
			testkit.Receive(t, begun)
			if now := b.clock.Now().UnixMilli(); live[0].OpenUntil() <= now {
				t.Error("got an agent whose trial is in flight available to the matcher, want it excluded")
			}
			checkUnavailable(t, b.send(t, a), "a has failed repeatedly")
			close(end)
			wg.Wait()
			if s := b.AgentStatus("a"); s.Breaker != tc.want {
				t.Errorf("after the trial: got %s, want %s", s.Breaker, tc.want)
			}
			if open := live[0].OpenUntil() > b.clock.Now().UnixMilli(); open != (tc.want == resilience.Open) {
				t.Errorf("live state: got open %v, want %v", open, !open)
			}
		})
	}
}

// A breaker that opens, and the success that closes it, are one line each; failed trials are none.
func TestDispatcher_LogsBreakerOnce(t *testing.T) {
	var log testkit.LogBuffer
	b := newTestDispatcher(t, func(c *dispatch.Config) { c.Logger = log.Logger() })
	a := agent("a")
	b.SetAgents([]*contract.RegistryEntry{a})
	b.recordFailures(t, a, 3)
	for range 5 {
		b.clock.Advance(10 * time.Second)
		b.recordFailures(t, a, 1)
	}
	b.clock.Advance(10 * time.Second)
	b.send(t, a)
	b.send(t, a)
	checkBreakerLog(t, &log, "WARN circuit breaker opened: a ", "INFO circuit breaker closed: a ")
}

func checkBreakerLog(t *testing.T, log *testkit.LogBuffer, want ...string) {
	t.Helper()
	var got []string
	for line := range strings.Lines(log.String()) {
		var entry struct{ Level, Msg, Agent, Instance, Because string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		got = append(got, entry.Level+" "+entry.Msg+": "+entry.Agent+entry.Instance+" "+entry.Because)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

// A reload that replaces the circuit breaker of an agent, or removes the agent, is logged, and
// the agent no longer counts as one with an open breaker.
func TestDispatcher_ReloadClosesBreaker(t *testing.T) {
	moved := agent("a")
	moved.Endpoint.URL = "http://127.0.0.1:1/moved"
	for name, tc := range map[string]struct {
		agents  []*contract.RegistryEntry
		because string
	}{
		"endpoint changed": {[]*contract.RegistryEntry{moved}, "its endpoint has changed"},
		"agent removed":    {nil, "it was removed"},
	} {
		for _, inFlight := range []bool{false, true} {
			var log testkit.LogBuffer
			b := newTestDispatcher(t, func(c *dispatch.Config) { c.Logger = log.Logger() })
			a := agent("a")
			b.SetAgents([]*contract.RegistryEntry{a})
			begun, end := make(chan string, 1), make(chan struct{})
			var wg sync.WaitGroup
			if inFlight {
				b.target.do = blockUntil(begun, end)
				wg.Go(func() { b.send(t, a) })
				testkit.Receive(t, begun)
			}
			b.recordFailures(t, a, 3)
			for range 2 {
				b.SetAgents(tc.agents)
			}
			if got := b.OpenBreakers(); got != 0 {
				t.Errorf("%s, in flight %t: got %d open breakers, want 0", name, inFlight, got)
			}
			close(end)
			wg.Wait()
			checkBreakerLog(t, &log, "WARN circuit breaker opened: a ", "INFO circuit breaker closed: a "+tc.because)
		}
	}
}

// If a trial takes longer than the open period, the matcher can choose the agent again, but the
// breaker admits no second trial.
func TestDispatcher_AdmitsNoSecondTrial(t *testing.T) {
	b := newTestDispatcher(t)
	a := agent("a")
	b.SetAgents([]*contract.RegistryEntry{a})
	b.recordFailures(t, a, 3)
	b.clock.Advance(10 * time.Second)
	begun, end := make(chan string, 1), make(chan struct{})
	b.target.do = blockUntil(begun, end)
	var wg sync.WaitGroup
	wg.Go(func() { b.send(t, a) })
	testkit.Receive(t, begun)
	b.clock.Advance(time.Minute)
	checkUnavailable(t, b.send(t, a), "a has failed repeatedly and is being tried again with another task")
	close(end)
	wg.Wait()
}

func TestDispatcher_ValidAnswersDoNotOpenBreaker(t *testing.T) {
	failure := dispatch.Outcome{Result: &contract.Result{Status: contract.ResultFailure}, Attempts: 1, Health: dispatch.HealthGood}
	refused := dispatch.Outcome{Err: &contract.TaskError{Code: contract.TaskAgentUnavailable}, Attempts: 1, Health: dispatch.HealthGood}
	for name, out := range map[string]dispatch.Outcome{"a Result with status failure": failure, "a refusal": refused, "a cancellation": cancelledTask} {
		t.Run(name, func(t *testing.T) {
			b := newTestDispatcher(t)
			b.target.answer(out)
			for range 20 {
				b.send(t, agent("a"))
			}
			if s := b.AgentStatus("a"); s.Breaker != resilience.Closed {
				t.Errorf("got breaker %s after twenty calls, want closed", s.Breaker)
			}
		})
	}
}
