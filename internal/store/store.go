package store

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/caprouter/caprouter/internal/run"
)

// DefaultMinFree is the free disk space below which a store takes no writes, unless
// Config.MinFree says otherwise.
const DefaultMinFree = 64 << 20

const (
	defaultMaxBytes = 10 << 30
	defaultLeaseTTL = 10 * time.Second
)

// Config says where a store lies and how much it may take. The zero value of
// every field but Dir (or URL) works.
type Config struct {
	// Dir is the data directory. It holds the lock file and, for an embedded
	// store, the engine's files in Dir/store.
	Dir string
	// URL is empty for an embedded engine, which this process reaches without
	// any listener, or nats://host:port for a server of its own.
	URL string
	// SyncEvery is how often written data is forced to disk. Zero forces with
	// every write, before it is acknowledged. Otherwise a power cut may lose
	// that much; the death of the process loses nothing either way. It is a
	// setting of the server when there is a URL, and without effect here.
	SyncEvery time.Duration
	// MaxBytes caps everything on disk together; 0 = 10 GiB.
	MaxBytes int64
	// MinFree is the free disk space below which writes are refused, before the
	// engine itself meets a full disk; 0 = 64 MiB.
	MinFree int64
	// Owner names this process in the lock file and in the lease.
	Owner string
	// LeaseTTL is how long a store at a URL stays with an owner that is gone;
	// 0 = 10 s.
	LeaseTTL time.Duration

	// FreeSpace tells how many bytes the disk has left. Nil asks the operating
	// system about the disk of Dir; a test may pretend.
	FreeSpace func() (int64, error)
	Logger    *slog.Logger
	Now       func() time.Time
}

// withDefaults fills in what was left out.
func (c Config) withDefaults() Config {
	if c.MaxBytes <= 0 {
		c.MaxBytes = defaultMaxBytes
	}
	if c.MinFree <= 0 {
		c.MinFree = DefaultMinFree
	}
	if c.LeaseTTL <= 0 {
		c.LeaseTTL = defaultLeaseTTL
	}
	if c.Owner == "" {
		c.Owner = "caprouter"
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.FreeSpace == nil && c.URL == "" {
		c.FreeSpace = func() (int64, error) { return FreeSpace(c.Dir) }
	}
	return c
}

// Store is an open store. Make one with Open. Its methods, and those of its
// buckets and logs, may be called from any goroutine.
type Store struct {
	cfg    Config
	lock   *lockFile // nil with a URL and no Dir
	engine *engine
	lease  *ownerLease // nil when embedded
	group  *run.Group

	closed    chan struct{}
	closeOnce sync.Once
	closeErr  error

	mu    sync.Mutex
	specs map[string]streamSpec // by stream name: what a restarted engine must have

	rejections rejections
}

// Open opens the store, and creates what is missing. When it fails it has
// started nothing and holds nothing. The error wraps ErrLocked when another
// process has the store.
func Open(ctx context.Context, cfg Config) (_ *Store, err error) {
	cfg = cfg.withDefaults()
	if cfg.Dir == "" && cfg.URL == "" {
		return nil, fmt.Errorf("open store: neither a directory nor a URL is given")
	}
	s := &Store{cfg: cfg, closed: make(chan struct{}), specs: map[string]streamSpec{}}
	defer func() {
		if err != nil {
			_ = s.Close()
			err = fmt.Errorf("open store: %w", err)
		}
	}()
	if cfg.Dir != "" {
		if s.lock, err = acquireLock(cfg.Dir, cfg.Owner); err != nil {
			return nil, err
		}
	}
	// The group outlives this call: Close ends it, not the caller's context.
	s.group = run.New(context.WithoutCancel(ctx))
	if cfg.URL == "" {
		s.engine, err = startEmbedded(ctx, cfg)
	} else {
		s.engine, err = connectExternal(ctx, cfg)
	}
	if err != nil {
		return nil, err
	}
	if cfg.URL == "" {
		s.group.Go("keep the engine running", s.supervise)
		return s, nil
	}
	if s.lease, err = s.acquireLease(ctx); err != nil {
		return nil, err
	}
	s.group.Go("renew the owner lease", s.lease.renewUntilLost)
	return s, nil
}

// Close lets go of everything: what was acknowledged is on disk, the engine has
// stopped, the lock is free. Calls that are under way end with ErrUnavailable.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		close(s.closed)
		if s.group != nil {
			s.group.Stop(nil)
			s.closeErr = s.group.Wait()
		}
		if s.lease != nil {
			s.lease.release()
		}
		if s.engine != nil {
			s.engine.stop()
		}
		if s.lock != nil {
			s.lock.release()
		}
	})
	return s.closeErr
}

// OwnershipLost is closed when this process owns the store no longer: it must stop, for
// another one may be writing. The channel of an embedded store never closes,
// since nobody can take a file lock away.
func (s *Store) OwnershipLost() <-chan struct{} {
	if s.lease == nil {
		return nil
	}
	return s.lease.lost
}

// OwnershipError says why this process owns the store no longer, in words for who
// runs it: another one has it (ErrLocked, as when this one was held up for too
// long), or its server was not reached for as long as the lease lasts
// (ErrUnavailable). It is nil until Lost is closed.
func (s *Store) OwnershipError() error {
	if s.lease == nil {
		return nil
	}
	select {
	case <-s.lease.lost:
		return s.lease.lostErr
	default:
		return nil
	}
}

// Status is how a store does.
type Status struct {
	// Ready says that a write would be taken now.
	Ready bool
	// Err is why not. Of a log or a bucket that is full it says which, from the
	// write it refused until it takes one, or has room for that one.
	Err error
	// Used and Cap are bytes on disk, Free is what the disk has left. Free is 0
	// when the disk is another machine's.
	Used, Cap, Free int64
	// Mode is "embedded" or "external".
	Mode string
}

// Status tells how the store does, without waiting for anything long.
func (s *Store) Status() Status {
	st := Status{Cap: s.cfg.MaxBytes, Mode: "embedded"}
	if s.cfg.URL != "" {
		st.Mode = "external"
	}
	if s.cfg.FreeSpace != nil {
		st.Free, _ = s.cfg.FreeSpace()
	}
	st.Err = s.checkWritable()
	if st.Err == nil {
		st.Err = s.engine.currentError()
	}
	st.Used = s.engine.usedBytes()
	if st.Err == nil && st.Used >= st.Cap {
		st.Err = fmt.Errorf("%w: %d of %d bytes are used", ErrFull, st.Used, st.Cap)
	}
	if st.Err == nil {
		st.Err = s.rejectedError()
	}
	st.Ready = st.Err == nil
	return st
}

// checkWritable says why a write must not even be tried.
func (s *Store) checkWritable() error {
	if err := s.checkOwned(); err != nil {
		return err
	}
	if s.cfg.FreeSpace == nil {
		return nil
	}
	// One system call, some hundred times cheaper than the fsync that follows.
	// When it cannot tell, the engine will.
	if free, err := s.cfg.FreeSpace(); err == nil && free < s.cfg.MinFree {
		return fmt.Errorf("%w: the disk has %d bytes left, and %d are kept free", ErrFull, free, s.cfg.MinFree)
	}
	return nil
}

// checkOwned says why nothing may be changed, a full disk aside: what makes room
// needs none.
func (s *Store) checkOwned() error {
	select {
	case <-s.closed:
		return fmt.Errorf("%w: it is closed", ErrUnavailable)
	default:
	}
	if s.lease != nil {
		return s.lease.checkValid()
	}
	return nil
}
