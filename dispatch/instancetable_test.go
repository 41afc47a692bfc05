package dispatch_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/testkit"
)

func TestSetAgents_SetsStateAndLimitOfEntry(t *testing.T) {
	const defaultLimit = contract.DefaultMaxInFlight
	active, draining, expired := inState(contract.AgentActive), inState(contract.AgentDraining), inState(contract.AgentExpired)
	for _, tc := range []struct {
		name  string
		entry *contract.RegistryEntry
		state contract.AgentState
		limit int
	}{
		{"agent of the file", agent("a"), contract.AgentActive, defaultLimit},
		{"disabled", &contract.RegistryEntry{ID: "a", State: contract.AgentDisabled, MaxInFlight: 5}, contract.AgentDisabled, 5},
		{"one instance", registered("a", instance("i1")), contract.AgentActive, defaultLimit},
		{"active instances", registered("a", instance("i1", withLimit(2)), instance("i2", withLimit(3), active), instance("i3", inState(""))), contract.AgentActive, 5 + defaultLimit},
		{"some inactive", registered("a", instance("i1", withLimit(2)), instance("i2", withLimit(3), draining), instance("i3", expired)), contract.AgentActive, 2},
		{"all draining or expired", registered("a", instance("i1", expired), instance("i2", draining), instance("i3", expired)), contract.AgentDraining, 0},
		{"all expired", registered("a", instance("i1", expired)), contract.AgentExpired, 0},
		{
			"disabled with an active instance", &contract.RegistryEntry{ID: "a", State: contract.AgentDisabled, Instances: []contract.Instance{instance("i1", withLimit(1))}},
			contract.AgentDisabled, 1,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newTestDispatcher(t)
			b.SetAgents([]*contract.RegistryEntry{registered("a", instance("i1"))})
			live := b.SetAgents([]*contract.RegistryEntry{tc.entry})
			if got := live[0]; got.State() != tc.state || got.Limit() != tc.limit {
				t.Errorf("got state %s with limit %d, want %s with %d", got.State(), got.Limit(), tc.state, tc.limit)
			}
			if out := b.send(t, tc.entry); (out.Err == nil) != (tc.state == contract.AgentActive) {
				t.Errorf("Send to a %s agent: got %+v", tc.state, out.Err)
			}
		})
	}
}

// The tasks of an instance that drains or is removed continue, and do not count for the limit of
// the agent's active instances.
func TestSetAgents_KeepsTasksOfRemovedInstance(t *testing.T) {
	for _, tc := range []struct {
		name      string
		instances []contract.Instance
	}{
		{"drains", []contract.Instance{instance("i1", withLimit(2), inState(contract.AgentDraining)), instance("i2", withLimit(2))}},
		{"vanishes", []contract.Instance{instance("i2", withLimit(2))}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newTestDispatcher(t)
			before, after := registered("a", instance("i1", withLimit(2))), registered("a", tc.instances...)
			live := b.SetAgents([]*contract.RegistryEntry{before})
			begun, end := make(chan string, 5), make(chan struct{})
			b.target.do = blockUntil(begun, end)
			var wg sync.WaitGroup
			start := func(a *contract.RegistryEntry) {
				wg.Go(func() {
					if out := b.send(t, a); out.Result == nil {
						t.Errorf("Send: got %+v, want a result", out.Err)
					}
				})
				testkit.Receive(t, begun)
			}
			start(before)
			start(before)
			b.SetAgents([]*contract.RegistryEntry{after})
			if live[0].InFlight() != 0 || live[0].Limit() != 2 || b.AgentStatus("a").InFlight != 2 {
				t.Errorf("got %d of %d in flight, and %d in total; want 0 of 2, and 2", live[0].InFlight(), live[0].Limit(), b.AgentStatus("a").InFlight)
			}
			start(after)
			start(after)
			checkUnavailable(t, b.send(t, after), "a is at its limit of 2 tasks in flight")
			if diff := cmp.Diff([]string{"i1", "i1", "i2", "i2"}, b.target.calledInstances()); diff != "" {
				t.Errorf("instances (-want +got):\n%s", diff)
			}
			b.SetAgents([]*contract.RegistryEntry{registered("a", instance("i1", withLimit(2)), instance("i2", withLimit(2)))})
			if live[0].InFlight() != 4 || live[0].Limit() != 4 {
				t.Errorf("active again: got %d of %d in flight, want 4 of 4", live[0].InFlight(), live[0].Limit())
			}
			b.SetAgents([]*contract.RegistryEntry{after})
			close(end)
			wg.Wait()
			if live[0].InFlight() != 0 || b.ActiveAgents() != 0 {
				t.Errorf("got %d in flight and %d agents with a state at the end, want none", live[0].InFlight(), b.ActiveAgents())
			}
		})
	}
}

// The state of a failed instance is kept as long as it is registered.
func TestSetAgents_BreakerOfInstance(t *testing.T) {
	moved := instance("i1", func(in *contract.Instance) { in.Endpoint.URL = "http://127.0.0.1:2/i1" })
	for _, tc := range []struct {
		name     string
		reloads  []*contract.RegistryEntry
		breaker  string
		remained int // states
	}{
		{"unchanged", []*contract.RegistryEntry{registered("a", instance("i1"))}, resilience.Open, 1},
		{"another instance", []*contract.RegistryEntry{registered("a", instance("i0"), instance("i1"))}, resilience.Closed, 1},
		{"moved", []*contract.RegistryEntry{registered("a", moved)}, resilience.Closed, 0},
		{"replaced", []*contract.RegistryEntry{registered("a", instance("i2"))}, resilience.Closed, 0},
		{"expired and renewed", []*contract.RegistryEntry{
			registered("a", instance("i1", inState(contract.AgentExpired))), registered("a", instance("i1")),
		}, resilience.Open, 1},
		{"removed and added", []*contract.RegistryEntry{registered("b"), registered("a", instance("i1"))}, resilience.Closed, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newTestDispatcher(t)
			a := registered("a", instance("i1"))
			b.SetAgents([]*contract.RegistryEntry{a})
			b.recordFailures(t, a, 3)
			for _, entry := range tc.reloads {
				live := b.SetAgents([]*contract.RegistryEntry{entry})
				if s := b.AgentStatus(entry.ID); (live[0].OpenUntil() != 0) != (s.Breaker == resilience.Open) {
					t.Errorf("got live state open until %d and breaker %s", live[0].OpenUntil(), s.Breaker)
				}
			}
			if got := b.AgentStatus("a").Breaker; got != tc.breaker || b.ActiveAgents() != tc.remained {
				t.Errorf("got breaker %s with %d states, want %s with %d", got, b.ActiveAgents(), tc.breaker, tc.remained)
			}
		})
	}
}

// A failure or a trial of the old address does not count for the new one.
func TestSetAgents_IgnoresOutcomeOfOldAddress(t *testing.T) {
	moved := registered("a", instance("i1", func(in *contract.Instance) { in.Endpoint.URL = "http://127.0.0.1:2/i1" }))
	for _, failures := range []int{2, 3} { // 3 = the next call is a trial
		t.Run(fmt.Sprintf("after %d failures", failures), func(t *testing.T) {
			b := newTestDispatcher(t)
			a := registered("a", instance("i1"))
			b.SetAgents([]*contract.RegistryEntry{a})
			b.recordFailures(t, a, failures)
			b.clock.Advance(10 * time.Second)
			b.target.do = func(context.Context, dispatch.Call) dispatch.Outcome {
				b.SetAgents([]*contract.RegistryEntry{moved})
				return unreachable
			}
			b.send(t, a)
			if got := b.AgentStatus("a").Breaker; got != resilience.Closed {
				t.Errorf("got breaker %s after a failure at the old address, want closed", got)
			}
			b.recordFailures(t, moved, 2)
			if got := b.AgentStatus("a").Breaker; got != resilience.Closed {
				t.Errorf("got breaker %s after two failures at the new address, want closed", got)
			}
		})
	}
}

// instanceModel drives a Dispatcher with tasks that end when the test finishes them.
type instanceModel struct {
	*testDispatcher
	t       *testing.T
	entries map[string]*contract.RegistryEntry // in force
	begun   chan *runningTask
	ended   chan endedTask
	running []*runningTask
}

// runningTask is a task at an instance.
type runningTask struct {
	agent, instance string
	finish          chan dispatch.Outcome
	before          []string // instances that had the task before
}

type endedTask struct {
	agent string
	out   dispatch.Outcome
}

func newInstanceModel(t *testing.T) *instanceModel {
	m := &instanceModel{testDispatcher: newTestDispatcher(t), t: t, begun: make(chan *runningTask), ended: make(chan endedTask)}
	m.target.do = func(_ context.Context, c dispatch.Call) dispatch.Outcome {
		task := &runningTask{agent: c.Agent.ID, instance: calledInstance(c), finish: make(chan dispatch.Outcome, 1)}
		m.begun <- task
		return <-task.finish
	}
	return m
}

// register installs random registrations of two agents.
func (m *instanceModel) register(rt *rapid.T) {
	m.entries = map[string]*contract.RegistryEntry{}
	var agents []*contract.RegistryEntry
	for _, id := range []string{"a", "b"} {
		if rapid.IntRange(0, 7).Draw(rt, "registered") == 0 {
			continue
		}
		entry := registered(id)
		for _, name := range []string{"i1", "i2", "i3"} {
			if rapid.IntRange(0, 3).Draw(rt, "instance") == 0 {
				continue
			}
			state := rapid.SampledFrom([]contract.AgentState{"active", "active", "draining", "expired"}).Draw(rt, "state")
			port := rapid.IntRange(1, 2).Draw(rt, "port")
			entry.Instances = append(entry.Instances, instance(name, inState(state), withLimit(rapid.IntRange(1, 3).Draw(rt, "limit")),
				func(in *contract.Instance) { in.Endpoint.URL = fmt.Sprintf("http://127.0.0.1:%d/%s", port, name) }))
		}
		if len(entry.Instances) > 0 {
			m.entries[id] = entry
			agents = append(agents, entry)
		}
	}
	m.SetAgents(agents)
}

// send starts a task and waits until an instance gets it, or all reject it.
func (m *instanceModel) send(rt *rapid.T, entry *contract.RegistryEntry) {
	go func() { m.ended <- endedTask{entry.ID, m.Send(context.Background(), call(entry))} }()
	m.awaitStep(rt, nil)
}

// finish ends the task at its instance and waits until another instance gets it, or the task has
// ended.
func (m *instanceModel) finish(rt *rapid.T, i int, out dispatch.Outcome) {
	task := m.running[i]
	m.running = append(m.running[:i], m.running[i+1:]...)
	task.finish <- out
	m.awaitStep(rt, task)
}

// awaitStep waits until a task begins or ends. from is the previous instance of the
// task.
func (m *instanceModel) awaitStep(rt *rapid.T, from *runningTask) {
	select {
	case task := <-m.begun:
		m.running = append(m.running, task)
		in := m.currentInstance(task.agent, task.instance)
		if in == nil || in.State != contract.AgentActive {
			rt.Fatalf("got a task at %s of %s, which is %+v", task.instance, task.agent, in)
		}
		if n := m.inFlight(task.agent, task.instance); n > in.MaxInFlight {
			rt.Fatalf("got a task at %s of %s beyond its limit of %d", task.instance, task.agent, in.MaxInFlight)
		}
		if from != nil {
			task.before = append(from.before, from.instance)
		}
		if slices.Contains(task.before, task.instance) {
			rt.Fatalf("got the same task twice at %s of %s", task.instance, task.agent)
		}
	case task := <-m.ended:
		if from == nil && task.out.Err == nil {
			rt.Fatalf("got a task ended with %+v before an instance got it", task.out)
		}
		if from == nil && m.canTakeTask(task.agent) {
			rt.Fatalf("got no task at an instance of %s: %s; status %+v", task.agent, task.out.Err.Detail, m.AgentStatus(task.agent))
		}
	case <-time.After(testkit.Patience):
		m.t.Fatal("got no task that began or ended")
	}
}

func (m *instanceModel) currentInstance(agentID, name string) *contract.Instance {
	if entry := m.entries[agentID]; entry != nil {
		for i := range entry.Instances {
			if entry.Instances[i].Name == name {
				return &entry.Instances[i]
			}
		}
	}
	return nil
}

// inFlight counts the tasks at the instance, "" = at all instances.
func (m *instanceModel) inFlight(agentID, name string) int {
	n := 0
	for _, task := range m.running {
		if task.agent == agentID && (name == "" || task.instance == name) {
			n++
		}
	}
	return n
}

// canTakeTask reports whether an instance has a closed breaker and is below its limit,
// unless a limit was lowered below the tasks in flight.
func (m *instanceModel) canTakeTask(agentID string) bool {
	can := false
	for _, s := range m.AgentStatus(agentID).Instances {
		active := m.currentInstance(agentID, s.Name).State == contract.AgentActive
		if active && s.InFlight > s.MaxInFlight {
			return false
		}
		can = can || active && s.Breaker == resilience.Closed && s.InFlight < s.MaxInFlight
	}
	return can
}

func (m *instanceModel) checkCounts(rt *rapid.T) {
	for id, entry := range m.entries {
		s := m.AgentStatus(id)
		if want := m.inFlight(id, ""); s.InFlight != want {
			rt.Fatalf("%s: got %d tasks in flight, want %d", id, s.InFlight, want)
		}
		for i, in := range entry.Instances {
			if got, want := s.Instances[i], m.inFlight(id, in.Name); got.Name != in.Name || got.InFlight != want {
				rt.Fatalf("status of %s of %s: got %+v, want %d in flight", in.Name, id, got, want)
			}
		}
	}
}

// For any sequence of registrations, drains and failures: only active instances below their limits
// get tasks, and at the end none is in flight.
func TestDispatcher_KeepsInstanceInvariants(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := newInstanceModel(t)
		m.register(rt)
		known := map[string]*contract.RegistryEntry{"a": registered("a", instance("i1")), "b": registered("b", instance("i3"))}
		defer func() {
			for len(m.running) > 0 { // also after a failure, so that no goroutine remains
				m.running[0].finish <- success
				m.running = m.running[1:]
				testkit.Receive(t, m.ended)
			}
		}()
		rt.Repeat(map[string]func(*rapid.T){
			"register": m.register,
			"send": func(rt *rapid.T) {
				id := rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "agent")
				entry := m.entries[id]
				if entry == nil || rapid.Bool().Draw(rt, "outdated") {
					entry = known[id]
				}
				known[id] = entry
				m.send(rt, entry)
			},
			"finish": func(rt *rapid.T) {
				if len(m.running) == 0 {
					rt.Skip("no task is running")
				}
				out := rapid.SampledFrom([]dispatch.Outcome{success, unreachable, unreachable, cancelledTask}).Draw(rt, "outcome")
				m.finish(rt, rapid.IntRange(0, len(m.running)-1).Draw(rt, "task"), out)
			},
			"wait": func(rt *rapid.T) {
				m.clock.Advance(time.Duration(rapid.IntRange(1, 11).Draw(rt, "seconds")) * time.Second)
			},
			"": m.checkCounts,
		})
		for len(m.running) > 0 {
			m.finish(rt, 0, success)
		}
		live := m.SetAgents([]*contract.RegistryEntry{registered("a", instance("i9")), registered("b", instance("i9"))})
		for _, s := range live {
			if s.InFlight() != 0 || s.OpenUntil() != 0 {
				rt.Fatalf("got %d in flight and open until %d at the end, want neither", s.InFlight(), s.OpenUntil())
			}
		}
		if got := m.ActiveAgents(); got != 0 {
			rt.Fatalf("got %d agents with a state at the end, want none", got)
		}
	})
}

func TestDispatcher_KeepsLimitsOfInstancesUnderConcurrency(t *testing.T) {
	const limit = 2
	b := newTestDispatcher(t)
	registrations := make([]*contract.RegistryEntry, 3)
	for i := range registrations {
		instances := []contract.Instance{instance("i0", withLimit(limit)), instance("i1", withLimit(limit)), instance("i2", withLimit(limit))}
		instances[i].State = []contract.AgentState{contract.AgentActive, contract.AgentDraining, contract.AgentExpired}[i]
		registrations[i] = registered("a", instances...)
	}
	live := b.SetAgents(registrations[:1])
	busy := map[string]*atomic.Int64{"i0": {}, "i1": {}, "i2": {}}
	var turn atomic.Int64
	b.target.do = func(_ context.Context, c dispatch.Call) dispatch.Outcome {
		n := busy[calledInstance(c)]
		defer n.Add(-1)
		if got := n.Add(1); got > limit {
			t.Errorf("got %d tasks at %s, want at most %d", got, calledInstance(c), limit)
		}
		return []dispatch.Outcome{success, unreachable, cancelledTask, success}[turn.Add(1)%4]
	}
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := range 200 {
				b.send(t, registrations[j%3])
				if j%20 == i {
					b.SetAgents([]*contract.RegistryEntry{registrations[(i+j)%3]})
					b.AgentStatus("a")
					b.OpenBreakers()
					b.clock.Advance(time.Second)
				}
			}
		})
	}
	wg.Wait()
	b.SetAgents(nil)
	if live[0].InFlight() != 0 || b.ActiveAgents() != 0 {
		t.Errorf("got %d in flight and %d agents with a state at the end, want none", live[0].InFlight(), b.ActiveAgents())
	}
}
