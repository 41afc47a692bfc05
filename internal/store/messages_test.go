package store_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// subscribe receives the messages of a topic in the background. Until the subscription is
// active, messages are not delivered. Therefore sender sends "ready" until it arrives.
func subscribe(t *testing.T, s, sender *store.Store, topic string) <-chan string {
	t.Helper()
	got := make(chan string, 100)
	ready := make(chan struct{}, 100)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- s.Subscribe(ctx, topic, func(data []byte) {
			if string(data) == "ready" {
				ready <- struct{}{}
				return
			}
			got <- string(data)
		})
	}()
	t.Cleanup(func() {
		cancel()
		wantErr(t, "subscribe", testkit.Receive(t, ended), context.Canceled)
	})
	testkit.Eventually(t, "the subscription is active", func() bool {
		_ = sender.Broadcast(topic, []byte("ready"))
		select {
		case <-ready:
			return true
		case <-time.After(10 * time.Millisecond):
			return false
		}
	})
	return got
}

func broadcast(t *testing.T, s *store.Store, topic, text string) {
	t.Helper()
	if err := s.Broadcast(topic, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

func TestBroadcast_ReachesOtherProcessesOnly(t *testing.T) {
	srv := teststore.Serve(t, t.TempDir(), -1)
	a := teststore.OpenShared(t, srv, "a")
	b := teststore.OpenShared(t, srv, "b")
	atA, atB, other := subscribe(t, a, b, "requests"), subscribe(t, b, a, "requests"), subscribe(t, b, a, "fleet")
	broadcast(t, a, "requests", "from a")
	broadcast(t, a, "fleet", "of another topic")
	broadcast(t, b, "requests", "from b")
	for name, tt := range map[string]struct {
		got  <-chan string
		want string
	}{"at a": {atA, "from b"}, "at b": {atB, "from a"}, "other topic": {other, "of another topic"}} {
		if got := testkit.Receive(t, tt.got); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

func TestBroadcast_KeepsOrder(t *testing.T) {
	srv := teststore.Serve(t, t.TempDir(), -1)
	a := teststore.OpenShared(t, srv, "a")
	got := subscribe(t, teststore.OpenShared(t, srv, "b"), a, "requests")
	want := strings.Fields("1 2 3 4 5 6 7 8 9 10")
	for _, text := range want {
		broadcast(t, a, "requests", text)
	}
	var received []string
	for range want {
		received = append(received, testkit.Receive(t, got))
	}
	if diff := cmp.Diff(want, received); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func TestSubscribe_SurvivesServerRestart(t *testing.T) {
	dir, port := t.TempDir(), testkit.FreePort(t)
	srv := teststore.Serve(t, dir, port)
	a := teststore.OpenShared(t, srv, "a")
	got := subscribe(t, teststore.OpenShared(t, srv, "b"), a, "requests")
	srv.Stop()
	testkit.Eventually(t, "the connection is interrupted", func() bool { return a.Broadcast("requests", nil) != nil })
	wantErr(t, "broadcast without the server", a.Broadcast("requests", nil), store.ErrUnavailable)
	teststore.Serve(t, dir, port)
	testkit.Eventually(t, "a message arrives after the restart", func() bool {
		_ = a.Broadcast("requests", []byte("after the restart"))
		select {
		case text := <-got:
			return text == "after the restart"
		case <-time.After(10 * time.Millisecond):
			return false
		}
	})
}

func TestSubscribe_EndsWithStore(t *testing.T) {
	s := teststore.OpenShared(t, teststore.Serve(t, t.TempDir(), -1), "a")
	ended := make(chan error, 1)
	go func() { ended <- s.Subscribe(t.Context(), "requests", func([]byte) {}) }()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wantErr(t, "subscribe", testkit.Receive(t, ended), store.ErrUnavailable)
}

func TestBroadcast_RejectsInvalidMessages(t *testing.T) {
	s := teststore.OpenShared(t, teststore.Serve(t, t.TempDir(), -1), "a")
	wantErr(t, "2 MiB", s.Broadcast("requests", make([]byte, 2<<20)), store.ErrTooLarge)
	for _, topic := range []string{"", "a b", "a..b", "a.*"} {
		if err := s.Broadcast(topic, nil); err == nil {
			t.Errorf("topic %q: got no error, want one", topic)
		}
	}
}

func TestBroadcast_IsIgnoredByEmbeddedStore(t *testing.T) {
	s := open(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- s.Subscribe(ctx, "requests", func([]byte) { t.Error("got a message of the same process, want none") })
	}()
	broadcast(t, s, "requests", "no other process")
	cancel()
	wantErr(t, "subscribe", testkit.Receive(t, ended), context.Canceled)
}
