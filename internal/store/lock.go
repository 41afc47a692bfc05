package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// errLockHeld is what lockExclusive gives when another process has the lock.
var errLockHeld = errors.New("held")

// lockFile is the exclusive lock on a data directory. The engine takes none of
// its own: two servers on the same files lose messages without a word. The
// operating system frees the lock when the process ends, however it ends, so
// the file may stay and says nothing by being there.
type lockFile struct{ file *os.File }

// acquireLock locks dir, which it makes when it is missing, and writes who did.
func acquireLock(dir, owner string) (*lockFile, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "lock")
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lockExclusive(file); err != nil {
		holder := lockHolder(file)
		_ = file.Close()
		if errors.Is(err, errLockHeld) {
			return nil, fmt.Errorf("%w: %s is held by %s: stop it, or choose another --data-dir", ErrLocked, path, holder)
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	// What the file says is for people only, so no write error matters here.
	_ = file.Truncate(0)
	_, _ = file.WriteAt(fmt.Appendf(nil, "pid %d owner %s\n", os.Getpid(), owner), 0)
	return &lockFile{file: file}, nil
}

// lockHolder reads who has the lock, for the error.
func lockHolder(file *os.File) string {
	line := make([]byte, 256)
	n, _ := file.ReadAt(line, 0)
	fields := strings.Fields(string(line[:n]))
	if len(fields) < 2 || fields[0] != "pid" {
		return "another process"
	}
	return "pid " + fields[1]
}

func (l *lockFile) release() { _ = l.file.Close() }
