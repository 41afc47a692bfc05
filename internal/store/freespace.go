package store

import (
	"fmt"
	"sync/atomic"
	"time"
)

// DefaultMinFree is the free disk space below which a store rejects writes, unless
// Config.MinFree is set.
const DefaultMinFree = 64 << 20

// freeSpaceValidity is how long the free space is not read again. The writes of this
// time are far smaller than DefaultMinFree.
const freeSpaceValidity = 20 * time.Millisecond

// Space is what a process may still write to a file system.
type Space struct {
	Bytes int64
	Files int64 // that can be created; −1 = the file system has no limit
}

// check returns an error that wraps ErrFull if less than minBytes or minFiles is free.
func (s Space) check(minBytes int64) error {
	switch {
	case s.Bytes < minBytes:
		return fmt.Errorf("%w: the disk has %d MiB free, and %d MiB are reserved", ErrFull, s.Bytes>>20, minBytes>>20)
	case s.Files >= 0 && s.Files < minFiles:
		return fmt.Errorf("%w: the file system has %d inodes free, and %d are reserved", ErrFull, s.Files, minFiles)
	}
	return nil
}

// CheckFreeSpace returns an error that wraps ErrFull if a store in dir would reject writes because
// of the file system.
func CheckFreeSpace(dir string) error {
	free, err := FreeSpace(dir)
	if err != nil {
		return nil //nolint:nilerr // the engine reports the error
	}
	return free.check(DefaultMinFree)
}

// minFiles is how many files the engine must be able to create: the next file of each
// stream, and replacements of the files with the state.
const minFiles = 64

// cachedFreeSpace returns a function that returns the free space of a directory, and
// reads it once in freeSpaceValidity.
func cachedFreeSpace(dir string) func() (Space, error) {
	type reading struct {
		at   time.Time // of the monotonic clock
		free Space
		err  error
	}
	var last atomic.Pointer[reading]
	return func() (Space, error) {
		if r := last.Load(); r != nil && time.Since(r.at) < freeSpaceValidity {
			return r.free, r.err
		}
		r := &reading{at: time.Now()}
		r.free, r.err = FreeSpace(dir)
		last.Store(r)
		return r.free, r.err
	}
}
