package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/store"
)

// HeadFile is the name of the signed head in the data directory.
const HeadFile = "audit.head"

// Retention says how long what stays. Zero = for ever.
type Retention struct {
	Contents time.Duration // then contents go, facts stay
	Chain    time.Duration // then everything goes, behind a checkpoint
	MaxBytes int64         // of the whole log: beyond it the oldest goes, behind a checkpoint
}

// Config is what a Trail needs. Log, Signer and HeadFile are required.
type Config struct {
	Log       *store.Log // made with LogConfig
	Writer    string     // the chain's name; "" = "main"
	Signer    Signer
	HeadFile  string // path of the signed head
	Retention Retention
	Logger    *slog.Logger
	Now       func() time.Time
	// Observe is told of every write: how many records, how long it took, how it
	// went. Calls do not overlap.
	OnWrite func(records int, took time.Duration, err error)
}

// DefaultWriter names the only chain of a store that one process owns.
const DefaultWriter = "main"

const maxWriter = 64

var validWriter = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// LogConfig is the log a trail lies in. Its retention is the trail's business,
// not the log's: what goes without a checkpoint counts as deleted.
func LogConfig(share float64) store.LogConfig {
	return store.LogConfig{Name: "AUDIT", Subjects: []string{"audit.>"}, Share: share}
}

// subjects of one chain. The dots keep one writer's from being another's.
type subjects struct{ chain, content, restated, bare string }

func subjectsOf(writer string) subjects {
	return subjects{
		chain:    "audit." + writer,
		content:  "audit." + writer + ".content",
		restated: "audit." + writer + ".restated.",
		bare:     "audit." + writer + ".bare.",
	}
}

// ErrClosed is what Append returns after Close. It wraps store.ErrUnavailable.
var ErrClosed = fmt.Errorf("the trail is closed: %w", store.ErrUnavailable)

// Log is an open audit trail. Make one with Open. Its methods may be called
// from any goroutine.
type Log struct {
	cfg      Config
	subjects subjects
	index    *index
	written  *written
	searches chan struct{} // holds one for each search that reads the log
	group    *run.Group

	queue   chan *pending
	closing chan struct{} // closed: nothing more is taken
	ended   chan struct{} // closed: the writer has returned
	once    sync.Once
	closed  error

	now    atomic.Pointer[place] // where the chain is; written by the writer
	opened uint64                // position of the last record before this process
	dirty  chan struct{}         // the chain has moved on: seal its head; holds one
	heavy  chan struct{}         // the log has grown much: weigh it; holds one
	head   *headFile

	rewrite sync.Mutex // one erasure or expiry at a time
}

// place is the end of a chain.
type place struct {
	chain  chainID
	number uint64 // of the last batch; 0 = none yet
	last   uint64 // position of its last record
	hash   digest // of that record
	seq    uint64 // of its message; 0 = there is none
}

func (c Config) check() (Config, error) {
	if c.Writer == "" {
		c.Writer = DefaultWriter
	}
	switch {
	case c.Log == nil:
		return c, errors.New("no log")
	case c.Signer == nil:
		return c, errors.New("no signer")
	case c.HeadFile == "":
		return c, errors.New("no file for the head")
	case !validWriter.MatchString(c.Writer):
		return c, fmt.Errorf("writer %q: want 1 to 64 letters, digits, _ or -", c.Writer)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.OnWrite == nil {
		c.OnWrite = func(int, time.Duration, error) {}
	}
	return c, nil
}

// Open opens the trail of a writer, and begins it when there is none. It goes on
// where the log ends, and compares that with the signed head: what does not fit
// is logged, written into the chain, and named by Verify from then on; it does
// not keep the router from starting.
func Open(ctx context.Context, cfg Config) (*Log, error) {
	return openTrail(ctx, cfg, nil)
}

func openTrail(ctx context.Context, cfg Config, through appendFunc) (_ *Log, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("open the audit trail: %w", err)
		}
	}()
	if cfg, err = cfg.check(); err != nil {
		return nil, err
	}
	t := &Log{
		cfg: cfg, subjects: subjectsOf(cfg.Writer), index: newIndex(indexSize),
		written: newWritten(writtenSize, cfg.Now()), searches: make(chan struct{}, mostSearches),
		queue: make(chan *pending, queueSize), closing: make(chan struct{}), ended: make(chan struct{}),
		dirty: make(chan struct{}, 1), heavy: make(chan struct{}, 1),
	}
	at, notes, slot, err := t.resume(ctx)
	if err != nil {
		return nil, err
	}
	if t.head, err = openHeadFile(cfg.HeadFile); err != nil {
		return nil, err
	}
	t.head.slot = slot
	t.opened = at.last
	t.now.Store(&at)
	if through == nil {
		through = cfg.Log.Append
	}
	w := &writer{trail: t, append: t.weighing(through), at: at, preface: notes}
	// The group outlives this call: Close ends it, not the caller's context.
	t.group = run.New(context.WithoutCancel(ctx))
	t.group.Go("write the audit trail", w.run)
	t.group.Go("sign the head of the audit trail", t.sealHeads)
	return t, nil
}

// Append puts the record on disk and returns when it is there, together with
// whatever else is waiting. When ctx ends before, the record may or may not get
// written. Errors wrap those of the store; a trail that has met another writer
// fails for good, with store.ErrConflict.
func (t *Log) Append(ctx context.Context, rec Record) error {
	if rec.Kind != KindDecision && rec.Kind != KindOutcome || rec.Event != "" || rec.UpTo != nil {
		return fmt.Errorf("append to the audit trail: %w: kind %q, event %q", errRecord, rec.Kind, rec.Event)
	}
	return t.append(ctx, &rec)
}

func (t *Log) append(ctx context.Context, rec *Record) error {
	p, err := t.pending(rec)
	if err == nil {
		err = t.submit(ctx, p)
	}
	if err != nil {
		return fmt.Errorf("append to the audit trail: %w", err)
	}
	return nil
}

func (t *Log) pending(rec *Record) (*pending, error) {
	if rec.At.IsZero() {
		rec.At = t.cfg.Now()
	}
	rec.At = rec.At.UTC()
	e, err := entryOf(rec)
	if err != nil {
		return nil, err
	}
	return &pending{entry: e, kind: rec.Kind, id: rec.RequestID, done: make(chan error, 1)}, nil
}

func (t *Log) submit(ctx context.Context, p *pending) error {
	select {
	case <-t.closing: // first: a select among ready cases picks any
		return ErrClosed
	default:
	}
	select {
	case t.queue <- p:
	case <-t.closing:
		return ErrClosed
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", store.ErrUnavailable, context.Cause(ctx))
	}
	select {
	case err := <-p.done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w: not known to be written: %w", store.ErrUnavailable, context.Cause(ctx))
	case <-t.ended:
	}
	select {
	case err := <-p.done:
		return err
	default:
		return ErrClosed // it came into the queue after the writer's last look
	}
}

// Close writes what is waiting, a record that says the trail was closed in good
// order, and the final head. It may be called again. When ctx ends before, it
// gives up what is not written yet.
func (t *Log) Close(ctx context.Context) error {
	t.once.Do(func() {
		close(t.closing)
		var late error
		select {
		case <-t.ended:
		case <-ctx.Done():
			late = fmt.Errorf("close the audit trail: %w", context.Cause(ctx))
		}
		t.group.Stop(nil)
		t.closed = errors.Join(late, t.group.Wait(), t.sealHead(), t.head.sync(), t.head.file.Close())
	})
	return t.closed
}

// sealEvery is the least time between two heads. A signature costs as much as
// everything else a record needs of the processor, so one stands for all
// batches of that time.
const (
	sealEvery = 50 * time.Millisecond
	syncEvery = time.Second // a head survives the end of the process without
)

// sealHeads signs and writes the head whenever the chain has moved on, off the
// way of those who append. The writer itself writes the first one of a process,
// and leaves the file alone from then on.
func (t *Log) sealHeads(ctx context.Context) error {
	pause := time.NewTimer(0)
	defer pause.Stop()
	var synced time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.dirty:
		}
		err := t.sealHead()
		if now := time.Now(); err == nil && now.Sub(synced) >= syncEvery {
			synced, err = now, t.head.sync()
		}
		if err != nil {
			t.cfg.Logger.ErrorContext(ctx, "the audit trail's head is behind", "error", err)
		}
		pause.Reset(sealEvery)
		select {
		case <-ctx.Done():
			return nil
		case <-pause.C:
		}
	}
}

func (t *Log) sealHead() error {
	at := t.now.Load()
	if at.number == 0 {
		return nil
	}
	h := at.head(t.cfg.Writer, t.cfg.Now())
	return t.head.write(&h, t.cfg.Signer)
}
