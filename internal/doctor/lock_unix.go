//go:build unix

package doctor

import (
	"errors"
	"os"
	"syscall"
)

// isLocked reports whether another process has an exclusive lock on the file. Closing
// the file releases the lock of the test.
func isLocked(file *os.File) bool {
	return errors.Is(syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}
