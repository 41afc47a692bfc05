//go:build unix

package keyring

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/caprouter/caprouter/internal/datadir"
)

func checkRetiredDir(dir string, info fs.FileInfo) error {
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("retired keys: %s may be used by others (mode %04o); run: chmod 700 %s", dir, mode, dir)
	}
	return nil
}

// ownerOf returns the user id of a file's owner.
func ownerOf(info fs.FileInfo) (uid int, known bool) {
	stat, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return 0, false
	}
	return int(stat.Uid), true
}

// lockFile creates the file if needed and locks it against other processes. The
// system releases the lock when the process ends.
func lockFile(path string, wait bool) (unlock func(), err error) {
	f, err := datadir.OpenFile(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	for {
		err = syscall.Flock(int(f.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = errLocked
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return func() { _ = f.Close() }, nil
}
