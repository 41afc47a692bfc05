package dirlock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/caprouter/caprouter/internal/datadir"
)

// ErrHeld is wrapped by the error of Acquire if another process holds the lock.
var ErrHeld = errors.New("is held")

const fileName = "lock"

// Lock is the exclusive lock on a directory.
type Lock struct{ file *os.File }

// Acquire locks dir, which it creates if it does not exist, and writes the owner to the
// file of the lock. It does not wait: it returns ErrHeld if another process holds the lock.
func Acquire(dir, owner string) (*Lock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := datadir.Check(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, fileName)
	file, err := datadir.OpenFile(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	if err := lockExclusive(file); err != nil {
		holder := readHolder(file)
		_ = file.Close()
		if errors.Is(err, ErrHeld) {
			return nil, fmt.Errorf("%s %w by %s: stop it, or choose another --data-dir", path, ErrHeld, holder)
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	// The text is only for people, so write errors do not matter.
	_ = file.Truncate(0)
	_, _ = file.WriteAt(fmt.Appendf(nil, "pid %d owner %s\n", os.Getpid(), owner), 0)
	return &Lock{file: file}, nil
}

// readHolder returns the holder of the lock for the error message.
func readHolder(file *os.File) string {
	line := make([]byte, 256)
	n, _ := file.ReadAt(line, 0)
	fields := strings.Fields(string(line[:n]))
	if len(fields) < 2 || fields[0] != "pid" {
		return "another process"
	}
	return "pid " + fields[1]
}

// Release ends the lock.
func (l *Lock) Release() { _ = l.file.Close() }

// Path returns the path of the lock's file.
func (l *Lock) Path() string { return l.file.Name() }

// Stat describes the locked file, which may no longer be the one at Path.
func (l *Lock) Stat() (fs.FileInfo, error) { return l.file.Stat() }
