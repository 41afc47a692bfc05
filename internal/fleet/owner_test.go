package fleet

import (
	"testing"

	"github.com/caprouter/caprouter/contract"
)

// The error for another agent's token does not depend on whether the agent is registered.
func TestDeregister_HidesOtherAgents(t *testing.T) {
	f := newTestFleet(t)
	for range 2 {
		for _, name := range []string{"", "default"} {
			wantCode(t, f.Deregister(t.Context(), "w", name, self("v")), contract.CodeForbidden, "the token is for v")
		}
		f.register("w", wordCounter(""))
	}
}

// If the caller may not remove one of the instances, all of them stay.
func TestDeregister_RemovesAllInstancesOrNone(t *testing.T) {
	f := newTestFleet(t)
	f.register("w", wordCounter("one"))
	other := &contract.Caller{Subject: "w", Issuer: "elsewhere"}
	if _, err := f.Register(t.Context(), "w", wordCounter("two"), other, ""); err != nil {
		t.Fatal(err)
	}
	wantCode(t, f.Deregister(t.Context(), "w", "", self("w")), contract.CodeForbidden, "another issuer")
	f.wantAgents("w active one:active two:active")
}

// The error leads to the name that the caller must use.
func TestDrain_NamesRegisteredInstances(t *testing.T) {
	f := newTestFleet(t)
	wantCode(t, f.Deregister(t.Context(), "w", "", self("w")), contract.CodeNotFound, "agent w is not registered")
	f.register("w", wordCounter("host-1"))
	f.register("w", wordCounter("host-2"))
	_, err := f.Drain(t.Context(), "w", "", self("w"))
	wantCode(t, err, contract.CodeNotFound, "instance default of agent w is not registered; its instances: host-1, host-2")
}
