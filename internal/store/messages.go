package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
)

// messagePrefix begins the subjects of messages between the processes that share a
// store. No log accepts them, so that they are not stored.
const messagePrefix = "caprouter.msg."

// Broadcast sends a message to the subscribers of a topic in the other processes that
// share the store, and returns without waiting for them. A message may be lost, for
// example while a process is not connected: it only makes faster what the stored data
// causes anyway. An embedded store has no other processes, and sends nothing.
//
// ErrTooLarge above the limit of the server (1 MiB by default), ErrUnavailable without
// a connection.
func (s *Store) Broadcast(topic string, data []byte) error {
	if s.cfg.URL == "" {
		return nil
	}
	err := checkSubject(topic, false)
	if err == nil {
		err = classifyError(s.engine.main.Publish(messagePrefix+topic, data))
	}
	if err != nil {
		return fmt.Errorf("broadcast to %s: %w", topic, err)
	}
	return nil
}

// Subscribe calls fn for each message of a topic, which may have wildcards, in the
// order in which one process sent them, until ctx ends (ctx.Err()) or the store is
// closed (ErrUnavailable). A process does not receive its own messages. The subscription
// survives a restart of the server; messages that are sent meanwhile, or while fn is
// too slow, are lost. For an embedded store, Subscribe only waits.
func (s *Store) Subscribe(ctx context.Context, topic string, fn func(data []byte)) error {
	err := checkSubject(topic, true)
	if err == nil && s.cfg.URL == "" {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.closed:
			err = fmt.Errorf("%w: the store is closed", ErrUnavailable)
		}
	}
	if err == nil {
		err = s.engine.receiveMessages(ctx, messagePrefix+topic, fn)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("subscribe to %s: %w", topic, err)
}

// receiveMessages calls fn for each message until ctx or the connection ends. The
// connection is the one that Broadcast uses, because the server does not deliver a
// message to the connection that sent it (nats.NoEcho).
func (e *engine) receiveMessages(ctx context.Context, subject string, fn func(data []byte)) error {
	sub, err := e.main.SubscribeSync(subject)
	if err != nil {
		return classifyError(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	for {
		msg, err := sub.NextMsgWithContext(ctx)
		switch {
		case err == nil:
			fn(msg.Data)
		case !errors.Is(err, nats.ErrSlowConsumer): // reported once for messages that were dropped
			return classifyError(err)
		}
	}
}
