package dispatch_test

import (
	"context"
	"testing"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
)

// preparingTarget records the calls that it prepares.
type preparingTarget struct {
	scriptedTarget
	prepared []dispatch.Call
}

func (p *preparingTarget) Prepare(ctx context.Context, c dispatch.Call) dispatch.Token {
	if _, ok := ctx.Deadline(); !ok {
		panic("a task is prepared without a deadline")
	}
	p.prepared = append(p.prepared, c)
	return dispatch.Token{Value: "token for " + calledInstance(c)}
}

func newPreparingDispatcher(t *testing.T) (*dispatch.Dispatcher, *preparingTarget) {
	t.Helper()
	target := &preparingTarget{}
	target.answer(success)
	d, err := dispatch.New(dispatch.Config{Timeout: time.Minute}, map[string]dispatch.Target{contract.ProtocolHTTP: target})
	if err != nil {
		t.Fatal(err)
	}
	return d, target
}

// A task is prepared for the instance that gets it.
func TestDispatcher_PreparesTaskForNextInstance(t *testing.T) {
	d, target := newPreparingDispatcher(t)
	a := registered("a", instance("i1"), instance("i2", inState(contract.AgentDraining)), instance("i3"))
	d.SetAgents([]*contract.RegistryEntry{a})
	for _, want := range []string{"i1", "i3", "i1"} {
		d.Prepare(t.Context(), call(a))
		if token := d.Prepare(t.Context(), call(a)); token.Value != "token for "+want { // preparing takes no turn
			t.Errorf("got the %s, want it for %s", token.Value, want)
		}
		d.Send(t.Context(), call(a))
		if got := target.calledInstances(); len(got) != 1 || got[0] != want {
			t.Errorf("got a task for %v, want %s", got, want)
		}
	}
	if got := d.ActiveAgents(); got != 0 {
		t.Errorf("got %d agents with a state, want 0", got)
	}
}

func TestDispatcher_PreparesTaskForAgentOfFile(t *testing.T) {
	d, target := newPreparingDispatcher(t)
	a := agent("file")
	d.Prepare(t.Context(), call(a)) // before any registry is set
	d.SetAgents([]*contract.RegistryEntry{a})
	d.Prepare(t.Context(), call(a))
	if len(target.prepared) != 2 || target.prepared[0].Agent != a || target.prepared[1].Agent != a {
		t.Errorf("got %d tasks prepared, want 2 with the unchanged entry", len(target.prepared))
	}
}

// Nothing is prepared for an agent that would not get the task.
func TestDispatcher_PreparesNothingForUnavailableAgent(t *testing.T) {
	d, target := newPreparingDispatcher(t)
	leaving, down := registered("leaving", instance("i1", inState(contract.AgentDraining))), agent("down")
	d.SetAgents([]*contract.RegistryEntry{leaving, down})
	target.answer(unreachable)
	for range 10 { // more than the circuit breaker allows
		d.Send(t.Context(), call(down))
	}
	for name, a := range map[string]*contract.RegistryEntry{
		"draining": leaving, "behind a circuit breaker": down, "unregistered": registered("gone", instance("i1")), "no endpoint": {ID: "none"},
	} {
		if token := d.Prepare(t.Context(), call(a)); token != (dispatch.Token{}) {
			t.Errorf("%s: got a token, want none", name)
		}
	}
	if len(target.prepared) != 0 {
		t.Errorf("got %d tasks prepared, want 0", len(target.prepared))
	}
}
