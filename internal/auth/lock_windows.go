package auth

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"
)

// checkRetiredDir has nothing to look at: there are no such bits.
func checkRetiredDir(string, fs.FileInfo) error { return nil }

// ownerOf does not know: files have no such number.
func ownerOf(fs.FileInfo) (uid int, known bool) { return 0, false }

const (
	lockTries  = 100
	lockPause  = 20 * time.Millisecond
	errSharing = syscall.Errno(32) // ERROR_SHARING_VIOLATION
)

// lockFile opens a file, which is made when absent, and shares it with nobody.
// The system gives it back when the process ends.
func lockFile(path string, wait bool) (unlock func(), err error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		const shared = 0
		h, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, shared, nil,
			syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
		if err == nil {
			return func() { _ = syscall.CloseHandle(h) }, nil
		}
		if errors.Is(err, errSharing) {
			err = errLocked
		}
		if !wait || try == lockTries || !errors.Is(err, errLocked) {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		time.Sleep(lockPause)
	}
}
