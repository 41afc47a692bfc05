package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
)

// serve runs a NATS server on a port of this machine, as an operator does.
func serve(t *testing.T, dir string, port int) *server.Server {
	t.Helper()
	srv, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	if !srv.ReadyForConnections(testkit.Patience) {
		t.Fatal("the server does not start")
	}
	t.Cleanup(func() { stopServer(srv) })
	return srv
}

func stopServer(srv *server.Server) {
	srv.Shutdown()
	srv.WaitForShutdown()
}

func external(srv *server.Server, ttl time.Duration, owner string) store.Config {
	return store.Config{URL: srv.ClientURL(), Owner: owner, LeaseTTL: ttl}
}

// openExternal opens a store at a server and closes it at the end of the test.
func openExternal(t *testing.T, cfg store.Config) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestExternalStore_BehavesLikeEmbedded(t *testing.T) {
	ctx := t.Context()
	s := openExternal(t, external(serve(t, t.TempDir(), -1), time.Minute, "a"))
	b := bucket(t, s, store.BucketConfig{Share: 0.1})
	rev := must[uint64](t)(b.Create(ctx, "req.1", []byte("1")))
	_, err := b.Create(ctx, "req.1", nil)
	wantErr(t, "second create", err, store.ErrExists)
	large := noise(2_000_000)
	rev = must[uint64](t)(b.Update(ctx, "req.1", large, rev))
	_, err = b.Update(ctx, "req.1", nil, rev-1)
	wantErr(t, "update from an old revision", err, store.ErrConflict)
	if got := must[store.Entry](t)(b.Get(ctx, "req.1")); !bytes.Equal(got.Value, large) || got.Revision != rev {
		t.Errorf("got %d bytes at revision %d, want what was written", len(got.Value), got.Revision)
	}
	if diff := cmp.Diff([]string{"req.1"}, keys(t, b, "")); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	l := openLog(t, s, store.LogConfig{})
	for _, text := range []string{"1", "2", "3"} {
		add(t, l, "log.a", text)
	}
	if err := l.Delete(ctx, 2); err != nil {
		t.Error(err)
	}
	var followed []string
	err = l.Follow(ctx, 1, func(m store.Message) error {
		if followed = append(followed, string(m.Data)); len(followed) == 2 {
			return store.ErrStop
		}
		return nil
	})
	if diff := cmp.Diff([]string{"1", "3"}, followed); err != nil || diff != "" {
		t.Errorf("follow: error %v (-want +got):\n%s", err, diff)
	}
	if got := s.Status(); !got.Ready || got.Mode != "external" || got.Used < 2_000_000 || got.Free != 0 {
		t.Errorf("status: got %+v", got)
	}
}

func TestExternalStore_HasOneOwner(t *testing.T) {
	srv := serve(t, t.TempDir(), -1)
	first := openExternal(t, external(srv, time.Second, "first"))
	s, err := store.Open(t.Context(), external(srv, time.Second, "second"))
	if err == nil {
		_ = s.Close()
	}
	wantErr(t, "second open", err, store.ErrLocked)
	if err != nil && !strings.Contains(err.Error(), "is owned by first (pid ") {
		t.Errorf("got %q, want the owner named", err)
	}
	select {
	case <-first.OwnershipLost():
		t.Error("the first owner lost the store to a rejected one")
	default:
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	openExternal(t, external(srv, time.Second, "third")) // the released lease is acquired at once
}

func TestExternalStore_TakesOverFromDeadOwner(t *testing.T) {
	srv := serve(t, t.TempDir(), -1)
	dead := openExternal(t, external(srv, time.Second, "dead"))
	b := bucket(t, dead, store.BucketConfig{Name: "B"})
	dead.StopRenewing()
	second := openExternal(t, external(srv, time.Minute, "second")) // waits until the lease has expired
	_, err := b.Put(t.Context(), "a", nil)
	wantErr(t, "write of the former owner", err, store.ErrLocked)
	if got := dead.Status(); got.Ready || !errors.Is(got.Err, store.ErrLocked) {
		t.Errorf("status of the former owner: got %+v", got)
	}
	if _, err := bucket(t, second, store.BucketConfig{Name: "B"}).Put(t.Context(), "a", nil); err != nil {
		t.Errorf("write of the owner: %v", err)
	}
}

func TestExternalStore_NamesNewOwner(t *testing.T) {
	srv := serve(t, t.TempDir(), -1)
	first := openExternal(t, external(srv, 3*time.Second, "first"))
	first.TakeLeaseAway(t.Context(), "second (pid 2)")
	testkit.WaitClosed(t, first.OwnershipLost())
	wantErr(t, "lost", first.OwnershipError(), store.ErrLocked)
	if why := fmt.Sprint(first.OwnershipError()); !strings.Contains(why, "is now owned by second (pid 2)") {
		t.Errorf("got reason %s, want the new owner named", why)
	}
}

func TestExternalStore_ReportsExpiredLease(t *testing.T) {
	srv := serve(t, t.TempDir(), -1)
	s := openExternal(t, external(srv, 3*time.Second, "first"))
	s.DropLease(t.Context())
	testkit.WaitClosed(t, s.OwnershipLost())
	if why := fmt.Sprint(s.OwnershipError()); !strings.Contains(why, "suspended for longer than the lease") {
		t.Errorf("got reason %s, want the expired lease", why)
	}
}

func TestExternalStore_LosesLeaseWithoutServer(t *testing.T) {
	srv := serve(t, t.TempDir(), -1)
	s := openExternal(t, external(srv, time.Second, "a"))
	b := bucket(t, s, store.BucketConfig{})
	if got := s.OwnershipError(); got != nil {
		t.Errorf("got reason %v while the store is owned, want nil", got)
	}
	stopServer(srv)
	testkit.WaitClosed(t, s.OwnershipLost())
	wantErr(t, "lost", s.OwnershipError(), store.ErrUnavailable)
	if why := fmt.Sprint(s.OwnershipError()); !strings.Contains(why, srv.ClientURL()+" was not reached for 1s") || strings.Contains(why, "owned by") {
		t.Errorf("got reason %s, want the server named, and no owner", why)
	}
	_, err := b.Put(t.Context(), "a", nil)
	wantErr(t, "put", err, store.ErrLocked)
}

func TestExternalStore_SurvivesServerRestart(t *testing.T) {
	dir := t.TempDir()
	port := testkit.FreePort(t)
	srv := serve(t, dir, port)
	s := openExternal(t, external(srv, time.Minute, "a"))
	b := bucket(t, s, store.BucketConfig{})
	must[uint64](t)(b.Put(t.Context(), "a", []byte("1")))
	stopServer(srv)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := b.Get(ctx, "a")
	wantErr(t, "get without the server", err, store.ErrUnavailable)
	if got := s.Status(); got.Ready || !errors.Is(got.Err, store.ErrUnavailable) {
		t.Errorf("status without the server: got %+v", got)
	}
	serve(t, dir, port)
	if got, err := b.Get(t.Context(), "a"); err != nil || string(got.Value) != "1" {
		t.Errorf("get after the server's restart: got %q and error %v, want 1", got.Value, err)
	}
}

// TestExternalStore_RecreatesMemoryLogAfterServerRestart restarts the server, whose
// logs in memory are gone then, while one is followed.
func TestExternalStore_RecreatesMemoryLogAfterServerRestart(t *testing.T) {
	dir := t.TempDir()
	port := testkit.FreePort(t)
	srv := serve(t, dir, port)
	s := openExternal(t, external(srv, time.Minute, "a"))
	l := openLog(t, s, store.LogConfig{Memory: true})
	add(t, l, "log.a", "before")
	followed := make(chan string, 10)
	go func() {
		_ = l.Follow(t.Context(), 1, func(m store.Message) error {
			followed <- string(m.Data)
			return nil
		})
	}()
	if got := testkit.Receive(t, followed); got != "before" {
		t.Errorf("got %q, want the message before the restart", got)
	}
	stopServer(srv)
	serve(t, dir, port)
	add(t, l, "log.a", "after")
	if got := testkit.Receive(t, followed); got != "after" {
		t.Errorf("got %q, want the message after the restart", got)
	}
}
