package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// duplicateMemory is how long the engine remembers message ids, so that a retried
// write is not stored twice. It is longer than any call.
const duplicateMemory = 30 * time.Second

// streamSpec is the configuration of a stream.
type streamSpec jetstream.StreamConfig

// newStreamSpec returns the configuration of a durable stream, which rejects writes at its
// limit of bytes; -1 = none.
func newStreamSpec(name string, subjects []string, maxBytes int64, maxAge time.Duration) streamSpec {
	return streamSpec{
		Name:              name,
		Subjects:          subjects,
		MaxBytes:          maxBytes,
		MaxAge:            maxAge,
		Discard:           jetstream.DiscardNew,
		Storage:           jetstream.FileStorage,
		Duplicates:        duplicateWindow(maxAge),
		AllowDirect:       true,
		MaxConsumers:      -1,
		MaxMsgs:           -1,
		MaxMsgSize:        -1,
		MaxMsgsPerSubject: -1,
	}
}

// validName matches the names of buckets and logs.
var validName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// shareBytes returns the limit of a stream in bytes; -1 = no limit of its own.
func (c *Config) shareBytes(part float64) (int64, error) {
	switch {
	case part == 0:
		return -1, nil
	case part < 0 || part > 1:
		return 0, fmt.Errorf("share %g: want 0 to 1", part)
	}
	return max(1, int64(part*float64(c.MaxBytes))), nil
}

// ensureStream creates or updates a stream, and remembers it for a restart.
func (s *Store) ensureStream(ctx context.Context, sp streamSpec) (stream jetstream.Stream, err error) {
	waiting := false
	err = s.retry(ctx, "open "+sp.Name, func(ctx context.Context) error {
		stream, err = s.applyStream(ctx, sp)
		if err != nil && !waiting {
			waiting = true
			s.cfg.Logger.WarnContext(ctx, "store: waiting until a stream can be opened", "stream", sp.Name, "error", err)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if lost := stream.CachedInfo().State.Lost; lost != nil && len(lost.Msgs) > 0 {
		s.cfg.Logger.Error("store: files were damaged, unreadable messages are lost",
			"stream", sp.Name, "messages", len(lost.Msgs), "first", lost.Msgs[0], "bytes", lost.Bytes)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.specs[sp.Name] = sp
	if sp.Storage == jetstream.MemoryStorage {
		s.replaceMemoryStream(sp.Name, stream.CachedInfo().Created)
	}
	return stream, nil
}

// memoryStream is one of the streams in memory that successive engines have under the
// same name.
type memoryStream struct {
	created  time.Time
	lifetime context.Context //nolint:containedctx // it ends with the stream, not with a call
	end      context.CancelFunc
}

// replaceMemoryStream ends the lifetime of a stream in memory if the engine has another
// one now, which this process or another one created. The caller holds s.mu.
func (s *Store) replaceMemoryStream(name string, created time.Time) {
	before, ok := s.inMemory[name]
	if ok && before.created.Equal(created) {
		return
	}
	lifetime, end := context.WithCancel(context.Background())
	s.inMemory[name] = memoryStream{created: created, lifetime: lifetime, end: end}
	if ok {
		before.end()
	}
}

// applyStream creates or updates a stream in the engine.
func (s *Store) applyStream(ctx context.Context, sp streamSpec) (jetstream.Stream, error) {
	sp.Replicas = s.cfg.Replication
	have, err := s.engine.js.Stream(ctx, sp.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		created := sp
		if sp.Storage == jetstream.MemoryStorage {
			// A stream in memory starts empty with each engine. Its sequences start at
			// the time in microseconds, so that a sequence of an earlier engine can be
			// recognised.
			created.FirstSeq = uint64(s.cfg.Now().UnixMicro())
		}
		stream, createErr := s.engine.js.CreateStream(ctx, jetstream.StreamConfig(created))
		if !errors.Is(createErr, jetstream.ErrStreamNameAlreadyInUse) {
			return stream, createErr
		}
		have, err = s.engine.js.Stream(ctx, sp.Name) // another process was faster
	}
	if err != nil {
		return nil, err
	}
	sp.FirstSeq = have.CachedInfo().Config.FirstSeq // it cannot be changed
	if sp.isConfigOf(have) {
		return have, nil // the engine would write and sync its files again
	}
	updated, err := s.engine.js.UpdateStream(ctx, jetstream.StreamConfig(sp))
	if err != nil && s.isDiskFull(err) {
		s.cfg.Logger.WarnContext(ctx, "store: the disk is full: a stream keeps the limits that it had", "stream", sp.Name)
		return have, nil
	}
	return updated, err
}

// isConfigOf reports whether the stream has this configuration. The engine adds metadata
// of its own.
func (sp streamSpec) isConfigOf(stream jetstream.Stream) bool {
	have := stream.CachedInfo().Config
	have.Metadata = nil
	return reflect.DeepEqual(have, jetstream.StreamConfig(sp))
}

// isDiskFull reports whether a call failed because the disk has no free space.
func (s *Store) isDiskFull(err error) bool {
	return strings.Contains(err.Error(), syscall.ENOSPC.Error()) || errors.Is(s.checkWritable(), ErrFull)
}

// existingStream returns a stream of the engine, or ErrNotFound.
func existingStream(ctx context.Context, s *Store, name string) (stream jetstream.Stream, err error) {
	err = s.retry(ctx, "open "+name, func(ctx context.Context) error {
		stream, err = s.engine.js.Stream(ctx, name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return ErrNotFound
		}
		return err
	})
	return stream, err
}

// recreateMemoryStreams creates the streams in memory after a restart of the engine.
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

// pendingWrite is one message to publish.
type pendingWrite struct {
	stream     string
	subject    string
	header     nats.Header
	data       []byte
	messageID  string  // makes a retry harmless
	expectLast *uint64 // required sequence of the subject's last message; nil = any
	expectFor  string  // the subject that expectLast refers to; "" = subject
	retried    bool    // it may have been sent before
	// expectationHolds reports that the engine need not compare expectLast; nil = it must.
	expectationHolds func() bool

	ttl time.Duration // of this message; 0 = that of the stream
}

// publish stores one message and returns its sequence when it is durable.
func (s *Store) publish(ctx context.Context, w pendingWrite) (uint64, error) {
	if limit := s.engine.main.MaxPayload() - reservedHeader; int64(len(w.data)) > limit {
		return 0, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(w.data), limit)
	}
	options := []jetstream.PublishOpt{jetstream.WithMsgID(w.messageID), jetstream.WithRetryAttempts(0)}
	if w.ttl > 0 {
		options = append(options, jetstream.WithMsgTTL(w.ttl))
	}
	switch {
	case w.expectLast != nil && w.expectFor != "":
		options = append(options, jetstream.WithExpectLastSequenceForSubject(*w.expectLast, w.expectFor))
	case w.expectLast != nil:
		options = append(options, jetstream.WithExpectLastSequencePerSubject(*w.expectLast))
	}
	var seq uint64
	again := w.retried
	err := s.retry(ctx, "write", func(ctx context.Context) error {
		if err := s.checkWritable(); err != nil {
			return err
		}
		msg := nats.Msg{Subject: w.subject, Data: w.data, Header: nats.Header{}}
		maps.Copy(msg.Header, w.header)
		js, err := s.engine.publisher(w.stream)
		if err != nil {
			return err
		}
		options := options
		if holds := w.expectationHolds; holds != nil && holds() {
			options = options[:len(options)-1]
		}
		w.expectationHolds = nil // the engine compares if this attempt fails
		ack, err := js.PublishMsg(ctx, &msg, options...)
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

// displayName returns the name of a stream for people.
func displayName(stream string) string {
	for kind, prefix := range map[string]string{"bucket ": bucketStream, "the large values of bucket ": blobPrefix, "the data keys of bucket ": keyLogPrefix} {
		if name, ok := strings.CutPrefix(stream, prefix); ok {
			return kind + name
		}
	}
	return "log " + stream
}

// findOwnWrite returns the sequence of this write if it was stored before, else the
// conflict. The engine compares the expected sequence before the message id, so that
// a retry after a lost confirmation conflicts with itself. If another process has
// replaced the value since, the conflict stays, and the caller decides again.
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

// reservedHeader is the space in every message for the headers of this package.
const reservedHeader = 4 << 10

// purgeMessages removes messages of a stream.
func (s *Store) purgeMessages(ctx context.Context, stream jetstream.Stream, options ...jetstream.StreamPurgeOpt) error {
	return s.retry(ctx, "delete", func(ctx context.Context) error {
		if err := s.checkOwned(); err != nil {
			return err
		}
		return stream.Purge(ctx, options...)
	})
}

// eraseMessage overwrites a message. It is no error if it does not exist.
func (s *Store) eraseMessage(ctx context.Context, stream jetstream.Stream, seq uint64) error {
	return s.retry(ctx, "erase", func(ctx context.Context) error {
		if err := s.checkOwned(); err != nil {
			return err
		}
		err := stream.SecureDeleteMsg(ctx, seq)
		if !errors.Is(err, jetstream.ErrMsgDeleteUnsuccessful) {
			return err
		}
		// The client passes on only the text of the reason. Most likely the message
		// did not exist.
		name := stream.CachedInfo().Config.Name
		if _, gone := s.readMessage(ctx, name, directGet{Seq: seq}); errors.Is(gone, ErrNotFound) {
			return nil
		}
		return err
	})
}
