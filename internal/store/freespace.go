package store

import (
	"sync/atomic"
	"time"
)

// DefaultMinFree is the free disk space below which a store rejects writes, unless
// Config.MinFree is set.
const DefaultMinFree = 64 << 20

// freeSpaceValidity is how long the free space is not read again. The writes of this
// time are far smaller than DefaultMinFree.
const freeSpaceValidity = 20 * time.Millisecond

// cachedFreeSpace returns a function that returns the free space of a directory, and
// reads it once in freeSpaceValidity.
func cachedFreeSpace(dir string) func() (int64, error) {
	type reading struct {
		at   time.Time // of the monotonic clock
		free int64
		err  error
	}
	var last atomic.Pointer[reading]
	return func() (int64, error) {
		if r := last.Load(); r != nil && time.Since(r.at) < freeSpaceValidity {
			return r.free, r.err
		}
		r := &reading{at: time.Now()}
		r.free, r.err = FreeSpace(dir)
		last.Store(r)
		return r.free, r.err
	}
}
