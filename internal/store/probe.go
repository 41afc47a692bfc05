package store

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

// After a write error the store counts as unwritable until a message of this size is
// durable in a stream of its own, which is created when it is first needed. It is
// larger than most records, so that a small rest of a quota does not count.
const (
	probeStream  = "CAPROUTER_PROBE"
	probeSubject = "probe"
	probeSize    = 64 << 10
)

// writeError returns why the engine was restarted, until a probe has been written.
func (s *Store) writeError() error {
	if why := s.failedWrite.Load(); why != nil {
		return fmt.Errorf("%w: a write failed (%s), and none has succeeded since", ErrUnavailable, *why)
	}
	return nil
}

// probeWrites writes a probe if a write has failed before.
func (s *Store) probeWrites(ctx context.Context) {
	why := s.failedWrite.Load()
	if why == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	if err := s.writeProbe(ctx); err != nil {
		s.cfg.Logger.DebugContext(ctx, "store: still no write succeeds", "error", err)
		return
	}
	if s.failedWrite.CompareAndSwap(why, nil) {
		s.cfg.Logger.InfoContext(ctx, "store: writes succeed again")
	}
}

func (s *Store) writeProbe(ctx context.Context) error {
	if err := s.checkWritable(); err != nil {
		return err
	}
	_, err := s.engine.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: probeStream, Subjects: []string{probeSubject}, MaxMsgs: 1, Discard: jetstream.DiscardOld, Duplicates: time.Second,
		Replicas: s.cfg.Replication,
	})
	if err == nil {
		_, err = s.engine.js.Publish(ctx, probeSubject, make([]byte, probeSize),
			jetstream.WithMsgID(nuid.Next()), jetstream.WithExpectStream(probeStream))
	}
	return err
}
