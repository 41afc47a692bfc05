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

// duplicateMemory is how long the engine remembers the id of a write, so that a
// retried one is not stored twice. It is longer than any call lasts.
const duplicateMemory = 30 * time.Second

// streamSpec is a stream the engine must have.
type streamSpec jetstream.StreamConfig

// validName is what a bucket or a log may be called.
var validName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// shareBytes is the part of the cap that a stream may take; -1 = no limit but the
// cap itself.
func (s *Store) shareBytes(part float64) (int64, error) {
	switch {
	case part == 0:
		return -1, nil
	case part < 0 || part > 1:
		return 0, fmt.Errorf("a share of %g is not between 0 and 1", part)
	}
	return max(1, int64(part*float64(s.cfg.MaxBytes))), nil
}

// ensureStream creates or updates a stream, and remembers it for a restart.
func (s *Store) ensureStream(ctx context.Context, sp streamSpec) (stream jetstream.Stream, err error) {
	err = s.retry(ctx, "open "+sp.Name, func(ctx context.Context) error {
		stream, err = s.applyStream(ctx, sp)
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

// applyStream makes the engine have this stream.
func (s *Store) applyStream(ctx context.Context, sp streamSpec) (jetstream.Stream, error) {
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

// recreateMemoryStreams gives a restarted engine the streams that did not survive it.
func (s *Store) recreateMemoryStreams(ctx context.Context) error {
	s.mu.Lock()
	specs := make([]streamSpec, 0, len(s.specs))
	for _, sp := range s.specs {
		if sp.Storage == jetstream.MemoryStorage {
			specs = append(specs, sp)
		}
	}
	s.mu.Unlock()
	for _, sp := range specs {
		ctx, cancel := context.WithTimeout(ctx, startTimeout)
		_, err := s.ensureStream(ctx, sp)
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

// pendingWrite is one message on its way to a stream.
type pendingWrite struct {
	stream     string
	subject    string
	header     nats.Header
	data       []byte
	messageID  string        // makes a second try harmless
	expectLast *uint64       // sequence that the subject's last message must have, nil = any
	retried    bool          // the caller may have sent it before
	ttl        time.Duration // of this message; 0 = that of the stream
}

// publish stores one message and returns its sequence once it is on disk.
func (s *Store) publish(ctx context.Context, w pendingWrite) (uint64, error) {
	if limit := s.engine.write.MaxPayload() - reservedHeader; int64(len(w.data)) > limit {
		return 0, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(w.data), limit)
	}
	options := []jetstream.PublishOpt{jetstream.WithMsgID(w.messageID), jetstream.WithRetryAttempts(0)}
	if w.expectLast != nil {
		options = append(options, jetstream.WithExpectLastSequencePerSubject(*w.expectLast))
	}
	if w.ttl > 0 {
		options = append(options, jetstream.WithMsgTTL(w.ttl))
	}
	var seq uint64
	again := w.retried
	err := s.retry(ctx, "write", func(ctx context.Context) error {
		if err := s.checkWritable(); err != nil {
			return err
		}
		msg := nats.Msg{Subject: w.subject, Data: w.data, Header: nats.Header{}}
		maps.Copy(msg.Header, w.header)
		ack, err := s.engine.js.PublishMsg(ctx, &msg, options...)
		if err == nil {
			seq = ack.Sequence
			return nil
		}
		if err = classifyError(err); errors.Is(err, ErrConflict) && again {
			seq, err = s.findOwnWrite(ctx, w, err)
		}
		again = true
		return err
	})
	s.recordWrite(&w, err)
	return seq, err
}

// displayName is what a stream is called outside of this package.
func displayName(stream string) string {
	for kind, prefix := range map[string]string{"bucket ": "KV_", "the large values of bucket ": "BLOB_"} {
		if name, ok := strings.CutPrefix(stream, prefix); ok {
			return kind + name
		}
	}
	return "log " + stream
}

// findOwnWrite finds out whether a conflict is one with ourselves: the engine looks at
// the expected sequence before it looks at the id, so a write whose answer got
// lost meets what it wrote itself. conflict is what to return when it is not.
func (s *Store) findOwnWrite(ctx context.Context, w pendingWrite, conflict error) (uint64, error) {
	m, err := s.readMessage(ctx, w.stream, directGet{NextFor: w.subject, Seq: *w.expectLast + 1})
	switch {
	case err == nil && m.header.Get(jetstream.MsgIDHeader) == w.messageID:
		return m.Seq, nil
	case isTransient(err):
		return 0, err
	}
	return 0, conflict
}

// reservedHeader is kept free in every message for what this package adds.
const reservedHeader = 4 << 10

// purgeMessages removes messages of a stream for good.
func (s *Store) purgeMessages(ctx context.Context, stream jetstream.Stream, options ...jetstream.StreamPurgeOpt) error {
	return s.retry(ctx, "delete", func(ctx context.Context) error {
		if err := s.checkOwned(); err != nil {
			return err
		}
		return stream.Purge(ctx, options...)
	})
}
