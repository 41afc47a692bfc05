package store_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// The answer to a write is lost with the connection. The write is repeated over the next
// one at once: its context ends before an attempt without an answer would.
func TestLog_RepeatsWriteWhoseConnectionIsLost(t *testing.T) {
	srv := teststore.Serve(t, t.TempDir(), -1)
	var lost atomic.Bool
	addr := startProxy(t, strings.TrimPrefix(srv.URL, "nats://"),
		func(client, server net.Conn) { _, _ = io.Copy(client, server) },
		func(server, client net.Conn) {
			buf := make([]byte, 64<<10)
			for {
				n, err := client.Read(buf)
				if bytes.Contains(buf[:n], []byte("log.a")) && lost.CompareAndSwap(false, true) {
					_ = client.Close()
					return
				}
				if _, werr := server.Write(buf[:n]); err != nil || werr != nil {
					return
				}
			}
		})
	cfg := store.Config{URL: "nats://" + addr, Owner: "a"}
	cfg.SetAttemptTimeout(2 * testkit.Patience)
	s, err := store.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	log := must[*store.Log](t)(s.Log(t.Context(), store.LogConfig{Name: "LOG", Subjects: []string{"log.>"}}))
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	if _, err := log.Append(ctx, "log.a", []byte("1"), store.AppendOptions{}); err != nil || !lost.Load() {
		t.Errorf("got %v with a lost connection: %t, want the record to be written", err, lost.Load())
	}
}
