package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// engineLog collects the log of a store. It is safe for concurrent use.
type engineLog struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write drops the warnings of the engine about a slow machine.
func (l *engineLog) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("took too long")) || bytes.Contains(p, []byte("Readloop processing time")) {
		return len(p), nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *engineLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *engineLog) logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: level}))
}

func TestEngine_HandlesSurviveRestart(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	var log engineLog
	s := teststore.Open(t, func(c *store.Config) { c.Logger = log.logger(slog.LevelInfo) })
	b := bucket(t, s, store.BucketConfig{})
	l := openLog(t, s, store.LogConfig{})
	events := openLog(t, s, store.LogConfig{Name: "EVENTS", Subjects: []string{"events.>"}, Memory: true})
	rev := must[uint64](t)(b.Create(ctx, "a", []byte("1")))
	big := bytes.Repeat([]byte("big"), 300_000)
	must[uint64](t)(b.Create(ctx, "big", big))
	appendText(t, l, "log.a", "1")
	before := appendText(t, events, "events.a", "1")

	memory, files := events.Lifetime(), l.Lifetime()

	s.FailEngine("simulated by a test")

	testkit.WaitClosed(t, memory.Done())
	if files.Err() != nil || events.Lifetime().Err() != nil {
		t.Errorf("got lifetime errors %v of the log in files and %v of the new log in memory, want none", files.Err(), events.Lifetime().Err())
	}
	if _, err := b.Update(ctx, "a", []byte("2"), rev); err != nil {
		t.Errorf("update: %v", err)
	}
	if got := must[store.Entry](t)(b.Get(ctx, "big")); !bytes.Equal(got.Value, big) {
		t.Errorf("large value: got %d bytes, want %d", len(got.Value), len(big))
	}
	appendText(t, l, "log.a", "2")
	if diff := cmp.Diff([]string{"1", "2"}, texts(t, l, store.ReadFrom{})); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	if after := appendText(t, events, "events.a", "2"); after <= before {
		t.Errorf("log in memory: got sequence %d after %d, want a larger one", after, before)
	}
	if diff := cmp.Diff([]string{"2"}, texts(t, events, store.ReadFrom{})); diff != "" {
		t.Errorf("log in memory (-want +got):\n%s", diff)
	}
	for _, want := range []string{"the engine failed", "simulated by a test", "the engine is running again"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("got a log without %q:\n%s", want, log.String())
		}
	}
}

// After a restart the engine is probed at once, so that writes are not rejected until the
// next check of its health.
func TestEngine_IsWritableAfterRestart(t *testing.T) {
	t.Parallel()
	s := teststore.Open(t)
	if err := s.RestartAlone(t.Context(), "simulated by a test"); err != nil {
		t.Fatal(err)
	}
	if got := s.Status(); !got.Ready {
		t.Errorf("got %+v, want it ready", got)
	}
}

func TestEngine_FollowerSurvivesRestart(t *testing.T) {
	t.Parallel()
	s := teststore.Open(t)
	l := openLog(t, s, store.LogConfig{})
	appendText(t, l, "log.a", "0")
	got := make(chan string, 100)
	done := make(chan error, 1)
	go func() {
		done <- l.Follow(t.Context(), 1, func(m store.Message) error {
			got <- string(m.Data)
			if string(m.Data) == "3" {
				return store.ErrStop
			}
			return nil
		})
	}()
	for i := range 4 {
		if text := testkit.Receive(t, got); text != fmt.Sprint(i) {
			t.Fatalf("got %s, want %d", text, i)
		}
		if i < 3 {
			s.FailEngine("simulated by a test")
			appendText(t, l, "log.a", fmt.Sprint(i+1))
		}
	}
	if err := testkit.Receive(t, done); err != nil {
		t.Errorf("follow: %v", err)
	}
}

// If the engine restarts during concurrent writes, each write is acknowledged once and stored
// once.
func TestEngine_WritersSurviveRestart(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := teststore.Open(t)
	b := bucket(t, s, store.BucketConfig{})
	l := openLog(t, s, store.LogConfig{})
	var written, running atomic.Int64
	var wg sync.WaitGroup
	running.Store(4)
	const each = 400
	for w := range 4 {
		wg.Go(func() {
			defer running.Add(-1)
			rev, last := uint64(0), uint64(0)
			for i := range each {
				var err error
				if rev == 0 {
					rev, err = b.Create(ctx, fmt.Sprint(w), fmt.Append(nil, i))
				} else {
					rev, err = b.Update(ctx, fmt.Sprint(w), fmt.Append(nil, i), rev)
				}
				if err == nil {
					last, err = l.Append(ctx, fmt.Sprint("log.", w), fmt.Append(nil, i), store.AppendOptions{
						ID: fmt.Sprintf("%d:%d", w, i), ExpectLast: &last,
					})
				}
				if err != nil {
					t.Errorf("writer %d, write %d: got error %v, want nil", w, i, err)
					return
				}
				written.Add(1)
			}
		})
	}
	for n := int64(1); running.Load() > 0 && n <= 5; n++ {
		testkit.Eventually(t, "the writers continue", func() bool { return written.Load() >= 4*each/8*n || running.Load() == 0 })
		s.FailEngine("simulated by a test")
	}
	wg.Wait()
	for w := range 4 {
		if got := must[store.Entry](t)(b.Get(ctx, fmt.Sprint(w))); string(got.Value) != fmt.Sprint(each-1) {
			t.Errorf("key %d: got %s, want %d", w, got.Value, each-1)
		}
		got := texts(t, l, store.ReadFrom{Subject: fmt.Sprint("log.", w)})
		for i := range got {
			if got[i] != fmt.Sprint(i) {
				t.Fatalf("message %d of writer %d: got %s, want %d", i, w, got[i], i)
			}
		}
		if len(got) != each {
			t.Errorf("writer %d: got %d messages, want %d", w, len(got), each)
		}
	}
	if s.Restarts() == 0 {
		t.Error("got no restart of the engine, want at least one")
	}
}

func TestStatus_ReportsHealth(t *testing.T) {
	var free atomic.Int64
	free.Store(1 << 40)
	s := teststore.Open(t, func(c *store.Config) {
		c.FreeSpace = func() (store.Space, error) { return store.Space{Bytes: free.Load(), Files: -1}, nil }
		c.MaxBytes = 1 << 20
	})
	b := bucket(t, s, store.BucketConfig{})
	must[uint64](t)(b.Put(t.Context(), "a", make([]byte, 1000)))
	got := s.Status()
	if !got.Ready || got.Err != nil || got.Used < 1000 || got.Cap != 1<<20 || got.Free != 1<<40 || got.Mode != "embedded" {
		t.Errorf("healthy store: got %+v, want it ready, with its usage", got)
	}
	free.Store(1)
	if got := s.Status(); got.Ready || !errors.Is(got.Err, store.ErrFull) {
		t.Errorf("full disk: got %+v, want it not ready and %v", got, store.ErrFull)
	}
	free.Store(1 << 40)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := s.Status(); got.Ready || !errors.Is(got.Err, store.ErrUnavailable) {
		t.Errorf("closed store: got %+v, want it not ready and %v", got, store.ErrUnavailable)
	}
}

func TestClose_EndsCallsInProgress(t *testing.T) {
	s := teststore.Open(t)
	b := bucket(t, s, store.BucketConfig{})
	l := openLog(t, s, store.LogConfig{})
	appendText(t, l, "log.a", "1")
	following := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- l.Follow(t.Context(), 1, func(store.Message) error { close(following); return nil })
	}()
	testkit.WaitClosed(t, following)
	for range 2 {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	wantErr(t, "follow", testkit.Receive(t, done), store.ErrUnavailable)
	_, get := b.Get(t.Context(), "a")
	_, put := b.Put(t.Context(), "a", nil)
	_, info := l.Info(t.Context())
	_, openBucket := s.Bucket(t.Context(), store.BucketConfig{Name: "B"})
	for call, err := range map[string]error{
		"get": get, "put": put, "info": info, "bucket": openBucket, "delete": b.Delete(t.Context(), "a"),
		"scan": b.Scan(t.Context(), "", nil),
	} {
		wantErr(t, call+" of a closed store", err, store.ErrUnavailable)
	}
}

func TestStore_CallsEndWithContext(t *testing.T) {
	s := teststore.Open(t)
	b := bucket(t, s, store.BucketConfig{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := b.Get(ctx, "a")
	wantErr(t, "get", err, context.Canceled)
	wantErr(t, "get", err, store.ErrUnavailable)
	_, err = b.Put(ctx, "a", nil)
	wantErr(t, "put", err, context.Canceled)
	ended, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	_, err = b.Get(ended, "a")
	wantErr(t, "get after the deadline", err, context.DeadlineExceeded)
}

func TestEngine_LogsNoWarningsAndDoesNotListen(t *testing.T) {
	var log engineLog
	s := teststore.Open(t, func(c *store.Config) { c.Logger = log.logger(slog.LevelDebug) })
	must[uint64](t)(bucket(t, s, store.BucketConfig{}).Put(t.Context(), "a", []byte("canary-51c2")))
	if conn, err := net.Dial("tcp", "127.0.0.1:4222"); err == nil {
		_ = conn.Close()
		t.Skip("another server listens on the default port of the engine")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, unwanted := range []string{"canary-51c2", "level=WARN", "level=ERROR", "Listening"} {
		if strings.Contains(log.String(), unwanted) {
			t.Errorf("got a log with %q:\n%s", unwanted, log.String())
		}
	}
	if !strings.Contains(log.String(), "level=DEBUG") {
		t.Error("got no debug message of the engine, want some")
	}
}
