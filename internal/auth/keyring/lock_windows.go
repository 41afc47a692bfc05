package keyring

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"
)

// checkRetiredDir does nothing, because Windows has no permission bits.
func checkRetiredDir(string, fs.FileInfo) error { return nil }

// ownerOf returns known = false, because Windows files have no numeric owner.
func ownerOf(fs.FileInfo) (uid int, known bool) { return 0, false }

const (
	lockTries  = 100
	lockPause  = 20 * time.Millisecond
	errSharing = syscall.Errno(32) // ERROR_SHARING_VIOLATION
)

// lockFile opens the file without sharing, and creates it if needed. The system
// releases it when the process ends.
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
