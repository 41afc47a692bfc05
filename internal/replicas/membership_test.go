package replicas_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/internal/replicas"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// openMembership opens the membership of a process with a store of its own.
func openMembership(t *testing.T, srv *teststore.Server, name, owner string) (*replicas.Membership, *store.Store) {
	t.Helper()
	s := teststore.OpenShared(t, srv, owner)
	m, err := replicas.Open(t.Context(), newConfig(s, name, owner))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.WithoutCancel(t.Context())) })
	return m, s
}

func newConfig(s *store.Store, name, owner string) replicas.Config {
	return replicas.Config{Store: s, Name: name, Owner: owner, PublicKeys: func() []byte { return fmt.Appendf(nil, `{"keys":%q}`, owner) }}
}

// formatMembers returns the members as text.
func formatMembers(m *replicas.Membership) []string {
	var got []string
	for _, r := range m.Members() {
		got = append(got, fmt.Sprintf("%s %s live=%v keys=%s", r.Name, r.Owner, r.Live, r.Keys))
	}
	return got
}

func onMemberDead(m *replicas.Membership) <-chan struct{} {
	gone := make(chan struct{}, 100)
	m.OnMemberDead(func() { gone <- struct{}{} })
	return gone
}

func TestMembership_KnowsLiveReplicas(t *testing.T) {
	srv := teststore.Serve(t, t.TempDir(), -1)
	a, _ := openMembership(t, srv, "r-a", "1")
	b, _ := openMembership(t, srv, "r-b", "2")
	if !b.IsLive("1") || !b.IsLive("2") || b.IsLive("3") {
		t.Errorf("got %v %v %v, want owners 1 and 2 live when Open returns", b.IsLive("1"), b.IsLive("2"), b.IsLive("3"))
	}
	testkit.Eventually(t, "the first replica knows the second one", func() bool { return a.IsLive("2") && a.CountLive() == 2 })
	want := []string{`r-a 1 live=true keys={"keys":"1"}`, `r-b 2 live=true keys={"keys":"2"}`}
	for name, m := range map[string]*replicas.Membership{"a": a, "b": b} {
		if diff := cmp.Diff(want, formatMembers(m)); diff != "" {
			t.Errorf("members of %s (-want +got):\n%s", name, diff)
		}
	}
	gone := onMemberDead(a)
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	testkit.Receive(t, gone)
	if a.IsLive("2") || a.CountLive() != 1 {
		t.Errorf("got live %v, count %d, want the closed replica gone", a.IsLive("2"), a.CountLive())
	}
	want[1] = `r-b 2 live=false keys={"keys":"2"}`
	if diff := cmp.Diff(want, formatMembers(a)); diff != "" {
		t.Errorf("members after the close (-want +got):\n%s", diff)
	}
}

// A process that is killed no longer writes its row, as if its store were closed.
func TestMembership_PresumesSilentReplicaEnded(t *testing.T) {
	srv := teststore.Serve(t, t.TempDir(), -1)
	a, _ := openMembership(t, srv, "r-a", "1")
	_, killed := openMembership(t, srv, "r-b", "2")
	testkit.Eventually(t, "the other replica is known", func() bool { return a.IsLive("2") })
	gone := onMemberDead(a)
	if err := killed.Close(); err != nil {
		t.Fatal(err)
	}
	testkit.Receive(t, gone)
	if a.IsLive("2") {
		t.Error("got the silent replica live, want it gone")
	}
	again, _ := openMembership(t, srv, "r-b", "3")
	if !again.IsLive("1") || again.IsLive("2") {
		t.Errorf("got %v %v, want owner 1 live and 2 gone", again.IsLive("1"), again.IsLive("2"))
	}
}

func TestMembership_SurvivesServerRestart(t *testing.T) {
	dir, port := t.TempDir(), testkit.FreePort(t)
	srv := teststore.Serve(t, dir, port)
	a, _ := openMembership(t, srv, "r-a", "1")
	b, _ := openMembership(t, srv, "r-b", "2")
	testkit.Eventually(t, "the other replica is known", func() bool { return a.IsLive("2") })
	gone := onMemberDead(a)
	srv.Stop()
	srv = teststore.Serve(t, dir, port)
	// A third replica is seen only after beats of both that the new server accepted.
	openMembership(t, srv, "r-c", "3")
	testkit.Eventually(t, "both know the third replica", func() bool { return a.IsLive("3") && b.IsLive("3") })
	select {
	case <-gone:
		t.Error("got a replica gone, want none because of the restart")
	default:
	}
	if a.CountLive() != 3 || b.CountLive() != 3 {
		t.Errorf("got %d and %d live replicas, want 3", a.CountLive(), b.CountLive())
	}
}

func TestOpen_RefusesNameOfLiveReplica(t *testing.T) {
	srv := teststore.Serve(t, t.TempDir(), -1)
	first, s := openMembership(t, srv, "r-a", "1")
	second, err := replicas.Open(t.Context(), newConfig(teststore.OpenShared(t, srv, "2"), "r-a", "2"))
	if !errors.Is(err, replicas.ErrNameInUse) || !errors.Is(err, store.ErrLocked) || second != nil {
		t.Fatalf("got error %v, want ErrNameInUse", err)
	}
	if !strings.Contains(err.Error(), "r-a, process 1, started ") {
		t.Errorf("got %q, want the name and the process", err)
	}
	if err := s.OwnershipError(); err != nil || !first.IsLive("1") {
		t.Errorf("the first process lost the store to a rejected one: %v", err)
	}
}

// TestMembership_StopsIfNameIsTaken suspends a process until another one starts with its
// name, for example with a copy of its data directory.
func TestMembership_StopsIfNameIsTaken(t *testing.T) {
	srv := teststore.Serve(t, t.TempDir(), -1)
	_, s := openMembership(t, srv, "r-a", "1")
	b, err := s.Bucket(t.Context(), store.BucketConfig{Name: "REPLICAS"})
	if err != nil {
		t.Fatal(err)
	}
	other := teststore.OpenShared(t, srv, "2")
	ob, err := other.Bucket(t.Context(), store.BucketConfig{Name: "REPLICAS"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ob.Put(t.Context(), "r-a", []byte(`{"owner":"2","beat":1,"started":"2026-01-02T03:04:05Z"}`)); err != nil {
		t.Fatal(err)
	}
	testkit.WaitClosed(t, s.OwnershipLost())
	if err := s.OwnershipError(); !errors.Is(err, replicas.ErrNameInUse) {
		t.Errorf("got %v, want ErrNameInUse", err)
	}
	if _, err := b.Put(t.Context(), "x", nil); !errors.Is(err, store.ErrLocked) {
		t.Errorf("write: got error %v, want %v", err, store.ErrLocked)
	}
}

func TestAlone_KnowsOnlyItself(t *testing.T) {
	m := replicas.Alone("main", "1", "v1")
	m.OnMemberDead(func() { t.Error("got an owner gone") })
	if !m.IsLive("1") || m.IsLive("2") || m.Name() != "main" || m.CountLive() != 1 {
		t.Errorf("got %v %v %s %d, want only owner 1 live", m.IsLive("1"), m.IsLive("2"), m.Name(), m.CountLive())
	}
	if diff := cmp.Diff([]string{"main 1 live=true keys="}, formatMembers(m)); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
