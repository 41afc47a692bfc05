package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// duplicates is how long the engine remembers the id of a write, so that a
// retried one is not stored twice. It is longer than any call lasts.
const duplicates = 30 * time.Second

// spec is a stream the engine must have.
type spec jetstream.StreamConfig

// validName is what a bucket or a log may be called.
var validName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// share is the part of the cap that a stream may take; -1 = no limit but the
// cap itself.
func (s *Store) share(part float64) (int64, error) {
	switch {
	case part == 0:
		return -1, nil
	case part < 0 || part > 1:
		return 0, fmt.Errorf("a share of %g is not between 0 and 1", part)
	}
	return max(1, int64(part*float64(s.cfg.MaxBytes))), nil
}

// ensure creates or updates a stream, and remembers it for a restart.
func (s *Store) ensure(ctx context.Context, sp spec) (stream jetstream.Stream, err error) {
	err = s.try(ctx, "open "+sp.Name, func(ctx context.Context) error {
		stream, err = s.apply(ctx, sp)
		return err
	})
	if err != nil {
		return nil, err
	}
	if lost := stream.CachedInfo().State.Lost; lost != nil && len(lost.Msgs) > 0 {
		s.cfg.Logger.Error("store: files were damaged, what could not be read is gone",
			"stream", sp.Name, "messages", len(lost.Msgs), "first", lost.Msgs[0], "bytes", lost.Bytes)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.specs[sp.Name] = sp
	return stream, nil
}

// apply makes the engine have this stream.
func (s *Store) apply(ctx context.Context, sp spec) (jetstream.Stream, error) {
	have, err := s.engine.js.Stream(ctx, sp.Name)
	switch {
	case err == nil:
		sp.FirstSeq = have.CachedInfo().Config.FirstSeq // it cannot change any more
	case !errors.Is(err, jetstream.ErrStreamNotFound):
		return nil, err
	case sp.Storage == jetstream.MemoryStorage:
		// What is kept in memory starts anew with each engine. Its sequences do
		// not: they start at the time in microseconds, so that a reader who comes
		// back with an old one is told from a reader of this life.
		sp.FirstSeq = uint64(s.cfg.Now().UnixMicro())
	}
	return s.engine.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig(sp))
}

// recreate gives a restarted engine the streams that did not survive it.
func (s *Store) recreate(ctx context.Context) error {
	s.mu.Lock()
	specs := make([]spec, 0, len(s.specs))
	for _, sp := range s.specs {
		if sp.Storage == jetstream.MemoryStorage {
			specs = append(specs, sp)
		}
	}
	s.mu.Unlock()
	for _, sp := range specs {
		ctx, cancel := context.WithTimeout(ctx, startTimeout)
		_, err := s.ensure(ctx, sp)
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

// write is one message on its way to a stream.
type write struct {
	stream  string
	subject string
	header  nats.Header
	data    []byte
	id      string        // makes a second try harmless
	after   *uint64       // sequence that the subject's last message must have, nil = any
	again   bool          // the caller may have sent it before
	ttl     time.Duration // of this message; 0 = that of the stream
}

// publish stores one message and returns its sequence once it is on disk.
func (s *Store) publish(ctx context.Context, w write) (uint64, error) {
	if limit := s.engine.write.MaxPayload() - headerRoom; int64(len(w.data)) > limit {
		return 0, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(w.data), limit)
	}
	options := []jetstream.PublishOpt{jetstream.WithMsgID(w.id), jetstream.WithRetryAttempts(0)}
	if w.after != nil {
		options = append(options, jetstream.WithExpectLastSequencePerSubject(*w.after))
	}
	if w.ttl > 0 {
		options = append(options, jetstream.WithMsgTTL(w.ttl))
	}
	var seq uint64
	again := w.again
	err := s.try(ctx, "write", func(ctx context.Context) error {
		if err := s.writable(); err != nil {
			return err
		}
		msg := nats.Msg{Subject: w.subject, Data: w.data, Header: nats.Header{}}
		maps.Copy(msg.Header, w.header)
		ack, err := s.engine.js.PublishMsg(ctx, &msg, options...)
		if err == nil {
			seq = ack.Sequence
			return nil
		}
		if err = classify(err); errors.Is(err, ErrConflict) && again {
			seq, err = s.written(ctx, w, err)
		}
		again = true
		return err
	})
	s.notice(&w, err)
	return seq, err
}

// named is what a stream is called outside of this package.
func named(stream string) string {
	for kind, prefix := range map[string]string{"bucket ": "KV_", "the large values of bucket ": "BLOB_"} {
		if name, ok := strings.CutPrefix(stream, prefix); ok {
			return kind + name
		}
	}
	return "log " + stream
}

// written finds out whether a conflict is one with ourselves: the engine looks at
// the expected sequence before it looks at the id, so a write whose answer got
// lost meets what it wrote itself. conflict is what to return when it is not.
func (s *Store) written(ctx context.Context, w write, conflict error) (uint64, error) {
	m, err := s.one(ctx, w.stream, question{NextFor: w.subject, Seq: *w.after + 1})
	switch {
	case err == nil && m.header.Get(jetstream.MsgIDHeader) == w.id:
		return m.Seq, nil
	case transient(err):
		return 0, err
	}
	return 0, conflict
}

// headerRoom is kept free in every message for what this package adds.
const headerRoom = 4 << 10

// purge removes messages of a stream for good.
func (s *Store) purge(ctx context.Context, stream jetstream.Stream, options ...jetstream.StreamPurgeOpt) error {
	return s.try(ctx, "delete", func(ctx context.Context) error {
		if err := s.owned(); err != nil {
			return err
		}
		return stream.Purge(ctx, options...)
	})
}
