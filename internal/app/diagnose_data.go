package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/caprouter/caprouter/internal/auth"
)

// diagnoseDataDir checks that serve could create the data directory, write to it and
// lock it.
func diagnoseDataDir(ctx context.Context, cfg *Config) Finding {
	dir := cfg.DataDir
	f := Finding{Check: "data directory", Level: LevelFail}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		parent := nearestParent(dir)
		if err := checkCanCreate(parent); err != nil {
			f.Detail = fmt.Sprintf("%s is not there, and cannot be made in %s: %s", dir, parent, withoutPath(err))
			f.Fix = "make " + parent + " writable for this user, or name another data_dir"
			return f
		}
		f.Level, f.Detail = LevelOK, dir+" is not there yet; serve makes it"
		return f
	}
	if err := auth.CheckKeyFile(dir); err != nil {
		f.Detail, f.Fix = err.Error(), "mend the file or its rights, or name another data_dir"
		return f
	}
	probe, err := os.CreateTemp(dir, ".doctor-*")
	if err == nil {
		err = errors.Join(probe.Close(), os.Remove(probe.Name()))
	}
	if err != nil {
		f.Detail, f.Fix = err.Error(), "make it writable for this user, or name another data_dir"
		return f
	}
	if holder := lockHolder(filepath.Join(dir, "lock")); holder != "" {
		return diagnoseLockedDir(ctx, f, cfg, holder)
	}
	f.Level, f.Detail = LevelOK, dir+" is writable and the signing key is private"
	if _, err := os.Stat(filepath.Join(dir, auth.KeyFile)); err != nil {
		f.Detail = dir + " is writable; serve makes the signing key"
	}
	return f
}

// diagnoseLockedDir reports a directory that another process has locked. That is only a
// warning if a process listens on the configured address, because it is probably the
// same router.
func diagnoseLockedDir(ctx context.Context, f Finding, cfg *Config, holder string) Finding {
	f.Detail = fmt.Sprintf("%s is held by %s", cfg.DataDir, holder)
	f.Fix = "stop it, or name another data_dir"
	if diagnoseListen(ctx, cfg.Listen).Level == LevelWarn { // in use
		f.Level, f.Fix = LevelWarn, "fine when that is the router on "+cfg.Listen+"; else "+f.Fix
	}
	return f
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

// withoutPath returns the error of the operating system without the path of the probe.
func withoutPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
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
