package events

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/strictjson"
)

const (
	logName = "EVENTS"
	prefix  = "events." // of the subject; the request's id follows

	allSubjects = prefix + "*"

	maxAge = 15 * time.Minute
	share  = 0.05 // of the store's bytes

	// lookups is how many readers look into the log at a time. More would not be
	// served sooner: a crowd that comes at once waits here, not in the engine, where
	// waiting has its limits.
	lookups = 32

	// maxEvent is the longest event that is kept whole, in bytes. The answer of a
	// request can be longer than a message may be, and lies in its record anyway.
	maxEvent = 256 << 10
)

// ErrGone says that events a reader asked for are not kept any more, or never
// were.
var ErrGone = errors.New("the events are gone")

// eventLog is what a stream needs of a store.Log.
type eventLog interface {
	Append(ctx context.Context, subject string, data []byte, opts store.AppendOptions) (uint64, error)
	Last(ctx context.Context, subject string) (store.Message, error)
	Next(ctx context.Context, subject string, from uint64) (store.Message, error)
	Read(ctx context.Context, from store.ReadFrom, fn func(store.Message) error) error
	Follow(ctx context.Context, from uint64, fn func(store.Message) error) error
	Purge(ctx context.Context, subject string) error
	Info(ctx context.Context) (store.LogInfo, error)
}

// Stream is the events of all requests. Make one with Open; somebody must Run it.
type Stream struct {
	log     eventLog
	lookups chan struct{} // holds a token for each that is under way
	newest  atomic.Uint64 // that the follower saw, or found when it came

	mu      sync.Mutex
	readers map[string][]*reader
}

// Open opens the stream of the store.
func Open(ctx context.Context, s *store.Store) (*Stream, error) {
	log, err := s.Log(ctx, store.LogConfig{
		Name: logName, Subjects: []string{allSubjects}, MaxAge: maxAge, Share: share, Memory: true, Evict: true,
	})
	if err != nil {
		return nil, fmt.Errorf("open events: %w", err)
	}
	stream := New(log)
	info, err := log.Info(ctx)
	if err != nil {
		return nil, fmt.Errorf("open events: %w", err)
	}
	stream.newest.Store(info.Last)
	return stream, nil
}

// New makes a stream of a log that forgets with the process.
func New(log *store.Log) *Stream { return newStream(log) }

func newStream(log eventLog) *Stream {
	return &Stream{log: log, lookups: make(chan struct{}, lookups), readers: map[string][]*reader{}}
}

// Publish tells everybody who follows the request, now or within the next minutes.
// Where that fails they are told that events are gone. An answer too long for an
// event is left out of it: a final event without Response says that the record has
// it.
func (s *Stream) Publish(ctx context.Context, ev *contract.Event) error {
	err := s.appendEvent(ctx, ev)
	if err != nil {
		s.markReadersLost(ev.RequestID)
		return fmt.Errorf("event %s of request %s: %w", ev.Type, ev.RequestID, err)
	}
	return nil
}

func (s *Stream) appendEvent(ctx context.Context, ev *contract.Event) error {
	if !validID(ev.RequestID) {
		return errors.New("it has no proper request id")
	}
	data, err := strictjson.Marshal(ev)
	if err != nil {
		return err
	}
	if len(data) > maxEvent && ev.Response != nil {
		short := *ev
		short.Response = nil
		if data, err = strictjson.Marshal(&short); err != nil {
			return err
		}
	}
	_, err = s.log.Append(ctx, prefix+ev.RequestID, data, store.AppendOptions{})
	return err
}

// Delete removes the events of a request.
func (s *Stream) Delete(ctx context.Context, requestID string) error {
	if !validID(requestID) {
		return nil
	}
	if err := s.log.Purge(ctx, prefix+requestID); err != nil {
		return fmt.Errorf("forget events of request %s: %w", requestID, err)
	}
	return nil
}

// Position is the sequence of the newest event there is, of any request. What is
// published from now on comes after it.
func (s *Stream) Position(ctx context.Context) (uint64, error) {
	newest := s.newest.Load()
	m, err := s.log.Last(ctx, allSubjects)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return 0, fmt.Errorf("position of events: %w", err)
	}
	return max(newest, m.Seq), nil
}

// Run feeds the readers until ctx ends. Without it they get what was there when
// they came, and no more.
func (s *Stream) Run(ctx context.Context) error {
	if err := s.followLog(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("follow events: %w", err)
	}
	return nil
}

func (s *Stream) followLog(ctx context.Context) error {
	info, err := s.log.Info(ctx)
	if err != nil {
		return err
	}
	next := info.Last + 1
	s.newest.Store(info.Last)
	s.forEachReader((*reader).markOverflow) // who was here before looks itself for what came before
	return s.log.Follow(ctx, next, func(m store.Message) error {
		if m.Seq != next {
			// The engine was restarted and its memory is gone, or it forgot faster
			// than we read.
			s.forEachReader((*reader).markOverflow)
		}
		next = m.Seq + 1
		s.newest.Store(m.Seq)
		s.dispatchMessage(m)
		return nil
	})
}

// queuedEvent is one event on its way to a reader.
type queuedEvent struct {
	seq uint64
	ev  *contract.Event
}

// dispatchMessage hands a message to those who follow its request. Most requests nobody
// follows: their events are not even decoded.
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

// markReadersLost tells the readers of a request that an event of it is lost.
func (s *Stream) markReadersLost(requestID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.readers[requestID] {
		r.markLost()
	}
}

// decodeEvent reads an event. One that cannot be read is gone.
func decodeEvent(m store.Message) (*contract.Event, error) {
	ev := new(contract.Event)
	if err := strictjson.Unmarshal(m.Data, ev); err != nil {
		return nil, fmt.Errorf("event %d: %w: %w", m.Seq, ErrGone, err)
	}
	return ev, nil
}

// validID reports whether the id can be part of a subject.
func validID(id string) bool {
	return id != "" && len(id) <= 128 && !strings.ContainsFunc(id, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_'
	})
}
