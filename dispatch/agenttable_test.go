package dispatch_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/matcher"
)

func TestSetAgents_KeepsStatesInOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := newTestDispatcher(t)
		known := map[string]*matcher.LiveState{}
		for range rapid.IntRange(1, 6).Draw(rt, "reloads") {
			ids := rapid.SliceOfNDistinct(rapid.IntRange(0, 12), 0, 12, rapid.ID[int]).Draw(rt, "agents")
			agents := make([]*contract.RegistryEntry, len(ids))
			for i, id := range ids { // in any order, because the index has its own
				agents[i] = agent(fmt.Sprintf("a%d", id))
				agents[i].MaxInFlight = rapid.IntRange(0, 9).Draw(rt, "limit")
			}
			live := b.SetAgents(agents)
			if len(live) != len(agents) {
				rt.Fatalf("got %d states, want %d", len(live), len(agents))
			}
			seen := map[string]*matcher.LiveState{}
			for i, a := range agents {
				if before := known[a.ID]; before != nil && live[i] != before {
					rt.Fatalf("got a new state for %s after the reload, want the same", a.ID)
				}
				limit := a.MaxInFlight
				if limit == 0 {
					limit = contract.DefaultMaxInFlight
				}
				if got := live[i].Limit(); got != limit {
					rt.Fatalf("got limit of %s = %d, want %d", a.ID, got, limit)
				}
				live[i].SetState(contract.AgentDisabled) // AgentStatus finds the state by id only
				if b.AgentStatus(a.ID).State != contract.AgentDisabled {
					rt.Fatalf("got the state of another agent at %d, want that of %s", i, a.ID)
				}
				seen[a.ID] = live[i]
			}
			known = seen
		}
	})
}

// An agent whose tool cannot be called stays so over a reload, and is callable if it is added
// again.
func TestSetCallable_IsKeptByReload(t *testing.T) {
	b := newTestDispatcher(t)
	tool := []*contract.RegistryEntry{agent("other"), agent("tool")}
	b.SetAgents(tool)
	b.SetCallable("tool", false)
	b.SetCallable("unknown", false)
	if live := b.SetAgents(tool); !live[0].Callable() || live[1].Callable() {
		t.Errorf("after a reload: got callable %v and %v, want true and false", live[0].Callable(), live[1].Callable())
	}
	b.SetAgents(tool[:1])
	if live := b.SetAgents(tool); !live[1].Callable() {
		t.Error("after it was removed: got a tool that cannot be called, want one that can")
	}
	b.SetCallable("tool", false)
	b.SetCallable("tool", true)
	if live := b.SetAgents(tool); !live[1].Callable() {
		t.Error("got a tool that cannot be called, want one that can")
	}
}

func TestSetAgents_KeepsBreakerAfterReload(t *testing.T) {
	b := newTestDispatcher(t)
	a := agent("a")
	b.SetAgents([]*contract.RegistryEntry{a})
	b.recordFailures(t, a, 3)
	changed := agent("a")
	changed.Description = "now with a description"
	live := b.SetAgents([]*contract.RegistryEntry{agent("new"), changed})
	if s := b.AgentStatus("a"); s.Breaker != resilience.Open || live[1].OpenUntil() == 0 {
		t.Errorf("after a reload: got %+v, want the breaker still open", s)
	}
	checkUnavailable(t, b.send(t, changed), "a has failed repeatedly")
}

// A corrected address is used at once, without waiting for the breaker.
func TestSetAgents_ClosesBreakerAfterEndpointChange(t *testing.T) {
	b := newTestDispatcher(t)
	a := agent("a")
	b.SetAgents([]*contract.RegistryEntry{a})
	b.recordFailures(t, a, 3)
	moved := agent("a")
	moved.Endpoint.URL = "http://127.0.0.1:2/"
	live := b.SetAgents([]*contract.RegistryEntry{moved})
	if s := b.AgentStatus("a"); s.Breaker != resilience.Closed || live[0].OpenUntil() != 0 {
		t.Errorf("after the address change: got %+v, want closed", s)
	}
	if got := b.send(t, moved); got.Err != nil {
		t.Errorf("agent with the new address: got %+v, want a result", got.Err)
	}
}

func TestSetAgents_DropsRemovedAgentAfterLastTask(t *testing.T) {
	b := newTestDispatcher(t)
	a := agent("a")
	live := b.SetAgents([]*contract.RegistryEntry{a})
	begun, end := make(chan string, 2), make(chan struct{})
	b.target.do = blockUntil(begun, end)
	var wg sync.WaitGroup
	wg.Go(func() { b.send(t, a) })
	testkit.Receive(t, begun)
	b.SetAgents(nil)
	if got := b.AgentStatus("a").InFlight; got != 1 {
		t.Errorf("in flight at a removed agent: got %d, want its last task", got)
	}
	back := b.SetAgents([]*contract.RegistryEntry{a})
	if back[0] != live[0] || back[0].InFlight() != 1 {
		t.Error("got a new state for an agent registered again during a task, want the same state")
	}
	b.SetAgents(nil)
	close(end)
	wg.Wait()
	if diff := cmp.Diff(dispatch.AgentStatus{Breaker: resilience.Closed, State: contract.AgentActive}, b.AgentStatus("a")); diff != "" {
		t.Errorf("status after its last task (-want +got):\n%s", diff)
	}

	// A request that began before the reload may still send its task.
	b.recordFailures(t, a, 5)
	if got := b.send(t, a); got.Err != nil {
		t.Errorf("late task: got %+v, want a result, because a removed agent has no state", got.Err)
	}
}

// The memory used depends on the number of failing agents, not of called ones.
func TestDispatcher_DropsStateOfIdleAgents(t *testing.T) {
	b := newTestDispatcher(t)
	const n = 20_000
	agents := make([]*contract.RegistryEntry, n)
	for i := range agents {
		agents[i] = agent(fmt.Sprintf("a%05d", i))
	}
	b.SetAgents(agents)
	for _, a := range agents {
		b.send(t, a)
	}
	if got := b.ActiveAgents(); got != 0 {
		t.Errorf("got %d agents with a state after all have succeeded, want 0", got)
	}
	b.recordFailures(t, agents[7], 1)
	b.recordFailures(t, agents[8], 3)
	if got := b.ActiveAgents(); got != 2 {
		t.Errorf("got %d agents with a state after two have failed, want 2", got)
	}
	b.send(t, agents[7])
	if got := b.ActiveAgents(); got != 1 {
		t.Errorf("got %d agents with a state after one has recovered, want 1", got)
	}
	for i := range 1000 { // agents that are not registered
		b.recordFailures(t, agent(fmt.Sprintf("gone%d", i)), 1)
	}
	if got := b.ActiveAgents(); got != 1 {
		t.Errorf("got %d agents with a state after a thousand unknown ones have failed, want 1", got)
	}
	b.SetAgents(agents[:5])
	if got := b.ActiveAgents(); got != 0 {
		t.Errorf("got %d agents with a state after their removal, want 0", got)
	}
}

// instantTarget is a target that returns at once.
type instantTarget struct{}

func (instantTarget) Execute(context.Context, dispatch.Call) dispatch.Outcome { return success }

// BenchmarkSend measures what the limits and the breaker add to a call.
func BenchmarkSend(b *testing.B) {
	d, err := dispatch.New(dispatch.Config{}, map[string]dispatch.Target{contract.ProtocolHTTP: instantTarget{}})
	if err != nil {
		b.Fatal(err)
	}
	c := call(agent("a"))
	d.SetAgents([]*contract.RegistryEntry{c.Agent})
	c.Task.Deadline = time.Now().Add(time.Hour)
	b.ReportAllocs()
	for b.Loop() {
		d.Send(b.Context(), c)
	}
}

// BenchmarkSetAgents measures a reload of a million unchanged agents, and their
// memory.
func BenchmarkSetAgents(b *testing.B) {
	const n = 1_000_000
	agents := make([]*contract.RegistryEntry, n)
	for i := range agents {
		agents[i] = agent(fmt.Sprintf("agent_%07d", i))
	}
	bench := newTestDispatcher(b)
	before := heap()
	live := bench.SetAgents(agents)
	bytes := float64(heap()-before) / n
	for b.Loop() {
		live = bench.SetAgents(agents)
	}
	runtime.KeepAlive(live)
	b.ReportMetric(bytes, "bytes/agent")
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
