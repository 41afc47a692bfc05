package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/store/dirlock"
)

// lockDirectory locks a data directory, which it creates if it does not exist, or returns
// ErrLocked. The engine has no lock of its own: two servers on the same files lose messages
// silently.
func lockDirectory(dir, owner string) (*dirlock.Lock, error) {
	lock, err := dirlock.Acquire(dir, owner)
	if errors.Is(err, dirlock.ErrHeld) {
		return nil, fmt.Errorf("%w: %w", ErrLocked, err)
	}
	return lock, err
}

// ownership is this process's right to write to the store. It can be lost once.
type ownership struct {
	ended chan struct{}
	once  sync.Once
	err   error // set before ended is closed
}

// LoseOwnership makes the store reject all writes from now on, for example because
// another process writes to it. The first reason counts.
func (s *Store) LoseOwnership(why error) {
	s.owned.once.Do(func() {
		s.owned.err = why
		s.cfg.Logger.Error("store: this process no longer owns the store and must stop", "error", why)
		close(s.owned.ended)
	})
}

// OwnershipLost returns a channel that is closed when this process no longer owns
// the store: it must stop, because another process may write.
func (s *Store) OwnershipLost() <-chan struct{} { return s.owned.ended }

// OwnershipError returns why this process lost the store, for example because the files
// of the directory were replaced (ErrLocked). It is nil until OwnershipLost is closed.
func (s *Store) OwnershipError() error {
	select {
	case <-s.owned.ended:
		return s.owned.err
	default:
		return nil
	}
}

// watchedPath is a file or directory with the identity it had when the store was
// opened.
type watchedPath struct {
	path string
	info fs.FileInfo
}

// watchPaths returns the lock, and the directory of an embedded engine.
func (s *Store) watchPaths() ([]watchedPath, error) {
	info, err := s.lock.Stat()
	if err != nil {
		return nil, err
	}
	list := []watchedPath{{s.lock.Path(), info}}
	if s.cfg.URL == "" {
		path := s.cfg.engineDir()
		if info, err = os.Lstat(path); err != nil {
			return nil, err
		}
		list = append(list, watchedPath{path, info})
	}
	return list, nil
}

// watchDirectory ends the ownership when the lock or the directory of the engine is
// no longer the one that this process opened. The files that it has open are then not
// those that the next process finds, so what it writes would be lost.
func (s *Store) watchDirectory(paths []watchedPath) func(context.Context) error {
	return func(ctx context.Context) error {
		for range run.Ticks(ctx, healthInterval) {
			for _, p := range paths {
				info, err := os.Lstat(p.path)
				if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(info, p.info) {
					s.LoseOwnership(fmt.Errorf("%w: %s was removed or replaced while this process used it", ErrLocked, p.path))
					return nil
				}
			}
		}
		return nil
	}
}
