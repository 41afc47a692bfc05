package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

// LogConfig says what a log is.
type LogConfig struct {
	Name     string   // letters, digits, _ and -
	Subjects []string // what may be appended: "audit.>"; subjects of two logs must not overlap
	// MaxAge is how long a message stays; 0 = until it is trimmed.
	MaxAge time.Duration
	// Share is the part of the store's MaxBytes that is set aside for this log
	// and that it cannot exceed; 0 = none of its own, it takes from what is left.
	// A log in memory takes as much memory, at most 256 MiB; 0 = 64 MiB.
	Share float64
	// Memory keeps the log in memory: it begins anew with each process.
	Memory bool
	// Evict lets the oldest go when the log is full. Otherwise Append fails.
	Evict bool
}

// Message is one message of a log.
type Message struct {
	Seq     uint64 // grows with each message of the log, of any subject
	At      time.Time
	Subject string
	Data    []byte

	header nats.Header
}

// Log is a stream of messages that are appended and read in order.
type Log struct {
	store    *Store
	name     string
	subjects []string
	stream   jetstream.Stream
}

const (
	defaultMemoryLog = 64 << 20
	maxMemoryLog     = 256 << 20
)

// Log opens a log, which it creates when it is missing and adapts when the
// configuration is another by now.
func (s *Store) Log(ctx context.Context, cfg LogConfig) (*Log, error) {
	if !validName.MatchString(cfg.Name) || strings.HasPrefix(cfg.Name, "KV_") {
		return nil, fmt.Errorf("log name %q: want letters, digits, _ and -", cfg.Name)
	}
	limit, err := s.shareBytes(cfg.Share)
	if err != nil {
		return nil, fmt.Errorf("log %s: %w", cfg.Name, err)
	}
	sp := streamSpec{
		Name:         cfg.Name,
		Subjects:     cfg.Subjects,
		MaxBytes:     limit,
		MaxAge:       cfg.MaxAge,
		Discard:      jetstream.DiscardNew,
		Storage:      jetstream.FileStorage,
		Duplicates:   duplicateWindow(cfg.MaxAge),
		AllowDirect:  true,
		MaxConsumers: -1,
		MaxMsgs:      -1,
		MaxMsgSize:   -1,

		MaxMsgsPerSubject: -1,
	}
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
	return &Log{store: s, name: cfg.Name, subjects: slices.Clone(cfg.Subjects), stream: stream}, nil
}

// AppendOptions make an Append conditional.
type AppendOptions struct {
	// ID names the message: the same ID again within half a minute stores
	// nothing and returns the sequence of the first. Empty = one is made, for
	// the retries inside one call.
	ID string
	// After is the sequence that the last message of the subject must have, 0
	// for none, nil for any. Otherwise ErrConflict.
	ExpectLast *uint64
}

// Append stores one message and returns its sequence when it is on disk.
func (l *Log) Append(ctx context.Context, subject string, data []byte, opts AppendOptions) (uint64, error) {
	w := pendingWrite{stream: l.name, subject: subject, data: data, messageID: opts.ID, expectLast: opts.ExpectLast, retried: opts.ID != ""}
	if w.messageID == "" {
		w.messageID = nuid.Next()
	}
	err := l.checkAccepted(subject)
	var seq uint64
	if err == nil {
		seq, err = l.store.publish(ctx, w)
	}
	if err != nil {
		return 0, fmt.Errorf("append to %s: %w", subject, err)
	}
	return seq, nil
}

// Get reads the message with this sequence. ErrNotFound.
func (l *Log) Get(ctx context.Context, seq uint64) (Message, error) {
	if seq == 0 {
		return Message{}, fmt.Errorf("get 0 of %s: %w", l.name, ErrNotFound)
	}
	return l.readOne(ctx, fmt.Sprintf("get %d", seq), directGet{Seq: seq})
}

// Last reads the newest message of a subject, which may have wildcards.
// ErrNotFound.
func (l *Log) Last(ctx context.Context, subject string) (Message, error) {
	if err := checkSubject(subject, true); err != nil {
		return Message{}, err
	}
	return l.readOne(ctx, "last "+subject, directGet{LastFor: subject})
}

// Next reads the first message of a subject, which may have wildcards, at or
// after a sequence. ErrNotFound.
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

// ReadFrom says where a Read begins, and what it reads.
type ReadFrom struct {
	Seq     uint64    // the first sequence to read, or
	Since   time.Time // the first moment, when there is no Seq
	Subject string    // may have wildcards; "" = all
}

// Read calls fn for the messages that are there, in order, and returns at the
// end of the log. ErrStop from fn ends it before, without an error.
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
	err := l.store.walkMessages(ctx, l.name, q, fn)
	if err != nil {
		return fmt.Errorf("read %s: %w", l.name, err)
	}
	return nil
}

// Delete erases one message: its bytes are overwritten, its sequence stays
// empty. It is no error when it was not there.
func (l *Log) Delete(ctx context.Context, seq uint64) error {
	err := l.store.retry(ctx, "erase", func(ctx context.Context) error {
		if err := l.store.checkOwned(); err != nil {
			return err
		}
		err := l.stream.SecureDeleteMsg(ctx, seq)
		if !errors.Is(err, jetstream.ErrMsgDeleteUnsuccessful) {
			return err
		}
		// The client passes on only the text of why. Most likely it was gone.
		if _, gone := l.Get(ctx, seq); errors.Is(gone, ErrNotFound) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("erase %d of %s: %w", seq, l.name, err)
	}
	return nil
}

// Trim removes everything before a sequence.
func (l *Log) Trim(ctx context.Context, before uint64) error {
	if before <= 1 {
		return nil
	}
	if err := l.store.purgeMessages(ctx, l.stream, jetstream.WithPurgeSequence(before)); err != nil {
		return fmt.Errorf("trim %s: %w", l.name, err)
	}
	return nil
}

// Purge removes every message of a subject, which may have wildcards.
func (l *Log) Purge(ctx context.Context, subject string) error {
	err := checkSubject(subject, true)
	if err == nil {
		err = l.store.purgeMessages(ctx, l.stream, jetstream.WithPurgeSubject(subject))
	}
	if err != nil {
		return fmt.Errorf("purge %s of %s: %w", subject, l.name, err)
	}
	return nil
}

// LogInfo is what a log holds.
type LogInfo struct {
	First, Last uint64 // of an empty log: First is Last + 1
	Msgs        uint64
	Bytes       uint64
	LastAt      time.Time // zero when nothing was ever appended
}

// Info tells what the log holds.
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
			Msgs: state.Msgs, Bytes: state.Bytes, LastAt: state.LastTime,
		}
		return nil
	})
	if err != nil {
		return LogInfo{}, fmt.Errorf("info of %s: %w", l.name, err)
	}
	return info, nil
}

// Damage tells what of the log was found damaged since the store was opened, and
// is lost. The files of a store at a URL are its server's business.
func (l *Log) Damage() []Damage {
	e := l.store.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.damage[l.name])
}

// checkSubject refuses what the engine would answer with silence.
func checkSubject(subject string, wildcards bool) error {
	for part := range strings.SplitSeq(subject, ".") {
		switch {
		case part == "", strings.ContainsAny(part, " \t\r\n$"):
			return fmt.Errorf("subject %.80q: want non-empty parts joined by dots", subject)
		case !wildcards && strings.ContainsAny(part, "*>"):
			return fmt.Errorf("subject %.80q: wildcards are for reading", subject)
		}
	}
	return nil
}

// checkAccepted refuses a subject that is not the log's: the engine would just not
// answer.
func (l *Log) checkAccepted(subject string) error {
	if err := checkSubject(subject, false); err != nil {
		return err
	}
	for _, pattern := range l.subjects {
		if subjectMatches(pattern, subject) {
			return nil
		}
	}
	return fmt.Errorf("subject %.80q: log %s takes %s", subject, l.name, strings.Join(l.subjects, ", "))
}

// subjectMatches reports whether a subject fits a pattern: * stands for one part, > for
// one or more at the end.
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
