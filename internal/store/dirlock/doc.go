// Package dirlock gives one process at a time the exclusive use of a data directory.
//
//	lock, err := dirlock.Acquire(dir, "caprouter") // ErrHeld
//	defer lock.Release()
//
// The operating system releases the lock when the process ends, so the existence of its
// file means nothing.
package dirlock
