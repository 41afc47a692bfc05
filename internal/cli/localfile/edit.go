package localfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/caprouter/caprouter/internal/resilience"
)

// Edit replaces the content of a file.
type Edit struct {
	Path          string
	Before, After []byte // Before is nil if the file does not exist
}

// ReadForEdit returns the content of a file, nil if it does not exist. Anything but a regular
// file is an error: it cannot be replaced, and to open a named pipe waits for its writer.
func ReadForEdit(path string) ([]byte, error) {
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err == nil && !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: it is not a regular file and cannot be edited", path)
	}
	data, err := os.ReadFile(path)
	return data, ShortenError(err)
}

// ApplyEdits changes all files or none. It fails if a file was changed since it was
// read, also by a command that runs at the same time. It waits for a command that edits files
// in the same directory, for at most ten seconds.
func ApplyEdits(ctx context.Context, edits []Edit) error {
	unlock, err := lockDirs(ctx, edits)
	defer unlock()
	if err != nil {
		return err
	}
	for _, e := range edits {
		now, err := ReadForEdit(e.Path)
		switch {
		case err != nil:
			return err
		case !bytes.Equal(now, e.Before):
			return fmt.Errorf("%s was changed meanwhile, and nothing was written: run the command again", e.Path)
		}
		if err := CheckWritable(e.Path); err != nil {
			return err
		}
	}
	for i, e := range edits {
		if err := Write(File{e.Path, e.After}); err != nil {
			return errors.Join(err, restoreFiles(edits[:i]))
		}
	}
	return nil
}

// How often and how long a lock of another command is waited for, which it holds only
// while it writes.
const (
	lockPoll = 20 * time.Millisecond
	lockWait = 10 * time.Second
)

// lockDirs locks the directories of the files. unlock must be called in any case.
func lockDirs(ctx context.Context, edits []Edit) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	var dirs []string
	for _, e := range edits {
		dirs = append(dirs, filepath.Dir(canonicalPath(e.Path)))
	}
	slices.Sort(dirs)
	var locks []func()
	unlock = func() {
		for _, release := range locks {
			release()
		}
	}
	for _, dir := range slices.Compact(dirs) {
		release, ok := tryLockDir(dir)
		for !ok {
			release()
			if !resilience.Sleep(ctx, lockPoll) {
				if errors.Is(ctx.Err(), context.Canceled) {
					return unlock, ctx.Err()
				}
				return unlock, fmt.Errorf("%s: another command edits files there: run the command again", dir)
			}
			release, ok = tryLockDir(dir)
		}
		locks = append(locks, release)
	}
	return unlock, nil
}

func restoreFiles(edits []Edit) error {
	var failed []error
	for _, e := range edits {
		if e.Before == nil {
			failed = append(failed, os.Remove(e.Path))
		} else {
			failed = append(failed, Write(File{e.Path, e.Before}))
		}
	}
	return errors.Join(failed...)
}
