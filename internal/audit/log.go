package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"sync"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/contentkey"
	"github.com/caprouter/caprouter/internal/fairqueue"
	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/store"
)

// HeadFile is the name of the signed head in the data directory.
const HeadFile = "audit.head"

// Retention limits the log by age and size. Zero = no limit.
type Retention struct {
	Contents time.Duration // then contents are removed, and facts stay
	Chain    time.Duration // then the records are trimmed, behind a checkpoint
	MaxBytes int64         // of the whole log; the oldest contents of the heaviest owner are evicted, then records trimmed
	Share    float64       // part of MaxBytes that one owner may use; 0 or 1 = all of it
	// KeepFacts keeps facts until Chain: an owner whose facts use up its share is
	// rejected by Admit. Otherwise the start of the chain is trimmed to make room.
	KeepFacts bool
}

// Config configures a Log; Log, Keys, Signer and HeadFile are required.
type Config struct {
	Log      *store.Log          // made with LogConfig
	Keys     *contentkey.Keyring // encrypt contents
	Writer   string              // the chain's name; "" = "main"
	Signer   Signer
	HeadFile string // path of the signed head
	// Heads are the signed heads of all chains, of a store that several replicas use
	// (HeadsConfig), and Members verifies those of the others. Nil = no other process writes.
	Heads     *store.Bucket
	Members   VerifyFunc
	Used      bool // the data directory was used before, so a log is expected
	Retention Retention
	Logger    *slog.Logger
	Now       func() time.Time
	// OnWrite is called after every write with the number of records, the duration
	// and the error. Calls do not overlap.
	OnWrite func(records int, took time.Duration, err error)
	// OnEvict is called with the number of contents, or of trimmed batches of all
	// owners, that were removed before their retention. Nil = none.
	OnEvict func(owner quota.Owner, removed int)
}

// DefaultWriter is the name of the chain in a store with one owner.
const DefaultWriter = "main"

const maxWriter = 64

var validWriter = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// LogConfig configures the stream that holds the audit log. It has no retention of
// its own, because messages that go without a checkpoint count as deleted.
func LogConfig(share float64) store.LogConfig {
	return store.LogConfig{Name: "AUDIT", Subjects: []string{"audit.>"}, Share: share}
}

// ErrClosed is the error of Append after Close. It wraps store.ErrUnavailable.
var ErrClosed = fmt.Errorf("the audit log is closed: %w", store.ErrUnavailable)

// Log is an open audit log. Its methods may be called from any goroutine.
type Log struct {
	*storedChain // of this writer

	cfg             Config
	index           *recentIndex
	known           *knownRequests
	usage           *usageIndex
	limiter         *sizeLimiter
	retainer        *retainer
	rewriter        *rewriter
	searchSemaphore chan struct{} // of searches that read the stream
	group           *run.Group

	queue   *recordQueue
	closing chan struct{} // closed when no more records are accepted
	ended   chan struct{} // closed when the writer has returned
	fenced  chan struct{} // closed when another process has written to the chain
	once    sync.Once
	closed  error

	openedAt     uint64        // position of the last record before Open
	openedBehind uint64        // last message of the stream before Open
	headOutdated chan struct{} // capacity 1: the chain has grown, write the head
	head         *headFile
	others       *otherChains // nil = there are none
}

func (c Config) withDefaults() (Config, error) {
	if c.Writer == "" {
		c.Writer = DefaultWriter
	}
	switch {
	case c.Log == nil:
		return c, errors.New("no log")
	case c.Keys == nil:
		return c, errors.New("no keys for contents")
	case c.Signer == nil:
		return c, errors.New("no signer")
	case c.HeadFile == "":
		return c, errors.New("no file for the head")
	case c.Heads != nil && c.Members == nil:
		return c, errors.New("no keys of the other replicas")
	case !validWriter.MatchString(c.Writer):
		return c, fmt.Errorf("writer %q: want 1 to 64 letters, digits, _ or -", c.Writer)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.OnEvict == nil {
		c.OnEvict = func(quota.Owner, int) {}
	}
	if c.OnWrite == nil {
		c.OnWrite = func(int, time.Duration, error) {}
	}
	return c, nil
}

// Open opens the log of a writer, and creates a missing one. It continues at the end
// of the stream and compares that with the signed head. A difference is logged,
// recorded in the chain and reported by Verify from then on; it does not prevent the
// start.
func Open(ctx context.Context, cfg Config) (*Log, error) {
	return openLog(ctx, cfg, nil)
}

func openLog(ctx context.Context, cfg Config, through appendFunc) (_ *Log, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("open the audit log: %w", err)
		}
	}()
	if cfg, err = cfg.withDefaults(); err != nil {
		return nil, err
	}
	l := &Log{
		storedChain: newStoredChain(cfg.Log, cfg.Keys, cfg.Writer), cfg: cfg, index: newIndex(indexSize),
		usage: newUsageIndex(), searchSemaphore: make(chan struct{}, maxSearches),
		queue: fairqueue.NewBatchQueue[quota.Owner, *pendingRecord](queueSize), closing: make(chan struct{}), ended: make(chan struct{}), fenced: make(chan struct{}),
		headOutdated: make(chan struct{}, 1),
	}
	l.limiter = newSizeLimiter(&cfg, l.usage)
	l.rewriter = &rewriter{shared: cfg.Heads != nil, limiter: l.limiter, usage: l.usage}
	if cfg.Heads != nil {
		l.shared = true
		l.others = &otherChains{
			log: l, chains: map[string]*storedChain{},
			heads: &headTable{bucket: cfg.Heads, signer: headSigner{cfg.Signer, cfg.Members}},
		}
	}
	if l.head, err = openHeadFile(cfg.HeadFile); err != nil {
		return nil, err
	}
	if through == nil {
		through = cfg.Log.Append
	}
	w := &batchWriter{log: l, append: l.limiter.watchSize(through)}
	if err = l.continueChain(ctx, w); err != nil {
		return nil, errors.Join(err, l.head.file.Close())
	}
	// The group outlives this call: Close ends it, not the caller's context.
	l.group, l.retainer = run.New(context.WithoutCancel(ctx)), newRetainer(context.WithoutCancel(ctx), l)
	l.group.Go("write the audit log", w.run)
	l.group.Go("sign the head of the audit log", l.writeHeads)
	l.group.Go("sync the head of the audit log", func(ctx context.Context) error { return l.head.syncPeriodically(ctx, cfg.Logger) })
	if l.others != nil {
		l.group.Go("follow the chains of other replicas", func(ctx context.Context) error { return l.others.follow(ctx, l.openedBehind) })
		l.group.Go("store the head of the audit log", l.publishHeads)
	}
	return l, nil
}

// Admit returns quota_exceeded if the caller's requests may not be recorded now: the facts
// of its tenant use up its share of the log, or the log is full of facts and no other
// tenant has more, or the tenant writes faster than its contents are evicted. Contents do
// not count otherwise.
func (l *Log) Admit(caller *contract.Caller) error { return l.limiter.admit(quota.OwnerOf(caller)) }

// Usage returns the stored bytes by owner.
func (l *Log) Usage() map[quota.Owner]int64 {
	usage := map[quota.Owner]int64{}
	for owner, bytes := range l.usage.byOwner() {
		usage[owner] = bytes.sum()
	}
	return usage
}

// Append writes the record durably, in one batch with other waiting records. If ctx
// ends first, it is not known whether the record is written. Errors wrap those of
// package store. After another process has written to the chain, every Append
// returns store.ErrConflict.
func (l *Log) Append(ctx context.Context, rec Record) error {
	if err := checkAppendable(&rec); err != nil {
		return appendError(err)
	}
	return l.appendRecord(ctx, &rec)
}

// Submit queues the record, and returns without waiting until it is written; it waits only
// while the queue is full. done receives what Append would return, once, in the goroutine
// that writes the log: it must return soon, and not call the log. If Submit returns an
// error, done is not called.
func (l *Log) Submit(ctx context.Context, rec Record, done func(error)) error {
	err := checkAppendable(&rec)
	if err == nil {
		err = l.submitRecord(ctx, &rec, func(err error) { done(appendError(err)) })
	}
	return appendError(err)
}

// checkAppendable rejects records that the log writes by itself.
func checkAppendable(rec *Record) error {
	switch rec.Kind {
	case KindDecision, KindOutcome, KindToolCall, KindRun, KindFeedback:
	default:
		return fmt.Errorf("%w: kind %q", errInvalidRecord, rec.Kind)
	}
	if rec.Event != "" || rec.UpTo != nil {
		return fmt.Errorf("%w: kind %q, event %q", errInvalidRecord, rec.Kind, rec.Event)
	}
	return nil
}

func appendError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("append to the audit log: %w", err)
}

// AppendAct writes an act of a caller, as Append does. The zero caller is the router itself.
func (l *Log) AppendAct(ctx context.Context, act Act, caller *contract.Caller) error {
	rec := Record{
		Kind: KindAdmin, Event: act.Event, Action: act.Tool, Note: act.Note, Tenant: caller.Tenant, Subject: caller.Subject, Issuer: caller.Issuer,
	}
	switch act.Event {
	case EventRegister, EventDrain, EventLeave, EventDisable, EventEnable:
		rec.Agents = []string{act.Agent}
	case EventApprove, EventAddServer, EventDropServer, EventTicket, EventRotateKeys:
	default:
		return fmt.Errorf("append to the audit log: %w: event %q", errInvalidRecord, act.Event)
	}
	return l.appendRecord(ctx, &rec)
}

// appendRecord writes a record of any kind, and waits until it is written.
func (l *Log) appendRecord(ctx context.Context, rec *Record) error {
	result := make(chan error, 1)
	if err := l.submitRecord(ctx, rec, func(err error) { result <- err }); err != nil {
		return appendError(err)
	}
	select {
	case err := <-result:
		return appendError(err)
	case <-ctx.Done():
		return appendError(fmt.Errorf("%w: not known to be written: %w", store.ErrUnavailable, context.Cause(ctx)))
	}
}

// submitRecord queues a record of any kind. See Submit.
func (l *Log) submitRecord(ctx context.Context, rec *Record, done func(error)) error {
	p, err := newPending(rec, &l.cfg)
	if err != nil {
		return err
	}
	bytes := p.usage.bytes.sum()
	p.done = func(err error) {
		l.limiter.queued.Add(-bytes)
		done(err)
	}
	l.limiter.queued.Add(bytes) // before the check, because others check at the same time
	if rec.Kind != KindAdmin {
		err = l.limiter.checkRoom(rec)
	}
	if err == nil {
		err = l.queue.Push(ctx, p.usage.owner, p, p.delayed)
		switch {
		case errors.Is(err, fairqueue.ErrClosed):
			err = ErrClosed
		case err != nil:
			err = fmt.Errorf("%w: %w", store.ErrUnavailable, err)
		}
	}
	if err != nil {
		l.limiter.queued.Add(-bytes)
	}
	return err
}

// newPending encodes a record for the queue.
func newPending(rec *Record, cfg *Config) (*pendingRecord, error) {
	if rec.At.IsZero() {
		rec.At = cfg.Now()
	}
	rec.At = rec.At.UTC()
	e, err := newEntry(rec, cfg.Keys)
	if err != nil {
		return nil, err
	}
	return &pendingRecord{entry: e, at: rec.At, kind: rec.Kind, id: rec.RequestID, usage: usageOf(rec, &e), delayed: rec.Delayed}, nil
}

// Fenced returns a channel that is closed when another process has written to the
// chain: every Append fails from then on, and this process must stop.
func (l *Log) Fenced() <-chan struct{} { return l.fenced }

// Close writes the queued records, a stop record and the final head. It may be
// called again. If ctx ends first, queued records may be lost.
func (l *Log) Close(ctx context.Context) error {
	l.once.Do(func() {
		l.retainer.group.Stop(nil)
		_ = l.retainer.group.Wait() // its last pass may append a record; the group reports its error
		l.queue.Close()
		close(l.closing)
		var late error
		select {
		case <-l.ended:
		case <-ctx.Done():
			late = fmt.Errorf("close the audit log: %w", context.Cause(ctx))
		}
		l.group.Stop(nil)
		l.closed = errors.Join(late, l.group.Wait(), l.writeHead())
		if l.others != nil && !isClosed(l.fenced) {
			l.closed = errors.Join(l.closed, l.publishHead(ctx))
		}
		l.closed = errors.Join(l.closed, l.head.sync(), l.head.file.Close())
	})
	return l.closed
}
