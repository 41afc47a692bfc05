//go:build unix

package localfile

import (
	"errors"
	"os"
	"syscall"
)

// tryLockDir locks a directory against other commands that edit files in it, and reports
// false if one of them has the lock. The system releases it when the process ends. A
// directory that cannot be locked, for example because its file system does not support
// it, counts as locked: the lock protects edits, and is no condition for them.
func tryLockDir(dir string) (unlock func(), ok bool) {
	f, err := os.Open(dir)
	if err != nil {
		return func() {}, true // the edit reports it
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	return func() { _ = f.Close() }, !errors.Is(err, syscall.EWOULDBLOCK)
}
