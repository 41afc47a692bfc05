package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	followBatch = 256
	// followIdle is how long the engine keeps a consumer nobody asks for: one
	// whose process was killed.
	followIdle = 2 * time.Minute
)

// Follow calls fn for every message from a sequence on, in order: first for
// those that are there, then for those that come. It returns when ctx ends
// (ctx.Err()), when fn fails, or nil when fn returns ErrStop. A restart of the
// engine is a pause. From 0 = only what comes from now on.
func (l *Log) Follow(ctx context.Context, from uint64, fn func(Message) error) error {
	if from == 0 {
		info, err := l.Info(ctx)
		if err != nil {
			return err
		}
		from = info.Last + 1
	}
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		before := from
		err := l.followOnce(ctx, &from, fn)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if own, ok := errors.AsType[callbackError](err); ok {
			return stopped(own.err)
		}
		if err := classify(err); err != nil && !transient(err) {
			return fmt.Errorf("follow %s: %w", l.name, err)
		}
		if from != before {
			pause = firstPause
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.store.closed:
			return fmt.Errorf("follow %s: %w: it is closed", l.name, ErrUnavailable)
		case <-time.After(pause):
		}
	}
}

// callbackError keeps an error of the caller's from being classified as one of
// the engine's.
type callbackError struct{ err error }

func (e callbackError) Error() string { return e.err.Error() }
func (e callbackError) Unwrap() error { return e.err }

// followOnce follows with one consumer for as long as that works, and moves
// *from past what fn has had.
func (l *Log) followOnce(ctx context.Context, from *uint64, fn func(Message) error) error {
	ctx, cancel := l.store.engine.alive(ctx)
	defer cancel()
	create, created := context.WithTimeout(ctx, attemptLimit)
	defer created()
	consumer, err := l.store.engine.js.CreateConsumer(create, l.name, jetstream.ConsumerConfig{
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       *from,
		AckPolicy:         jetstream.AckNonePolicy,
		InactiveThreshold: followIdle,
		MemoryStorage:     true,
		Replicas:          1,
	})
	if err != nil {
		return err
	}
	defer l.dropConsumer(consumer.CachedInfo().Name)
	for {
		batch, err := consumer.Fetch(followBatch, jetstream.FetchContext(ctx))
		if err != nil {
			return err
		}
		if err := l.deliver(ctx, batch, from, fn); err != nil {
			return err
		}
	}
}

// deliver hands the messages of one fetch on.
func (l *Log) deliver(ctx context.Context, batch jetstream.MessageBatch, from *uint64, fn func(Message) error) error {
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
			seq := meta.Sequence.Stream
			if seq < *from {
				continue
			}
			if err := fn(Message{Seq: seq, At: meta.Timestamp, Subject: msg.Subject(), Data: msg.Data()}); err != nil {
				return callbackError{err}
			}
			*from = seq + 1
		}
	}
}

// dropConsumer tidies up behind a follower; what it cannot reach goes by itself.
func (l *Log) dropConsumer(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = l.store.engine.js.DeleteConsumer(ctx, l.name, name)
}
