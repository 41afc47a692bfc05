package store_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// A connection delivers its messages in order. If large messages of one stream stall it, writes to
// other streams must not wait.
func TestLog_AppendsWhileAnotherLogIsStalled(t *testing.T) {
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
	limited, done := context.WithTimeout(ctx, testkit.Patience)
	defer done()
	if _, err := fast.Append(limited, "other.a", []byte("2"), store.AppendOptions{}); err != nil {
		t.Errorf("append to the other log: got error %v, want nil", err)
	} else if got, err := fast.Get(limited, 1); err != nil || string(got.Data) != "2" {
		t.Errorf("got %q and error %v, want the appended message", got.Data, err)
	}
	cancel()
	group.Stop(nil)
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

// forwardUntil copies until a read contains the text. It does not forward the text, and sends to
// stalled.
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
