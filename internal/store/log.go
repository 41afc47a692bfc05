package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/caprouter/caprouter/internal/store/repair"
)

// LogConfig describes a log.
type LogConfig struct {
	Name     string   // letters, digits, _ and -
	Subjects []string // accepted subjects ("audit.>"); those of two logs must not overlap
	// MaxAge is how long a message stays; 0 = until it is trimmed.
	MaxAge time.Duration
	// Share is the part of the store's MaxBytes that is reserved for this log and
	// limits it; 0 = no reservation and no limit of its own. For a log in memory it
	// is a size of memory, at most 256 MiB; 0 = 64 MiB.
	Share float64
	// Memory keeps the log in memory: each process starts with an empty one.
	Memory bool
	// Existing opens the log as it is, for reading, or returns ErrNotFound.
	Existing bool
	// Evict discards the oldest messages of a full log. Otherwise Append fails.
	Evict bool
}

// Message is one message of a log.
type Message struct {
	Seq     uint64 // grows with each message of the log, of any subject
	At      time.Time
	Subject string
	Data    []byte
	// Origin is the sequence of the message that this one replaces; 0 = none was given.
	Origin uint64

	header nats.Header
}

// originHeader carries Message.Origin.
const originHeader = "Caprouter-Origin"

// originOf returns the origin in the headers of a message.
func originOf(header nats.Header) uint64 {
	origin, err := strconv.ParseUint(header.Get(originHeader), 10, 64)
	if err != nil {
		return 0
	}
	return origin
}

// Log is an append-only stream of messages.
type Log struct {
	store    *Store
	name     string
	subjects []string
	stream   jetstream.Stream
	last     *lastWrite
}

const (
	defaultMemoryLog = 64 << 20
	maxMemoryLog     = 256 << 20 // and of all logs in memory together
)

// Log opens a log. It creates a missing one, and adapts an existing one to the
// configuration.
func (s *Store) Log(ctx context.Context, cfg LogConfig) (*Log, error) {
	if !validName.MatchString(cfg.Name) || strings.HasPrefix(cfg.Name, "KV_") {
		return nil, fmt.Errorf("log name %q: want letters, digits, _ and -", cfg.Name)
	}
	if cfg.Existing {
		stream, err := existingStream(ctx, s, cfg.Name)
		if err != nil {
			return nil, fmt.Errorf("log %s: %w", cfg.Name, err)
		}
		return &Log{store: s, name: cfg.Name, subjects: stream.CachedInfo().Config.Subjects, stream: stream, last: lastWriteOf(s, cfg.Name)}, nil
	}
	limit, err := s.cfg.shareBytes(cfg.Share)
	if err != nil {
		return nil, fmt.Errorf("log %s: %w", cfg.Name, err)
	}
	sp := newStreamSpec(cfg.Name, cfg.Subjects, limit, cfg.MaxAge)
	if cfg.Memory {
		sp.Storage = jetstream.MemoryStorage
		if sp.MaxBytes = min(limit, maxMemoryLog); limit < 0 {
			sp.MaxBytes = defaultMemoryLog
		}
	}
	if cfg.Evict {
		sp.Discard = jetstream.DiscardOld
	}
	stream, err := s.ensureStream(ctx, sp)
	if err != nil {
		return nil, fmt.Errorf("log %s: %w", cfg.Name, err)
	}
	return &Log{store: s, name: cfg.Name, subjects: slices.Clone(cfg.Subjects), stream: stream, last: lastWriteOf(s, cfg.Name)}, nil
}

// AppendOptions make an Append conditional.
type AppendOptions struct {
	// ID identifies the message: a second write with this ID within half a minute
	// stores nothing and returns the first sequence. Empty = generated, for the
	// retries inside one call.
	ID string
	// ExpectLast is the required sequence of the subject's last message, 0 for none,
	// nil for any. Otherwise ErrConflict.
	ExpectLast *uint64
	// ExpectFor is the subject that ExpectLast refers to, and may have wildcards; "" = that
	// of the message. Writers that exclude each other must give the same.
	ExpectFor string
	// Origin is stored with the message.
	Origin uint64
}

// Lifetime ends when the messages of a log in memory are lost, because the engine was
// restarted. The log is empty then. The lifetime of a log in files never ends.
func (l *Log) Lifetime() context.Context {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	if current, ok := l.store.inMemory[l.name]; ok {
		return current.lifetime
	}
	return context.Background()
}

// Append stores one message and returns its sequence when it is durable.
func (l *Log) Append(ctx context.Context, subject string, data []byte, opts AppendOptions) (uint64, error) {
	w := pendingWrite{stream: l.name, subject: subject, data: data, messageID: opts.ID, expectLast: opts.ExpectLast, expectFor: opts.ExpectFor, retried: opts.ID != ""}
	if opts.Origin != 0 {
		w.header = nats.Header{originHeader: {strconv.FormatUint(opts.Origin, 10)}}
	}
	if w.messageID == "" {
		w.messageID = nuid.Next()
	}
	err := l.checkAccepted(subject)
	var seq uint64
	if err == nil {
		seq, err = l.last.append(ctx, l.store, w)
	}
	if err != nil {
		return 0, fmt.Errorf("append to %s: %w", subject, err)
	}
	return seq, nil
}

// Get returns the message with this sequence, or ErrNotFound.
func (l *Log) Get(ctx context.Context, seq uint64) (Message, error) {
	if seq == 0 {
		return Message{}, fmt.Errorf("get 0 of %s: %w", l.name, ErrNotFound)
	}
	return l.readOne(ctx, fmt.Sprintf("get %d", seq), directGet{Seq: seq})
}

// Last returns the newest message of a subject, which may have wildcards, or
// ErrNotFound.
func (l *Log) Last(ctx context.Context, subject string) (Message, error) {
	if err := checkSubject(subject, true); err != nil {
		return Message{}, err
	}
	return l.readOne(ctx, "last "+subject, directGet{LastFor: subject})
}

// Next returns the first message of a subject, which may have wildcards, at or after
// a sequence, or ErrNotFound.
func (l *Log) Next(ctx context.Context, subject string, from uint64) (Message, error) {
	if err := checkSubject(subject, true); err != nil {
		return Message{}, err
	}
	return l.readOne(ctx, "next "+subject, directGet{NextFor: subject, Seq: from})
}

func (l *Log) readOne(ctx context.Context, what string, q directGet) (Message, error) {
	m, err := l.store.readMessage(ctx, l.name, q)
	if err != nil {
		return Message{}, fmt.Errorf("%s of %s: %w", what, l.name, err)
	}
	return m, nil
}

// ReadFrom selects the messages of a Read.
type ReadFrom struct {
	Seq     uint64    // the first sequence to read, or
	Before  uint64    // the sequence behind the last one; 0 = to the end
	Since   time.Time // the earliest time, used if Seq is 0
	Subject string    // may have wildcards; "" = all
}

// Read calls fn for the stored messages in order. ErrStop from fn ends it without an
// error.
func (l *Log) Read(ctx context.Context, from ReadFrom, fn func(Message) error) error {
	q := directGet{Seq: from.Seq, NextFor: from.Subject}
	switch {
	case q.Seq == 0 && !from.Since.IsZero():
		q.StartTime = &from.Since
	case q.Seq == 0:
		q.Seq = 1
	}
	if q.NextFor == "" {
		q.NextFor = ">"
	} else if err := checkSubject(q.NextFor, true); err != nil {
		return err
	}
	if from.Before > 0 {
		if q.Seq >= from.Before {
			return nil
		}
		q.Batch, fn = int(min(pageMessages, from.Before-q.Seq)), stopBefore(from.Before, fn)
	}
	err := l.store.walkMessages(ctx, l.name, q, fn)
	if err != nil {
		return fmt.Errorf("read %s: %w", l.name, err)
	}
	return nil
}

// stopBefore returns fn for the messages before a sequence, and ErrStop behind the last one.
func stopBefore(seq uint64, fn func(Message) error) func(Message) error {
	return func(m Message) error {
		if m.Seq >= seq {
			return ErrStop
		}
		if err := fn(m); err != nil || m.Seq+1 < seq {
			return err
		}
		return ErrStop
	}
}

// Delete erases one message: its bytes are overwritten, its sequence stays empty. It
// is no error if it does not exist.
func (l *Log) Delete(ctx context.Context, seq uint64) error {
	if err := l.last.removeBefore(seq+1, func() error { return l.store.eraseMessage(ctx, l.stream, seq) }); err != nil {
		return fmt.Errorf("erase %d of %s: %w", seq, l.name, err)
	}
	return nil
}

// Trim removes everything before a sequence.
func (l *Log) Trim(ctx context.Context, before uint64) error {
	if before <= 1 {
		return nil
	}
	if err := l.purgeBefore(ctx, before, jetstream.WithPurgeSequence(before)); err != nil {
		return fmt.Errorf("trim %s: %w", l.name, err)
	}
	return nil
}

// Purge removes every message of a subject, which may have wildcards.
func (l *Log) Purge(ctx context.Context, subject string) error {
	err := checkSubject(subject, true)
	if err == nil {
		err = l.last.change(subject, func() error { return l.store.purgeMessages(ctx, l.stream, jetstream.WithPurgeSubject(subject)) })
	}
	if err != nil {
		return fmt.Errorf("purge %s of %s: %w", subject, l.name, err)
	}
	return nil
}

// PurgeBefore removes the messages of a subject, which may have wildcards, before a
// sequence.
func (l *Log) PurgeBefore(ctx context.Context, subject string, before uint64) error {
	err := checkSubject(subject, true)
	if err == nil {
		err = l.purgeBefore(ctx, before, jetstream.WithPurgeSubject(subject), jetstream.WithPurgeSequence(before))
	}
	if err != nil {
		return fmt.Errorf("purge %s of %s before %d: %w", subject, l.name, before, err)
	}
	return nil
}

func (l *Log) purgeBefore(ctx context.Context, seq uint64, options ...jetstream.StreamPurgeOpt) error {
	return l.last.removeBefore(seq, func() error { return l.store.purgeMessages(ctx, l.stream, options...) })
}

// LogInfo describes the contents of a log.
type LogInfo struct {
	First, Last uint64 // in an empty log, First is Last + 1
	Msgs        uint64
	Bytes       uint64
	MaxBytes    int64     // of the log; -1 = no limit of its own
	LastAt      time.Time // zero if nothing was ever appended
}

// Info returns the contents of the log.
func (l *Log) Info(ctx context.Context) (LogInfo, error) {
	var info LogInfo
	err := l.store.retry(ctx, "info", func(ctx context.Context) error {
		got, err := l.stream.Info(ctx)
		if err != nil {
			return err
		}
		state := got.State
		info = LogInfo{
			First: state.FirstSeq, Last: state.LastSeq,
			Msgs: state.Msgs, Bytes: state.Bytes, MaxBytes: got.Config.MaxBytes, LastAt: state.LastTime,
		}
		return nil
	})
	if err != nil {
		return LogInfo{}, fmt.Errorf("info of %s: %w", l.name, err)
	}
	return info, nil
}

// Damage returns the damage that was removed since the store was opened, and by Repair
// before. It is empty for a store at a URL.
func (l *Log) Damage() []repair.Damage {
	e := l.store.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.damage[l.name])
}

// checkSubject rejects subjects that the engine would not answer.
func checkSubject(subject string, wildcards bool) error {
	for part := range strings.SplitSeq(subject, ".") {
		switch {
		case part == "", strings.ContainsAny(part, " \t\r\n$"):
			return fmt.Errorf("subject %.80q: want non-empty parts joined by dots", subject)
		case !wildcards && strings.ContainsAny(part, "*>"):
			return fmt.Errorf("subject %.80q: wildcards are only for reading", subject)
		}
	}
	return nil
}

// checkAccepted rejects a subject that the log does not accept, because the engine
// would not answer.
func (l *Log) checkAccepted(subject string) error {
	if err := checkSubject(subject, false); err != nil {
		return err
	}
	for _, pattern := range l.subjects {
		if subjectMatches(pattern, subject) {
			return nil
		}
	}
	return fmt.Errorf("subject %.80q: log %s accepts %s", subject, l.name, strings.Join(l.subjects, ", "))
}

// subjectMatches reports whether a subject matches a pattern: * is one part, > one
// or more parts at the end.
func subjectMatches(pattern, subject string) bool {
	for {
		want, wantMore, more := strings.Cut(pattern, ".")
		got, gotMore, gotAny := strings.Cut(subject, ".")
		switch {
		case want == ">":
			return true
		case want != "*" && want != got:
			return false
		case !more || !gotAny:
			return more == gotAny
		}
		pattern, subject = wantMore, gotMore
	}
}
