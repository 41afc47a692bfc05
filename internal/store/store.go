package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/store/dirlock"
)

const defaultMaxBytes = 10 << 30

// Config configures a store. The zero value of every field except Dir (or URL)
// works.
type Config struct {
	// Dir is the data directory. It contains the lock file and, for an embedded
	// store, the engine's files in Dir/store.
	Dir string
	// URL is empty for an embedded engine, which has no listener, or
	// nats://host:port for an external server; several servers of a cluster are
	// separated by commas.
	URL string
	// Replication is the number of servers that keep each stream; 0 = 1.
	Replication int
	// SyncEvery is how often written data is synced to disk. Zero syncs every write
	// before it is acknowledged. Otherwise a power failure may lose the writes of
	// this interval; the death of the process loses none. Without effect for a
	// server at a URL.
	SyncEvery time.Duration
	// MaxBytes limits all data on disk; 0 = 10 GiB.
	MaxBytes int64
	// MinFree is the free disk space below which writes are rejected, so that the
	// engine never meets a full disk; 0 = 64 MiB.
	MinFree int64
	// Owner names this process in the lock file and in the connections to a server.
	Owner string

	// RepairAll removes all damage of the files when the store is opened. It is for
	// copies. Otherwise only a damaged end is removed, and Open returns repair.ErrNeeded.
	RepairAll bool

	// FreeSpace returns the free space of the disk. Nil = the file system of Dir;
	// tests replace it.
	FreeSpace func() (Space, error)
	Logger    *slog.Logger
	Now       func() time.Time

	attemptTimeout time.Duration // of a call that is repeated; 0 = 3 s
}

// withDefaults returns the configuration with the defaults of empty fields.
func (c Config) withDefaults() Config {
	if c.MaxBytes <= 0 {
		c.MaxBytes = defaultMaxBytes
	}
	if c.MinFree <= 0 {
		c.MinFree = DefaultMinFree
	}
	c.Replication = max(c.Replication, 1)
	if c.Owner == "" {
		c.Owner = "caprouter"
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.attemptTimeout <= 0 {
		c.attemptTimeout = attemptTimeout
	}
	if c.FreeSpace == nil && c.URL == "" {
		c.FreeSpace = cachedFreeSpace(c.Dir)
	}
	return c
}

// Store is an open store. Its methods, and those of its buckets and logs, may be
// called from any goroutine.
type Store struct {
	cfg    Config
	lock   *dirlock.Lock // nil with a URL and no Dir
	engine *engine
	owned  ownership
	group  *run.Group

	closed    chan struct{}
	closeOnce sync.Once
	closeErr  error

	mu       sync.Mutex
	specs    map[string]streamSpec // by stream name; a restarted engine must have them
	inMemory map[string]memoryStream
	// lastWrites are those of logs, by name.
	lastWrites map[string]*lastWrite

	rejections  rejections
	failedWrite atomic.Pointer[string] // see writeError
}

// Open opens the store, and creates a missing one. If it fails, it leaves nothing
// running. The error wraps ErrLocked if another process owns the directory, or if one
// of a release before replicas owns the store at the URL.
func Open(ctx context.Context, cfg Config) (_ *Store, err error) {
	cfg = cfg.withDefaults()
	if cfg.Dir == "" && cfg.URL == "" {
		return nil, fmt.Errorf("open store: no directory and no URL")
	}
	s := &Store{cfg: cfg, closed: make(chan struct{}), specs: map[string]streamSpec{}, inMemory: map[string]memoryStream{}, lastWrites: map[string]*lastWrite{}, owned: ownership{ended: make(chan struct{})}}
	defer func() {
		if err != nil {
			_ = s.Close()
			err = fmt.Errorf("open store: %w", err)
		}
	}()
	if cfg.Dir != "" {
		if s.lock, err = lockDirectory(cfg.Dir, cfg.Owner); err != nil {
			return nil, err
		}
	}
	if err := checkNewStore(&cfg); err != nil {
		return nil, err
	}
	// The group outlives this call: Close ends it, not the caller's context.
	s.group = run.New(context.WithoutCancel(ctx))
	if cfg.URL == "" {
		s.engine, err = startEmbedded(ctx, cfg)
	} else {
		s.engine, err = connectExternal(cfg)
	}
	if err != nil {
		return nil, err
	}
	if s.lock != nil {
		paths, err := s.watchPaths()
		if err != nil {
			return nil, err
		}
		s.group.Go("watch the data directory", s.watchDirectory(paths))
	}
	if cfg.URL == "" {
		s.group.Go("supervise the storage engine", s.supervise)
		return s, nil
	}
	if err := checkLegacyOwner(ctx, s); err != nil {
		return nil, err
	}
	s.group.Go("recreate streams in memory", s.recreateAfterReconnect)
	return s, nil
}

// checkNewStore returns an error if the embedded store does not exist yet, and the disk has no
// space to create it.
func checkNewStore(cfg *Config) error {
	if cfg.URL != "" {
		return nil
	}
	if _, err := os.Stat(cfg.engineDir()); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	free, err := cfg.FreeSpace()
	if err != nil {
		return nil //nolint:nilerr // as in checkWritable
	}
	if err := free.check(cfg.MinFree); err != nil {
		return fmt.Errorf("%w: free space, or choose another --data-dir", err)
	}
	return nil
}

// IsShared reports whether other processes may use the store.
func IsShared(s *Store) bool { return s.cfg.URL != "" }

// Close stops the engine and releases the lock. Acknowledged writes are durable.
// Calls in progress return ErrUnavailable.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		close(s.closed)
		if s.group != nil {
			s.group.Stop(nil)
			s.closeErr = s.group.Wait()
		}
		if s.engine != nil {
			s.engine.stop()
			s.forgetRepaired()
		}
		if s.lock != nil {
			s.lock.Release()
		}
	})
	return s.closeErr
}

// Status is the state of a store.
type Status struct {
	// Ready reports whether a write would succeed now.
	Ready bool
	// Err is the reason if not. It names a full log or bucket from a rejected write
	// until a write succeeds, or would succeed.
	Err error
	// Used and Cap are bytes on disk; Free is the free space of the disk, 0 if that
	// belongs to another machine.
	Used, Cap, Free int64
	// Mode is "embedded" or "external".
	Mode string
}

// Status returns the state of the store. It does not block for long.
func (s *Store) Status() Status {
	st := Status{Cap: s.cfg.MaxBytes, Mode: "embedded"}
	if s.cfg.URL != "" {
		st.Mode = "external"
	}
	if s.cfg.FreeSpace != nil {
		free, _ := s.cfg.FreeSpace()
		st.Free = free.Bytes
	}
	st.Err = s.checkWritable()
	if st.Err == nil {
		st.Err = s.engine.currentError()
	}
	if st.Err == nil {
		st.Err = s.writeError()
	}
	if st.Err == nil && s.cfg.URL != "" && s.engine.recreated.Load() != s.engine.disconnects.Load() {
		st.Err = fmt.Errorf("%w: the streams in memory are being created again after a reconnect", ErrUnavailable)
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

// CheckWritable returns an error if a write would probably not succeed now, without
// waiting for the engine. It is for callers that need not try.
func (s *Store) CheckWritable() error {
	return cmp.Or(s.checkWritable(), s.engine.currentError(), s.writeError())
}

// checkWritable returns an error if a write must not be tried.
func (s *Store) checkWritable() error {
	if err := s.checkOwned(); err != nil {
		return err
	}
	if s.cfg.FreeSpace == nil {
		return nil
	}
	// If the free space is not known, the engine reports the error.
	free, err := s.cfg.FreeSpace()
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	return free.check(s.cfg.MinFree)
}

// checkOwned returns an error if nothing may be changed. Unlike checkWritable it
// allows deletes on a full disk, because they free space.
func (s *Store) checkOwned() error {
	select {
	case <-s.closed:
		return fmt.Errorf("%w: the store is closed", ErrUnavailable)
	case <-s.owned.ended:
		return errNotOwned
	default:
		return nil
	}
}

var errNotOwned = fmt.Errorf("%w: this process no longer owns the store", ErrLocked)
