package store_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// If a connection ends within a page, the next attempt continues after the messages that were
// read. Otherwise a slow network could prevent that a page is ever read.
func TestLog_ReadContinuesInterruptedPage(t *testing.T) {
	t.Parallel()
	const messages, size = 40, 64 << 10 // less than a page
	srv := teststore.Serve(t, t.TempDir(), -1)
	addr := startProxy(t, strings.TrimPrefix(srv.URL, "nats://"), func(client, server net.Conn) {
		_, _ = io.CopyN(client, server, messages*size*2/3) // per connection
		_, _ = client.Close(), server.Close()
	}, func(server, client net.Conn) { _, _ = io.Copy(server, client) })
	s, err := store.Open(t.Context(), store.Config{URL: "nats://" + addr, Owner: "a"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	l := openLog(t, s, store.LogConfig{})
	var want []string
	for i := range messages {
		text := fmt.Sprint(i, " ")
		appendText(t, l, "log.a", text+strings.Repeat("x", size))
		want = append(want, text)
	}
	var got []string
	err = l.Read(t.Context(), store.ReadFrom{}, func(m store.Message) error {
		text, _, _ := strings.Cut(string(m.Data), "x")
		got = append(got, text)
		return nil
	})
	if err != nil {
		t.Errorf("read: got error %v, want nil", err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}
