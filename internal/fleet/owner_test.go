package fleet

import (
	"strings"
	"testing"

	"github.com/caprouter/caprouter/contract"
)

// The error for another agent's token does not depend on whether the agent is registered.
func TestDeregister_HidesOtherAgents(t *testing.T) {
	f := newTestFleet(t)
	for range 2 {
		for _, name := range []string{"", "default"} {
			checkCode(t, f.Deregister(t.Context(), "w", name, callerOf("v")), contract.CodeForbidden, "the token is for v")
		}
		f.register("w", wordCounter(""))
	}
}

// Subjects are unique for one issuer only, so the agent is bound to the first issuer that registers
// it.
func TestRegister_BindsAgentToIssuer(t *testing.T) {
	f := newTestFleet(t)
	admin := &contract.Caller{Subject: "ops", Issuer: "idp", Scopes: []string{contract.ScopeAdmin}}
	if _, err := f.Register(t.Context(), "w", wordCounter("zero"), admin, ""); err != nil {
		t.Fatal(err)
	}
	f.register("w", wordCounter("one")) // a registration by an operator does not bind the agent
	other := &contract.Caller{Subject: "w", Issuer: "elsewhere"}
	_, err := f.Register(t.Context(), "w", wordCounter("two"), other, "")
	checkCode(t, err, contract.CodeForbidden, "w is registered with a token of another issuer")
	checkCode(t, f.Deregister(t.Context(), "w", "", other), contract.CodeForbidden, "another issuer")
	f.checkAgents("w active one:active zero:active")
	if err := f.Deregister(t.Context(), "w", "", admin); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Register(t.Context(), "w", wordCounter("two"), other, ""); err != nil {
		t.Errorf("after the agent has left: %v", err)
	}
}

// One agent cannot fill the store with its registrations.
func TestRegister_LimitsBytesOfAgent(t *testing.T) {
	f := newTestFleet(t)
	large := func(name string) contract.Registration {
		r := wordCounter(name)
		r.Examples = map[string][]string{"count_words": {strings.Repeat("x", maxAgentBytes/3)}}
		return r
	}
	f.register("w", large("one"))
	f.register("w", large("two"))
	_, err := f.Register(t.Context(), "w", large("three"), callerOf("w"), "")
	checkCode(t, err, contract.CodeQuotaExceeded, "the limit is 1048576: declare less, or let instances leave")
	f.reopen()
	if _, err := f.Register(t.Context(), "w", large("three"), callerOf("w"), ""); err == nil {
		t.Error("after a restart: got no error, want the same limit")
	}
	f.register("w", large("two")) // replaces itself
	f.register("v", large("one")) // another agent
	if err := f.Deregister(t.Context(), "w", "one", callerOf("w")); err != nil {
		t.Fatal(err)
	}
	f.register("w", large("three"))
}

// The error contains the names of the registered instances.
func TestDrain_NamesRegisteredInstances(t *testing.T) {
	f := newTestFleet(t)
	checkCode(t, f.Deregister(t.Context(), "w", "", callerOf("w")), contract.CodeNotFound, "agent w is not registered")
	f.register("w", wordCounter("host-1"))
	f.register("w", wordCounter("host-2"))
	_, err := f.Drain(t.Context(), "w", "", callerOf("w"))
	checkCode(t, err, contract.CodeNotFound, "instance default of agent w is not registered; its instances: host-1, host-2")
}

func TestDrain_NamesAgentOfFile(t *testing.T) {
	f := newTestFleet(t)
	f.setOperator("clients: {w: {match: {intent: [count_words]}}}\n")
	_, err := f.Drain(t.Context(), "w", "", callerOf("w"))
	checkCode(t, err, contract.CodeNotFound, "agent w is declared in the operator's registry file and has no instances; an operator can disable it")
	_, err = f.Drain(t.Context(), "x", "", callerOf("x"))
	checkCode(t, err, contract.CodeNotFound, "instance default of agent x is not registered")
}

// A caller is an agent if its subject is the id of one that the operator declares or grants,
// or that is registered, unless the registration has another issuer.
func TestIsAgent(t *testing.T) {
	f := newTestFleet(t)
	check := func(when string, caller *contract.Caller, want bool) {
		t.Helper()
		if got := f.IsAgent(caller); got != want {
			t.Errorf("%s, subject %s, issuer %q: got %v, want %v", when, caller.Subject, caller.Issuer, got, want)
		}
	}
	other := &contract.Caller{Subject: "w", Issuer: "elsewhere"}
	check("declared", callerOf("fixed"), true)
	check("declared", &contract.Caller{Subject: "fixed", Issuer: "elsewhere", Scopes: []string{contract.ScopeAdmin}}, true)
	check("granted", callerOf("w"), true)
	check("granted", other, true)
	check("unknown", callerOf("ana"), false)
	check("local caller", &contract.Caller{Subject: "fixed", AllScopes: true}, false)
	f.register("w", wordCounter("one"))
	check("registered", callerOf("w"), true)
	check("registered", other, false)
	f.setOperator("clients: {}\n")
	check("without a grant", callerOf("w"), true)
	if err := f.Deregister(t.Context(), "w", "", callerOf("w")); err != nil {
		t.Fatal(err)
	}
	check("has left", callerOf("w"), false)
	check("not declared any more", callerOf("fixed"), false)
}
