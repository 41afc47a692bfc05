//go:build unix

package app

import (
	"errors"
	"os"
	"syscall"
)

// isLocked reports whether another process has the file locked for itself. What
// is tried is given back when the file is closed.
func isLocked(file *os.File) bool {
	return errors.Is(syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}
