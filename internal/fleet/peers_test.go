package fleet

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// newPeer runs a fleet of one of several processes.
func newPeer(t *testing.T, srv *teststore.Server, owner string) *testFleet {
	t.Helper()
	f := openPeer(t, srv, owner)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := testkit.Receive(t, ended); err != nil {
			t.Errorf("got the fleet stopped with %v", err)
		}
	})
	return f
}

// openPeer opens a fleet that does not follow the others yet.
func openPeer(t *testing.T, srv *teststore.Server, owner string) *testFleet {
	t.Helper()
	s := teststore.OpenShared(t, srv, owner)
	b, err := s.Bucket(t.Context(), store.BucketConfig{Name: "AGENTS", KeyTTL: true})
	if err != nil {
		t.Fatal(err)
	}
	f := &testFleet{t: t, bucket: b, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	f.setOperator("clients: {}\ngrants: {w: {intents: [count_words], domains: [text]}, v: {intents: [x]}}")
	f.Fleet, err = Open(t.Context(), Config{Bucket: b, Peers: s, Operator: f.getOperator, CheckAddress: blockAddress, Now: f.getNow})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// awaitAgents waits until the fleet has these agents; see agents.
func (f *testFleet) awaitAgents(want ...string) {
	f.t.Helper()
	testkit.Eventually(f.t, strings.Join(want, "; "), func() bool {
		return strings.Join(f.agents(), "; ") == strings.Join(want, "; ")
	})
}

func TestPeers_FollowEachOther(t *testing.T) {
	srv := teststore.Serve(t, t.TempDir(), -1)
	a, b := newPeer(t, srv, "a"), newPeer(t, srv, "b")
	a.register("w", wordCounter("one"))
	b.awaitAgents("w active one:active")
	b.register("w", wordCounter("two"))
	a.awaitAgents("w active one:active two:active")
	if _, err := b.Drain(t.Context(), "w", "one", callerOf("w")); err != nil {
		t.Fatal(err)
	}
	a.awaitAgents("w active one:draining two:active")
	if err := a.Deregister(t.Context(), "w", "one", callerOf("w")); err != nil {
		t.Fatal(err)
	}
	b.awaitAgents("w active two:active")
	a.register("w", wordCounter("one")) // after the marker of the deleted record
	b.awaitAgents("w active one:active two:active")
	newPeer(t, srv, "c").awaitAgents("w active one:active two:active")
}

func TestPeers_FollowDisabledAgents(t *testing.T) {
	srv := teststore.Serve(t, t.TempDir(), -1)
	a, b := newPeer(t, srv, "a"), newPeer(t, srv, "b")
	a.register("w", wordCounter("one"))
	b.awaitAgents("w active one:active")
	admin := &contract.Caller{Subject: "ops", Scopes: []string{contract.ScopeAdmin}}
	isDisabled := func(f *testFleet) bool {
		d, err := f.State()
		return err == nil && d.Disabled["w"]
	}
	for _, disabled := range []bool{true, false, true} {
		if err := a.SetDisabled(t.Context(), "w", disabled, admin); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, "the other process has the change", func() bool { return isDisabled(b) == disabled })
	}
}

// A heartbeat that one process accepts renews the lease at the others.
func TestPeers_ShareHeartbeats(t *testing.T) {
	srv := teststore.Serve(t, t.TempDir(), -1)
	a, b := newPeer(t, srv, "a"), newPeer(t, srv, "b")
	a.register("w", wordCounter("one"))
	a.register("w", wordCounter("two"))
	b.awaitAgents("w active one:active two:active")
	expiry := func(name string) time.Time {
		for _, l := range b.Leases("w") {
			if l.Instance == name {
				return l.ExpiresAt
			}
		}
		return time.Time{}
	}
	before := expiry("one")
	for range 3 {
		b.advance(contract.DefaultLeaseTTLS / 2 * time.Second)
		testkit.Eventually(t, "the lease is renewed", func() bool {
			if _, err := a.Heartbeat(t.Context(), "w", "one", callerOf("w")); err != nil {
				t.Fatal(err)
			}
			return expiry("one").After(before)
		})
		before = expiry("one")
	}
	b.wakeRun()
	b.awaitAgents("w active one:active two:expired")
	a.checkAgents("w active one:active two:active")
}

// A process finds a registration of another one at once, even before it is notified.
func TestPeers_AcceptHeartbeatAtOnce(t *testing.T) {
	srv := teststore.Serve(t, t.TempDir(), -1)
	a, b := newPeer(t, srv, "a"), newPeer(t, srv, "b")
	for range 10 {
		a.register("w", wordCounter("one"))
		if _, err := b.Heartbeat(t.Context(), "w", "one", callerOf("w")); err != nil {
			t.Fatal(err)
		}
		if err := b.Deregister(t.Context(), "w", "one", callerOf("w")); err != nil {
			t.Fatal(err)
		}
		a.awaitAgents()
	}
}

// Of two processes with the same ETag, one succeeds.
func TestPeers_CompareETagWithStore(t *testing.T) {
	srv := teststore.Serve(t, t.TempDir(), -1)
	peers := []*testFleet{newPeer(t, srv, "a"), newPeer(t, srv, "b")}
	etag := peers[0].register("w", wordCounter("one")).ETag
	for round := range 20 {
		var wg sync.WaitGroup
		results := make([]Registered, len(peers))
		errs := make([]error, len(peers))
		for i, f := range peers {
			wg.Go(func() {
				r := wordCounter("one")
				r.MaxInFlight = 2 + 2*round + i
				results[i], errs[i] = f.Register(t.Context(), "w", r, callerOf("w"), etag)
			})
		}
		wg.Wait()
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Fatalf("round %d: got errors %v and %v, want one", round, errs[0], errs[1])
		}
		for i, err := range errs {
			if err != nil {
				checkCode(t, err, contract.CodePreconditionFailed, "If-Match")
			} else {
				etag = results[i].ETag
			}
		}
	}
}

// A process that deletes an expired registration does not delete a new one, which the agent
// has made at another process at the same moment.
func TestPeers_DeleteOnlyExpiredRegistration(t *testing.T) {
	srv := teststore.Serve(t, t.TempDir(), -1)
	a, b := openPeer(t, srv, "a"), openPeer(t, srv, "b")
	key := instanceKey{"w", "one"}
	for round := range 50 {
		r := wordCounter("one")
		r.MaxInFlight = 2 * round
		b.register("w", r)
		a.writing.Lock()
		err := a.syncInstance(t.Context(), key)
		a.writing.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		a.advance(contract.DefaultLeaseTTLS * time.Second)
		a.checkAgents("w expired one:expired")

		var wg sync.WaitGroup
		wg.Go(func() { a.advance(keepExpired) })
		wg.Go(func() {
			r.MaxInFlight++
			_, err = b.Register(t.Context(), "w", r, callerOf("w"), "")
		})
		wg.Wait()
		if err != nil {
			t.Fatal(err)
		}
		row, err := b.registrations.Get(t.Context(), key.String())
		if err != nil || row.Value.Registration.MaxInFlight != r.MaxInFlight {
			t.Fatalf("round %d: got %+v, %v, want the new registration", round, row.Value, err)
		}
	}
}

// A process that lets an instance leave does not delete a registration that another issuer
// has made meanwhile at another process.
func TestPeers_LeaveOnlyOfOwnRegistration(t *testing.T) {
	srv := teststore.Serve(t, t.TempDir(), -1)
	a, b := openPeer(t, srv, "a"), openPeer(t, srv, "b")
	ours, theirs := &contract.Caller{Subject: "w", Issuer: "idp"}, &contract.Caller{Subject: "w", Issuer: "elsewhere"}
	if _, err := a.Register(t.Context(), "w", wordCounter("one"), ours, ""); err != nil {
		t.Fatal(err)
	}
	if err := b.Deregister(t.Context(), "w", "one", ours); err != nil {
		t.Fatal(err)
	}
	again, err := b.Register(t.Context(), "w", wordCounter("one"), theirs, "")
	if err != nil {
		t.Fatal(err)
	}
	checkCode(t, a.Deregister(t.Context(), "w", "one", ours), contract.CodeForbidden, "w is registered with a token of another issuer")
	row, err := b.registrations.Get(t.Context(), "w.one")
	if err != nil || etagOf(row.Revision) != again.ETag {
		t.Errorf("got %+v, %v, want the registration of the other issuer", row, err)
	}
	// A later registration of the same agent leaves.
	if _, err := b.Drain(t.Context(), "w", "one", theirs); err != nil {
		t.Fatal(err)
	}
	if err := a.Deregister(t.Context(), "w", "one", theirs); err != nil {
		t.Fatal(err)
	}
	if _, err := b.registrations.Get(t.Context(), "w.one"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("got %v, want no registration", err)
	}
}

// A process that was disconnected does not receive deletions by others.
func TestPeers_RemoveDeletedRecordsAfterReconnect(t *testing.T) {
	srv := teststore.Serve(t, t.TempDir(), -1)
	a := newPeer(t, srv, "a")
	a.register("w", wordCounter("one"))
	a.changeRoster(func(r *roster, now time.Time) {
		r.put(&instance{key: instanceKey{"v", "one"}, registration: wordCounter("one"), revision: 1}, now)
		a.disabledIDs["v"] = true
	})
	if err := a.reconcile(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.checkAgents("w active one:active")
	if d, err := a.State(); err != nil || d.Disabled["v"] {
		t.Errorf("got disabled %v and error %v, want none", d.Disabled, err)
	}
}

// An agent is bound to the issuer that registered it, even at a process that has not received the
// registration yet.
func TestPeers_BindAgentToIssuer(t *testing.T) {
	srv := teststore.Serve(t, t.TempDir(), -1)
	a := openPeer(t, srv, "a")
	caller, other := &contract.Caller{Subject: "w", Issuer: "idp"}, &contract.Caller{Subject: "w", Issuer: "elsewhere"}
	for name, call := range map[string]func(f *testFleet) error{
		"register": func(f *testFleet) error {
			_, err := f.Register(t.Context(), "w", wordCounter("one"), other, "")
			return err
		},
		"heartbeat": func(f *testFleet) error { _, err := f.Heartbeat(t.Context(), "w", "one", other); return err },
		"drain":     func(f *testFleet) error { _, err := f.Drain(t.Context(), "w", "one", other); return err },
		"pull":      func(f *testFleet) error { return f.CheckPull(t.Context(), "w", "one", other) },
		"leave":     func(f *testFleet) error { return f.Deregister(t.Context(), "w", "one", other) },
	} {
		t.Run(name, func(t *testing.T) {
			b := openPeer(t, srv, "b-"+name)
			if _, err := a.Register(t.Context(), "w", wordCounter("one"), caller, ""); err != nil {
				t.Fatal(err)
			}
			checkCode(t, call(b), contract.CodeForbidden, "w is registered with a token of another issuer")
			if err := a.Deregister(t.Context(), "w", "one", caller); err != nil {
				t.Errorf("deregister as the agent: %v", err)
			}
		})
	}
}

// TestPeers_ChangeLatestRegistration changes agents at a process that has not received the
// registration yet.
func TestPeers_ChangeLatestRegistration(t *testing.T) {
	t.Run("leave with all instances", func(t *testing.T) {
		srv := teststore.Serve(t, t.TempDir(), -1)
		a, b := newPeer(t, srv, "a"), openPeer(t, srv, "b")
		a.register("w", wordCounter("one"))
		a.register("w", wordCounter("two"))
		if err := b.Deregister(t.Context(), "w", "", callerOf("w")); err != nil {
			t.Fatal(err)
		}
		a.awaitAgents()
	})
	t.Run("disable", func(t *testing.T) {
		srv := teststore.Serve(t, t.TempDir(), -1)
		a, b := newPeer(t, srv, "a"), openPeer(t, srv, "b")
		a.register("w", wordCounter("one"))
		admin := &contract.Caller{Subject: "ops", Scopes: []string{contract.ScopeAdmin}}
		if err := b.SetDisabled(t.Context(), "w", true, admin); err != nil {
			t.Fatal(err)
		}
		a.awaitAgents("w active one:active", "disabled: w")
	})
}

// TestPeers_RegisterAgain registers an instance at a process that has not received the last change
// by another one.
func TestPeers_RegisterAgain(t *testing.T) {
	for name, change := range map[string]func(f *testFleet) error{
		"after it left": func(f *testFleet) error { return f.Deregister(t.Context(), "w", "one", callerOf("w")) },
		"after a drain": func(f *testFleet) error { _, err := f.Drain(t.Context(), "w", "one", callerOf("w")); return err },
	} {
		t.Run(name, func(t *testing.T) {
			srv := teststore.Serve(t, t.TempDir(), -1)
			a := newPeer(t, srv, "a")
			a.register("w", wordCounter("one"))
			b := openPeer(t, srv, "b")
			if err := change(a); err != nil {
				t.Fatal(err)
			}
			b.register("w", wordCounter("one"))
			openPeer(t, srv, "c").checkAgents("w active one:active")
			a.awaitAgents("w active one:active")
		})
	}
}

// A drain does not revert the latest registration at another process.
func TestPeers_DrainLatestRegistration(t *testing.T) {
	srv := teststore.Serve(t, t.TempDir(), -1)
	a := newPeer(t, srv, "a")
	a.register("w", wordCounter("one"))
	b := openPeer(t, srv, "b")
	moved := wordCounter("one")
	moved.Endpoint.URL = "http://127.0.0.1:9102/"
	a.register("w", moved)
	if _, err := b.Drain(t.Context(), "w", "one", callerOf("w")); err != nil {
		t.Fatal(err)
	}
	d, err := b.State()
	if err != nil || len(d.Agents) != 1 || d.Agents[0].Endpoint.URL != moved.Endpoint.URL {
		t.Errorf("got %+v and error %v, want the agent at %s", d.Agents, err, moved.Endpoint.URL)
	}
}

// TestPeers_CheckOtherInstances registers a second instance at a process that has not received the
// agent's first one yet.
func TestPeers_CheckOtherInstances(t *testing.T) {
	srv := teststore.Serve(t, t.TempDir(), -1)
	a := openPeer(t, srv, "a")
	b, c := openPeer(t, srv, "b"), openPeer(t, srv, "c")
	owner := &contract.Caller{Subject: "w", Issuer: "idp"}
	if _, err := a.Register(t.Context(), "w", wordCounter("one"), owner, ""); err != nil {
		t.Fatal(err)
	}
	_, err := b.Register(t.Context(), "w", wordCounter("two"), &contract.Caller{Subject: "w", Issuer: "elsewhere"}, "")
	checkCode(t, err, contract.CodeForbidden, "w is registered with a token of another issuer")
	pull := wordCounter("two")
	pull.Endpoint = contract.Endpoint{Protocol: contract.ProtocolPull}
	_, err = c.Register(t.Context(), "w", pull, owner, "")
	checkCode(t, err, contract.CodeConflict, "instance one of w has the protocol http")
}
