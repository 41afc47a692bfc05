package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/caprouter/caprouter/internal/auth/keyring"
	"github.com/caprouter/caprouter/internal/datadir"
)

// checkDataDir checks that serve could create the data directory, write to it and
// lock it.
func (d *diagnosis) checkDataDir(ctx context.Context) Finding {
	dir := d.DataDir
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		parent := nearestParent(dir)
		if err := checkCanCreate(parent); err != nil {
			return checkFailed(fmt.Sprintf("%s does not exist, and cannot be made in %s: %s", dir, parent, datadir.WithoutPath(err)),
				"make "+parent+" writable for this user, or name another data_dir")
		}
		return checkPassed(dir + " does not exist yet; serve makes it")
	}
	if err := keyring.Check(dir); err != nil {
		return checkFailed(err.Error(), "correct the file or its mode, or name another data_dir")
	}
	probe, err := os.CreateTemp(dir, ".doctor-*")
	if err == nil {
		err = errors.Join(probe.Close(), os.Remove(probe.Name()))
	}
	if err != nil {
		return checkFailed(fmt.Sprintf("no file can be created in %s: %s", dir, datadir.WithoutPath(err)), makeWritable(err)+", or name another data_dir")
	}
	if holder := lockHolder(filepath.Join(dir, "lock")); holder != "" {
		return d.reportLock(ctx, holder)
	}
	if _, err := os.Stat(filepath.Join(dir, keyring.File)); err != nil {
		return checkPassed(dir + " is writable; serve makes the signing key")
	}
	return checkPassed(dir + " is writable and the signing key is private")
}

// makeWritable returns how to make a directory writable in which no file can be created.
func makeWritable(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return "free space or inodes (df -i)"
	case errors.Is(err, syscall.EROFS):
		return "mount it writable"
	}
	return "make it writable for this user"
}

// reportLock reports a directory that another process has locked. That is only a
// warning if a process listens on the configured address, because it is probably the
// same router.
func (d *diagnosis) reportLock(ctx context.Context, holder string) Finding {
	detail, fix := fmt.Sprintf("%s is held by %s", d.DataDir, holder), "stop it, or name another data_dir"
	if d.checkListener(ctx).Level == LevelWarn { // in use
		return checkWarned(detail, "correct if it is the router on "+d.Listen+"; else "+fix)
	}
	return checkFailed(detail, fix)
}

// nearestParent returns the first existing directory above dir.
func nearestParent(dir string) string {
	for parent := filepath.Dir(filepath.Clean(dir)); ; parent = filepath.Dir(parent) {
		if _, err := os.Stat(parent); err == nil || parent == filepath.Dir(parent) {
			return parent
		}
	}
}

// checkCanCreate creates and removes a directory, because permissions alone do not tell
// whether a file system is writable.
func checkCanCreate(parent string) error {
	probe, err := os.MkdirTemp(parent, ".doctor-*")
	if err != nil {
		return err
	}
	return os.Remove(probe)
}

// lockHolder returns the process that holds the lock of a store, "" if it is free. The
// operating system releases the lock when its process ends.
func lockHolder(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	if !isLocked(file) {
		return ""
	}
	line, _ := io.ReadAll(io.LimitReader(file, 256))
	if fields := strings.Fields(string(line)); len(fields) > 1 && fields[0] == "pid" {
		return "process " + fields[1]
	}
	return "another process"
}
