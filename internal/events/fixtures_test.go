package events

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// openLog returns the log of a stream in a new embedded store.
func openLog(t testing.TB) eventLog {
	t.Helper()
	s, err := Open(t.Context(), teststore.Open(t), testConfig())
	must(t, err)
	return s.log
}

// openSharedLog returns a log like that of a stream in a shared store.
func openSharedLog(t testing.TB) *store.Log {
	t.Helper()
	log, err := teststore.Open(t).Log(t.Context(), logConfig())
	must(t, err)
	return log
}

func testConfig() Config {
	return Config{HasEnded: func(context.Context, string) bool { return false }, Logger: slog.New(slog.DiscardHandler)}
}

// startStream returns a stream over the log, which runs until stop is called or the test
// ends.
func startStream(t testing.TB, log eventLog) (s *Stream, stop func()) {
	t.Helper()
	s = newStream(testConfig(), log)
	s.appendTimeout = testkit.Patience // otherwise a stalled machine loses events
	return s, runStream(t, s)
}

func runStream(t testing.TB, s *Stream) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := testkit.Receive(t, done); err != nil {
			t.Errorf("Run: got error %v, want none", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// publish publishes events of these types.
func publish(t testing.TB, s *Stream, id string, types ...contract.EventType) {
	t.Helper()
	for _, typ := range types {
		must(t, publishNow(t.Context(), s, event(id, typ)))
	}
}

// publishNow publishes an event and returns when it and all queued events are in the log or were
// dropped.
func publishNow(ctx context.Context, s *Stream, ev *contract.Event) error {
	if _, err := encodeEvent(ev); err != nil {
		return err
	}
	s.Enqueue(ev)
	for s.publishNext(ctx) {
	}
	return s.Err()
}

func event(id string, typ contract.EventType) *contract.Event {
	return &contract.Event{Type: typ, RequestID: id, At: time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventRecorder records the events that a reader received.
type eventRecorder struct {
	types []contract.EventType
	seqs  []uint64
}

func (h *eventRecorder) record(seq uint64, ev *contract.Event) error {
	h.types, h.seqs = append(h.types, ev.Type), append(h.seqs, seq)
	return nil
}

// errEnough ends a reader that does not wait for a final event.
var errEnough = errors.New("enough")

// until returns record, limited to n events.
func (h *eventRecorder) until(n int) func(uint64, *contract.Event) error {
	return func(seq uint64, ev *contract.Event) error {
		_ = h.record(seq, ev)
		if len(h.seqs) == n {
			return errEnough
		}
		return nil
	}
}

// asyncReader is a reader in its own goroutine.
type asyncReader struct {
	eventRecorder
	err      chan error
	received chan contract.EventType // each event as it is received; never full
}

type readFunc = func(context.Context, string, uint64, func(uint64, *contract.Event) error) error

func read(ctx context.Context, fn readFunc, id string, after uint64) *asyncReader {
	l := &asyncReader{err: make(chan error, 1), received: make(chan contract.EventType, 10_000)}
	go func() {
		l.err <- fn(ctx, id, after, func(seq uint64, ev *contract.Event) error {
			err := l.record(seq, ev)
			l.received <- ev.Type
			return err
		})
	}()
	return l
}

// faultyLog is a log with injected faults.
type faultyLog struct {
	eventLog
	append func() error             // if not nil, returns the error of Append
	info   error                    // error of Info
	last   error                    // error of Last
	next   error                    // error of Next
	follow func(store.Message) bool // reports whether the follower receives the message
	begun  chan struct{}            // closed when the follower begins

	lifetimes chan context.Context // if not nil, the results of Lifetime
}

func (m *faultyLog) Lifetime() context.Context {
	if m.lifetimes != nil {
		return <-m.lifetimes
	}
	return m.eventLog.Lifetime()
}

func (m *faultyLog) Append(ctx context.Context, subject string, data []byte, opts store.AppendOptions) (uint64, error) {
	if m.append != nil {
		if err := m.append(); err != nil {
			return 0, err
		}
	}
	return m.eventLog.Append(ctx, subject, data, opts)
}

func (m *faultyLog) Info(ctx context.Context) (store.LogInfo, error) {
	if m.info != nil {
		return store.LogInfo{}, m.info
	}
	return m.eventLog.Info(ctx)
}

func (m *faultyLog) Next(ctx context.Context, subject string, from uint64) (store.Message, error) {
	if m.next != nil {
		return store.Message{}, m.next
	}
	return m.eventLog.Next(ctx, subject, from)
}

func (m *faultyLog) Last(ctx context.Context, subject string) (store.Message, error) {
	if m.last != nil {
		return store.Message{}, m.last
	}
	return m.eventLog.Last(ctx, subject)
}

func (m *faultyLog) Follow(ctx context.Context, from uint64, fn func(store.Message) error) error {
	if m.begun != nil {
		close(m.begun)
	}
	return m.eventLog.Follow(ctx, from, func(msg store.Message) error {
		if m.follow != nil && !m.follow(msg) {
			return nil
		}
		return fn(msg)
	})
}
