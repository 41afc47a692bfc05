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

	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

func TestExternalStore_BehavesLikeEmbedded(t *testing.T) {
	ctx := t.Context()
	s := teststore.OpenShared(t, teststore.Serve(t, t.TempDir(), -1), "a")
	b := bucket(t, s, store.BucketConfig{Share: 0.1})
	rev := must[uint64](t)(b.Create(ctx, "req.1", []byte("1")))
	_, err := b.Create(ctx, "req.1", nil)
	wantErr(t, "second create", err, store.ErrExists)
	large := randomBytes(2_000_000)
	rev = must[uint64](t)(b.Update(ctx, "req.1", large, rev))
	_, err = b.Update(ctx, "req.1", nil, rev-1)
	wantErr(t, "update from an old revision", err, store.ErrConflict)
	if got := must[store.Entry](t)(b.Get(ctx, "req.1")); !bytes.Equal(got.Value, large) || got.Revision != rev {
		t.Errorf("got %d bytes at revision %d, want the %d written bytes at %d", len(got.Value), got.Revision, len(large), rev)
	}
	if diff := cmp.Diff([]string{"req.1"}, keys(t, b, "")); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	l := openLog(t, s, store.LogConfig{})
	for _, text := range []string{"1", "2", "3"} {
		appendText(t, l, "log.a", text)
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
		t.Errorf("status: got %+v, want it ready and external", got)
	}
}

func TestExternalStore_IsSharedByProcesses(t *testing.T) {
	ctx := t.Context()
	srv := teststore.Serve(t, t.TempDir(), -1)
	first := bucket(t, teststore.OpenShared(t, srv, "first"), store.BucketConfig{})
	second := bucket(t, teststore.OpenShared(t, srv, "second"), store.BucketConfig{})
	rev := must[uint64](t)(first.Create(ctx, "a", []byte("1")))
	_, err := second.Create(ctx, "a", []byte("2"))
	wantErr(t, "create of an existing key of the other process", err, store.ErrExists)
	must[uint64](t)(second.Update(ctx, "a", []byte("3"), rev))
	_, err = first.Update(ctx, "a", []byte("4"), rev)
	wantErr(t, "update after an update of the other process", err, store.ErrConflict)
	if got := must[store.Entry](t)(first.Get(ctx, "a")); string(got.Value) != "3" {
		t.Errorf("got %q, want the update of the other process", got.Value)
	}
}

func TestExternalStore_OpenRejectsActiveLegacyLease(t *testing.T) {
	srv := teststore.Serve(t, t.TempDir(), -1)
	earlier := teststore.OpenShared(t, srv, "a")
	earlier.CreateLegacyLease(t.Context(), "ab12 (pid 7)", time.Hour)
	cfg := store.Config{URL: srv.URL, Owner: "new"}
	s, err := store.Open(t.Context(), cfg)
	if err == nil {
		_ = s.Close()
	}
	wantErr(t, "open", err, store.ErrLocked)
	if err != nil && !strings.Contains(err.Error(), "ab12 (pid 7), uses "+srv.URL) {
		t.Errorf("got error %q, want one with the owner and the server", err)
	}
	earlier.CreateLegacyLease(t.Context(), "ab12 (pid 7)", 200*time.Millisecond)
	testkit.Eventually(t, "the store opens after the lease has expired", func() bool {
		s, err := store.Open(t.Context(), cfg)
		if err == nil {
			_ = s.Close()
		}
		return err == nil
	})
}

func TestExternalStore_SurvivesServerRestart(t *testing.T) {
	dir := t.TempDir()
	port := testkit.FreePort(t)
	srv := teststore.Serve(t, dir, port)
	s := teststore.OpenShared(t, srv, "a")
	b := bucket(t, s, store.BucketConfig{})
	must[uint64](t)(b.Put(t.Context(), "a", []byte("1")))
	srv.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := b.Get(ctx, "a")
	wantErr(t, "get without the server", err, store.ErrUnavailable)
	testkit.Eventually(t, "the lost connection is noticed", func() bool { return !s.Status().Ready })
	if got := s.Status(); !errors.Is(got.Err, store.ErrUnavailable) {
		t.Errorf("status without the server: got %+v, want it not ready and %v", got, store.ErrUnavailable)
	}
	teststore.Serve(t, dir, port)
	if got, err := b.Get(t.Context(), "a"); err != nil || string(got.Value) != "1" {
		t.Errorf("get after the restart of the server: got %q and error %v, want 1", got.Value, err)
	}
}

// A restarted server has no logs in memory. The store creates them again, and a follower
// continues.
func TestExternalStore_RecreatesMemoryLogAfterServerRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	port := testkit.FreePort(t)
	srv := teststore.Serve(t, dir, port)
	s := teststore.OpenShared(t, srv, "a")
	l := openLog(t, s, store.LogConfig{Memory: true})
	appendText(t, l, "log.a", "before")
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
	srv.Stop()
	teststore.Serve(t, dir, port)
	appendText(t, l, "log.a", "after")
	if got := testkit.Receive(t, followed); got != "after" {
		t.Errorf("got %q, want the message after the restart", got)
	}
}

// A bucket that was created without KeyTTL, as by an earlier version, can be opened with KeyTTL
// and watched.
func TestBucket_EnablesKeyTTL(t *testing.T) {
	srv := teststore.Serve(t, t.TempDir(), -1)
	before := bucket(t, teststore.OpenShared(t, srv, "before"), store.BucketConfig{Share: 0.1})
	must[uint64](t)(before.Put(t.Context(), "a", []byte("1")))
	must[uint64](t)(before.Put(t.Context(), "b", []byte("2")))
	b := bucket(t, teststore.OpenShared(t, srv, "after"), store.BucketConfig{Share: 0.1, KeyTTL: true})
	if err := b.Delete(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	var got []string
	err := b.Watch(t.Context(), "", func(c store.Change) error {
		if got = append(got, fmt.Sprintf("%s=%s %v", c.Key, c.Value, c.Deleted)); len(got) == 2 {
			return store.ErrStop
		}
		return nil
	})
	if diff := cmp.Diff([]string{"a=1 false", "b= true"}, got); err != nil || diff != "" {
		t.Errorf("changes: error %v (-want +got):\n%s", err, diff)
	}
}
