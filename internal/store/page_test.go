package store_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
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

// Messages that are deleted during a read are no damage.
func TestLog_ReadEndsIfTheRestIsDeleted(t *testing.T) {
	t.Parallel()
	var log engineLog
	s := open(t, t.TempDir(), func(c *store.Config) { c.Logger = log.logger(slog.LevelWarn) })
	l := openLog(t, s, store.LogConfig{})
	const messages = 80 // more than a page
	for range messages {
		appendText(t, l, "log.a", strings.Repeat("x", 64<<10))
	}
	for _, left := range []string{"log.b", ""} { // a later subject has messages, or there are none
		if left != "" {
			appendText(t, l, left, "the last one")
		}
		read := 0
		err := l.Read(t.Context(), store.ReadFrom{Subject: "log.a"}, func(store.Message) error {
			if read++; read == 1 {
				return l.Purge(t.Context(), "log.a")
			}
			return nil
		})
		if err != nil || read == 0 || read == messages {
			t.Errorf("got %d messages and error %v, want a part of %d without one", read, err, messages)
		}
		if text := log.String(); strings.Contains(text, "damaged") {
			t.Errorf("got log %q, want no damage", text)
		}
		for range messages {
			appendText(t, l, "log.a", strings.Repeat("x", 64<<10))
		}
	}
}

// If the files of the last messages are lost while the store runs, the read ends before them, and
// the damage is logged.
func TestLog_ReadReportsLostRest(t *testing.T) {
	t.Parallel()
	var log engineLog
	dir := t.TempDir()
	s := open(t, dir)
	l := openLog(t, s, store.LogConfig{})
	const messages = 200 // more than one file
	for range messages {
		appendText(t, l, "log.a", strings.Repeat("x", 64<<10))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	l = openLog(t, open(t, dir, func(c *store.Config) { c.Logger = log.logger(slog.LevelError) }), store.LogConfig{}) // it has read no file yet
	files, err := filepath.Glob(filepath.Join(dir, "store", "jetstream", "$G", "streams", "LOG", "msgs", "*.blk"))
	if err != nil || len(files) < 2 {
		t.Fatalf("got files %q and error %v, want several", files, err)
	}
	if err := os.Remove(files[len(files)-1]); err != nil {
		t.Fatal(err)
	}
	read := 0
	err = l.Read(t.Context(), store.ReadFrom{}, func(store.Message) error {
		read++
		return nil
	})
	if err != nil || read == 0 || read == messages {
		t.Errorf("got %d messages and error %v, want a part of %d without one", read, err, messages)
	}
	if text := log.String(); !strings.Contains(text, "the rest cannot be read") {
		t.Errorf("got log %q, want the damage", text)
	}
}

// A store that is not available is no damage: the search for the next readable message fails.
func TestLog_SkipDamageReportsOutage(t *testing.T) {
	t.Parallel()
	var log engineLog
	s := open(t, t.TempDir(), func(c *store.Config) { c.Logger = log.logger(slog.LevelWarn) })
	l := openLog(t, s, store.LogConfig{})
	for range 3 {
		appendText(t, l, "log.a", "x")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if next, err := l.SkipDamage(ctx, 1); err == nil {
		t.Errorf("cancelled: got %d without an error", next)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	next, err := l.SkipDamage(t.Context(), 1)
	wantErr(t, fmt.Sprint("search, which found ", next), err, store.ErrUnavailable)
	if text := log.String(); strings.Contains(text, "damaged") {
		t.Errorf("got log %q, want no damage", text)
	}
}
