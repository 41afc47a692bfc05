package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/caprouter/caprouter/internal/datadir"
)

// errLockHeld is the error of lockExclusive if another process holds the lock.
var errLockHeld = errors.New("held")

const lockName = "lock"

// lockFile is the exclusive lock on a data directory. The engine has none of its
// own: two servers on the same files lose messages silently. The operating system
// releases the lock when the process ends, so the existence of the file means
// nothing.
type lockFile struct{ file *os.File }

// acquireLock locks dir, which it creates if it does not exist, and writes the owner
// to the file.
func acquireLock(dir, owner string) (*lockFile, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := datadir.Check(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, lockName)
	file, err := datadir.OpenFile(path, os.O_RDWR|os.O_CREATE)
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
	// The text is only for people, so write errors do not matter.
	_ = file.Truncate(0)
	_, _ = file.WriteAt(fmt.Appendf(nil, "pid %d owner %s\n", os.Getpid(), owner), 0)
	return &lockFile{file: file}, nil
}

// lockHolder returns the owner of the lock for the error message.
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
