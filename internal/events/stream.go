package events

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/strictjson"
)

const (
	logName = "EVENTS"  // in a shared store
	prefix  = "events." // of the subject, before the request's id

	allSubjects = prefix + "*"

	maxAge = 15 * time.Minute
	share  = 0.05 // of the store's bytes

	// lookups is the limit of the semaphore for reads of the log. More would not be
	// served sooner: waiting readers queue here, not in the engine, where requests
	// time out.
	lookups = 32

	// maxEvent is the size up to which an event is stored completely. The response
	// of a request can be longer than a message may be; its record contains it
	// anyway.
	maxEvent = 256 << 10

	// checkInterval is how long a reader waits without an event until it checks
	// whether its request has ended.
	checkInterval = 5 * time.Second
)

// ErrGone is returned if the requested events have expired or never existed.
var ErrGone = errors.New("the events are gone")

// eventLog is the used part of store.Log. Subjects are one request's, or allSubjects.
type eventLog interface {
	Append(ctx context.Context, subject string, data []byte, opts store.AppendOptions) (uint64, error)
	Last(ctx context.Context, subject string) (store.Message, error)
	Next(ctx context.Context, subject string, from uint64) (store.Message, error)
	Read(ctx context.Context, from store.ReadFrom, fn func(store.Message) error) error
	Follow(ctx context.Context, from uint64, fn func(store.Message) error) error
	Purge(ctx context.Context, subject string) error
	Info(ctx context.Context) (store.LogInfo, error)
	Lifetime() context.Context
}

// Config configures a Stream. All fields are required.
type Config struct {
	// HasEnded reports whether a request has ended, or is not stored any more. It
	// reports false if that is not known.
	HasEnded func(ctx context.Context, requestID string) bool
	Logger   *slog.Logger
}

// Stream contains the events of all requests. Run must be running for queued events to
// be published, and for new events to reach readers.
type Stream struct {
	cfg     Config
	log     eventLog
	lookups chan struct{} // semaphore of reads of the log
	newest  atomic.Uint64 // newest sequence that the follower read, or found at its start
	began   atomic.Uint64 // sequence before the oldest one at the follower's start
	queue   *publishQueue
	// The timings are fields because tests need others.
	appendTimeout, checkInterval time.Duration

	mu      sync.Mutex
	readers map[string][]*reader
}

// Open opens the stream of the store. The events of an embedded store stay in this
// process, because it has no others.
func Open(ctx context.Context, s *store.Store, cfg Config) (*Stream, error) {
	if !store.IsShared(s) {
		limit := min(int(share*float64(s.Status().Cap)), maxMemoryLog)
		return openStream(ctx, cfg, newMemoryLog(limit, time.Now))
	}
	log, err := s.Log(ctx, logConfig())
	if err != nil {
		return nil, fmt.Errorf("open events: %w", err)
	}
	return openStream(ctx, cfg, log)
}

// logConfig describes the log in a shared store.
func logConfig() store.LogConfig {
	return store.LogConfig{Name: logName, Subjects: []string{allSubjects}, MaxAge: maxAge, Share: share, Memory: true, Evict: true}
}

func openStream(ctx context.Context, cfg Config, log eventLog) (*Stream, error) {
	stream := newStream(cfg, log)
	info, err := log.Info(ctx)
	if err != nil {
		return nil, fmt.Errorf("open events: %w", err)
	}
	stream.storeBounds(info)
	return stream, nil
}

func newStream(cfg Config, log eventLog) *Stream {
	return &Stream{
		cfg: cfg, log: log, lookups: make(chan struct{}, lookups), readers: map[string][]*reader{},
		queue: newPublishQueue(), appendTimeout: appendTimeout, checkInterval: checkInterval,
	}
}

func (s *Stream) appendEncoded(ctx context.Context, e encodedEvent) error {
	_, err := s.log.Append(ctx, prefix+e.requestID, e.data, store.AppendOptions{})
	return err
}

// encodeEvent returns the event as the log stores it. A response that is too long for
// an event is left out: a final event without Response means that the record contains it.
func encodeEvent(ev *contract.Event) ([]byte, error) {
	if !store.ValidID(ev.RequestID) {
		return nil, errors.New("invalid request id")
	}
	data, err := strictjson.Marshal(ev)
	if err == nil && len(data) > maxEvent && ev.Response != nil {
		short := *ev
		short.Response = nil
		data, err = strictjson.Marshal(&short)
	}
	return data, err
}

// Delete removes the events of a request, queued ones included.
func (s *Stream) Delete(ctx context.Context, requestID string) error {
	if !store.ValidID(requestID) {
		return nil
	}
	s.queue.remove(requestID)
	if err := s.log.Purge(ctx, prefix+requestID); err != nil {
		return fmt.Errorf("delete events of request %s: %w", requestID, err)
	}
	return nil
}

// Position returns the sequence of the newest event of any request. Events that are
// published from now on come after it.
func (s *Stream) Position(ctx context.Context) (uint64, error) {
	newest := s.newest.Load()
	m, err := s.log.Last(ctx, allSubjects)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return 0, fmt.Errorf("position of events: %w", err)
	}
	return max(newest, m.Seq), nil
}

// Run publishes queued events and sends new events to the readers until ctx ends.
// Without it, readers get only the events stored when they started.
func (s *Stream) Run(ctx context.Context) error {
	group := run.New(ctx)
	group.Go("publish events", func(ctx context.Context) error {
		s.publishQueued(ctx)
		return nil
	})
	group.Go("follow events", func(ctx context.Context) error {
		if err := s.followLog(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("follow events: %w", err)
		}
		return nil
	})
	return group.Wait()
}

// followLog follows one log after the other: a restart of the engine, or of the server
// of the store, starts an empty one. The readers of the earlier one get ErrGone at
// once, because the lost event can be the final one, and no further one would show the
// loss.
func (s *Stream) followLog(ctx context.Context) error {
	for {
		lifetime := s.log.Lifetime()
		err := s.followCurrent(ctx, lifetime)
		if ctx.Err() != nil || lifetime.Err() == nil {
			return err
		}
	}
}

// storeBounds stores the first and the last sequence of the log.
func (s *Stream) storeBounds(info store.LogInfo) {
	s.newest.Store(info.Last)
	s.began.Store(max(info.First, 1) - 1)
}

// followCurrent sends the events of the log to the readers until its lifetime ends.
func (s *Stream) followCurrent(ctx, lifetime context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(lifetime, cancel)
	defer stop()
	info, err := s.log.Info(ctx)
	if err != nil {
		return err
	}
	next := info.Last + 1
	s.storeBounds(info)
	s.forEachReader((*reader).markOverflow) // earlier readers read the log themselves
	return s.log.Follow(ctx, next, func(m store.Message) error {
		if m.Seq != next {
			// The log evicted events faster than this follower read.
			s.forEachReader((*reader).markOverflow)
		}
		next = m.Seq + 1
		s.newest.Store(m.Seq)
		s.dispatchMessage(m)
		return nil
	})
}

// queuedEvent is an event in the queue of a reader.
type queuedEvent struct {
	seq uint64
	ev  *contract.Event
}

// dispatchMessage queues an event for the readers of its request. Without readers it
// is not decoded.
func (s *Stream) dispatchMessage(m store.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	readers := s.readers[strings.TrimPrefix(m.Subject, prefix)]
	if len(readers) == 0 {
		return
	}
	ev, err := decodeEvent(m)
	for _, r := range readers {
		if err != nil {
			r.markLost()
		} else {
			r.enqueue(queuedEvent{seq: m.Seq, ev: ev})
		}
	}
}

// forEachReader calls fn for every reader.
func (s *Stream) forEachReader(fn func(*reader)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, readers := range s.readers {
		for _, r := range readers {
			fn(r)
		}
	}
}

// markReadersLost makes the readers of a request return ErrGone.
func (s *Stream) markReadersLost(requestID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.readers[requestID] {
		r.markLost()
	}
}

// decodeEvent decodes an event. An invalid one counts as gone.
func decodeEvent(m store.Message) (*contract.Event, error) {
	ev := new(contract.Event)
	if err := strictjson.UnmarshalDeep(m.Data, ev); err != nil {
		return nil, fmt.Errorf("event %d: %w: %w", m.Seq, ErrGone, err)
	}
	return ev, nil
}
