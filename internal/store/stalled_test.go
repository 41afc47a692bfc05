package store_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// A connection delivers its messages in order. One that does not get on, because the
// messages of one tenant are large and many, must not hold up another stream.
func TestLog_AppendsWhileTheMessagesOfAnotherLogAreStalled(t *testing.T) {
	srv := teststore.Serve(t, t.TempDir(), -1)
	stalled := make(chan struct{}, 1)
	addr := startProxy(t, strings.TrimPrefix(srv.URL, "nats://"),
		func(client, server net.Conn) { _, _ = io.Copy(client, server) },
		func(server, client net.Conn) { forwardUntil(server, client, []byte("log.slow"), stalled) })
	s, err := store.Open(t.Context(), store.Config{URL: "nats://" + addr, Owner: "a"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	slow := must[*store.Log](t)(s.Log(t.Context(), store.LogConfig{Name: "SLOW", Subjects: []string{"log.>"}}))
	fast := must[*store.Log](t)(s.Log(t.Context(), store.LogConfig{Name: "FAST", Subjects: []string{"other.>"}}))

	ctx, cancel := context.WithCancel(t.Context())
	group := run.New(ctx)
	group.Go("append to the slow log", func(ctx context.Context) error {
		_, _ = slow.Append(ctx, "log.slow", []byte("1"), store.AppendOptions{})
		return nil
	})
	testkit.Receive(t, stalled)
	bounded, done := context.WithTimeout(ctx, 10*time.Second)
	defer done()
	if _, err := fast.Append(bounded, "other.a", []byte("2"), store.AppendOptions{}); err != nil {
		t.Errorf("got %v, want that the other log does not wait", err)
	} else if got, err := fast.Get(bounded, 1); err != nil || string(got.Data) != "2" {
		t.Errorf("got %q and %v, want what was appended", got.Data, err)
	}
	cancel()
	group.Stop(nil)
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

// forwardUntil copies until a read contains the text, which it does not forward, and then
// sends to the channel.
func forwardUntil(to io.Writer, from io.Reader, text []byte, stalled chan<- struct{}) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if bytes.Contains(buf[:n], text) {
			stalled <- struct{}{}
			return
		}
		if _, werr := to.Write(buf[:n]); err != nil || werr != nil {
			return
		}
	}
}
