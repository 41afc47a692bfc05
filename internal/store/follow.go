package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/caprouter/caprouter/internal/resilience"
)

const (
	followBatch = 256
	// followIdle is how long the engine keeps an unused consumer, for example that
	// of a process that was killed.
	followIdle = 2 * time.Minute
)

// Follow calls fn for every message from a sequence on, in order: first for the
// stored ones, then for each new one. It returns when ctx ends (ctx.Err()), when fn
// fails, or nil when fn returns ErrStop. A restart of the engine is a pause. From
// 0 = only messages that are appended from now on.
func (l *Log) Follow(ctx context.Context, from uint64, fn func(Message) error) error {
	if from == 0 {
		info, err := l.Info(ctx)
		if err != nil {
			return err
		}
		from = info.Last + 1
	}
	f := follower{store: l.store, stream: l.name, next: from}
	return f.run(ctx, fn)
}

// FollowSubjects is Follow for the messages of some subjects, which may have wildcards and
// must not overlap. From must not be 0.
func (l *Log) FollowSubjects(ctx context.Context, from uint64, subjects []string, fn func(Message) error) error {
	f := follower{store: l.store, stream: l.name, filters: subjects, next: max(from, 1)}
	return f.run(ctx, fn)
}

// follower reads a stream and waits for new messages. One goroutine owns it.
type follower struct {
	store   *Store
	stream  string
	filters []string // subjects, may have wildcards; none = all
	next    uint64   // sequence of the next message
}

// run calls fn for each message. It makes a new consumer whenever the engine lost
// the one before, and continues behind the last message.
func (f *follower) run(ctx context.Context, fn func(Message) error) error {
	backoff := resilience.Backoff{Min: minPause, Max: maxPause}
	for {
		before := f.next
		err := f.consume(ctx, fn)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if failed, ok := errors.AsType[callbackError](err); ok {
			return ignoreStop(failed.err)
		}
		if err := classifyError(err); err != nil && !isTransient(err) {
			return fmt.Errorf("follow %s: %w", f.stream, err)
		}
		if f.next != before {
			backoff.Reset()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-f.store.closed:
			return fmt.Errorf("follow %s: %w: it is closed", f.stream, ErrUnavailable)
		case <-time.After(backoff.Next()):
		}
	}
}

// callbackError marks an error of the callback, so that it is not classified as
// one of the engine.
type callbackError struct{ err error }

func (e callbackError) Error() string { return e.err.Error() }
func (e callbackError) Unwrap() error { return e.err }

// consume follows with one consumer until that fails.
func (f *follower) consume(ctx context.Context, fn func(Message) error) error {
	ctx, cancel := f.store.engine.serverContext(ctx)
	defer cancel()
	create, created := context.WithTimeout(ctx, attemptTimeout)
	defer created()
	consumer, err := f.store.engine.js.CreateConsumer(create, f.stream, jetstream.ConsumerConfig{
		FilterSubjects:    f.filters,
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       f.next,
		AckPolicy:         jetstream.AckNonePolicy,
		InactiveThreshold: followIdle,
		MemoryStorage:     true,
		Replicas:          1,
	})
	if err != nil {
		return err
	}
	defer f.dropConsumer(consumer.CachedInfo().Name)
	for {
		batch, err := consumer.Fetch(followBatch, jetstream.FetchContext(ctx))
		if err != nil {
			return err
		}
		if err := f.deliver(ctx, batch, fn); err != nil {
			return err
		}
	}
}

// deliver calls fn for the messages of one fetch.
func (f *follower) deliver(ctx context.Context, batch jetstream.MessageBatch, fn func(Message) error) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case msg, ok := <-batch.Messages():
			if !ok {
				return batch.Error()
			}
			meta, err := msg.Metadata()
			if err != nil {
				return err
			}
			m := Message{
				Seq: meta.Sequence.Stream, At: meta.Timestamp,
				Subject: msg.Subject(), Data: msg.Data(), Origin: originOf(msg.Headers()), header: msg.Headers(),
			}
			if m.Seq < f.next {
				continue
			}
			if err := fn(m); err != nil {
				return callbackError{err}
			}
			f.next = m.Seq + 1
		}
	}
}

// dropConsumer deletes a consumer. If that fails, the engine drops it after
// followIdle.
func (f *follower) dropConsumer(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = f.store.engine.js.DeleteConsumer(ctx, f.stream, name)
}
