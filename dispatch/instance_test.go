package dispatch_test

import (
	"context"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/testkit"
)

func TestDispatcher_RotatesInstances(t *testing.T) {
	b := newTestDispatcher(t)
	a, other := registered("a", instance("i1"), instance("i2"), instance("i3")), registered("other", instance("o1"), instance("o2"))
	b.SetAgents([]*contract.RegistryEntry{a, other})
	for range 4 { // each agent has its own rotation
		b.send(t, a)
		b.send(t, other)
	}
	want := []string{"i1", "o1", "i2", "o2", "i3", "o1", "i1", "o2"}
	if diff := cmp.Diff(want, b.target.calledInstances()); diff != "" {
		t.Errorf("instances (-want +got):\n%s", diff)
	}
	if got := b.ActiveAgents(); got != 0 {
		t.Errorf("got %d agents with a state after all have succeeded, want 0", got)
	}
}

// The target gets the address of the instance, or the unchanged entry of an agent of the file.
func TestDispatcher_CallsAddressOfInstance(t *testing.T) {
	b := newTestDispatcher(t)
	file, a := agent("file"), registered("a", instance("i1", func(in *contract.Instance) { in.Endpoint.Idempotent = true }))
	a.Endpoint = contract.Endpoint{Protocol: contract.ProtocolHTTP, URL: "http://127.0.0.1:1/entry"}
	b.SetAgents([]*contract.RegistryEntry{file, a})
	b.send(t, file)
	b.send(t, a)
	if b.target.calls[0].Agent != file {
		t.Error("agent of the file: got a copy of the entry, want the entry")
	}
	want := *a
	want.Endpoint.URL = "http://127.0.0.1:1/i1" // not idempotent, because the entry is not
	if diff := cmp.Diff(&want, b.target.calls[1].Agent); diff != "" {
		t.Errorf("entry for the target (-want +got):\n%s", diff)
	}
	if a.Endpoint.URL != "http://127.0.0.1:1/entry" {
		t.Errorf("got the entry of the caller changed: %s", a.Endpoint.URL)
	}
}

// The least busy instance is the one that uses the smallest part of its limit. No instance gets
// more tasks than its limit.
func TestDispatcher_PrefersLeastBusyInstance(t *testing.T) {
	b := newTestDispatcher(t)
	a := registered("a", instance("i1", withLimit(1)), instance("i4", withLimit(4)))
	live := b.SetAgents([]*contract.RegistryEntry{a})
	begun, end := make(chan string, 5), make(chan struct{})
	b.target.do = blockUntil(begun, end)
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() { b.send(t, a) })
		testkit.Receive(t, begun)
	}
	if diff := cmp.Diff([]string{"i1", "i4", "i4", "i4", "i4"}, b.target.calledInstances()); diff != "" {
		t.Errorf("instances (-want +got):\n%s", diff)
	}
	checkUnavailable(t, b.send(t, a), "a is at its limit of 5 tasks in flight (max_in_flight)")
	want := []dispatch.InstanceStatus{
		{Name: "i1", Breaker: resilience.Closed, InFlight: 1, MaxInFlight: 1},
		{Name: "i4", Breaker: resilience.Closed, InFlight: 4, MaxInFlight: 4},
	}
	if diff := cmp.Diff(want, b.AgentStatus("a").Instances); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	close(end)
	wg.Wait()
	if got := live[0].InFlight(); got != 0 {
		t.Errorf("got %d tasks in flight at the end, want 0", got)
	}
}

func TestDispatcher_CancelsPendingTaskAtItsInstance(t *testing.T) {
	d, target := newPendingDispatcher(t)
	a := registered("a", instance("i1"), instance("i2"))
	d.SetAgents([]*contract.RegistryEntry{a})
	target.answerBy(map[string]dispatch.Outcome{"i1": unreachable, "i2": {Pending: true, Attempts: 1}})
	ctx, cancel := context.WithCancel(t.Context())
	c := call(a)
	c.AwaitResult = func(ctx context.Context) dispatch.Outcome {
		if s := d.AgentStatus("a").Instances; s[0].InFlight != 0 || s[1].InFlight != 1 {
			t.Errorf("got instances %+v, want the task at i2", s)
		}
		d.SetAgents(nil) // its tasks continue
		cancel()
		<-ctx.Done()
		return cancelled
	}
	d.Send(ctx, c)
	if got := testkit.Receive(t, target.cancelled); calledInstance(got) != "i2" || len(target.cancelled) != 0 {
		t.Errorf("got cancellation at %s and %d others, want i2 only", calledInstance(got), len(target.cancelled))
	}
	if got := d.ActiveAgents(); got != 0 {
		t.Errorf("got %d agents with a state at the end, want 0", got)
	}
}

func TestCancelTask_ReachesEveryInstance(t *testing.T) {
	d, target := newPendingDispatcher(t)
	a := registered("a", instance("i1"), instance("i2", inState(contract.AgentDraining)), instance("i3", inState(contract.AgentExpired)))
	d.SetAgents([]*contract.RegistryEntry{a})
	d.CancelTask(call(registered("a", instance("i0"))))
	var got []string
	for range a.Instances {
		got = append(got, calledInstance(testkit.Receive(t, target.cancelled)))
	}
	if diff := cmp.Diff([]string{"i1", "i2", "i3"}, got); diff != "" || len(target.cancelled) != 0 {
		t.Errorf("got %d more cancellations; instances (-want +got):\n%s", len(target.cancelled), diff)
	}
	d.CancelTask(call(registered("unknown", instance("i0"))))
	if len(target.cancelled) != 0 {
		t.Error("got a cancellation at an agent that is not registered, want none")
	}
}
