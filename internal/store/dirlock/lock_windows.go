package dirlock

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockExclusive takes the lock or returns ErrHeld at once. It locks a byte far
// behind the text, so that others can read who has it.
func lockExclusive(file *os.File) error {
	at := &windows.Overlapped{OffsetHigh: 1}
	err := windows.LockFileEx(windows.Handle(file.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrHeld
	}
	return err
}
