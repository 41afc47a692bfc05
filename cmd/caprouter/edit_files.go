package main

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

// fileEdit replaces the content of a file.
type fileEdit struct {
	path          string
	before, after []byte // before is nil if the file does not exist
}

// readForEdit returns the content of a file, nil if it does not exist. Anything but a regular
// file is an error: it cannot be replaced, and to open a named pipe waits for its writer.
func readForEdit(path string) ([]byte, error) {
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err == nil && !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: it is not a regular file and cannot be edited", path)
	}
	data, err := os.ReadFile(path)
	return data, withoutVerb(err)
}

// applyEdits changes all files or none. It fails if a file was changed since it was
// read, also by a command that runs at the same time.
func applyEdits(ctx context.Context, edits []fileEdit) error {
	unlock, err := lockDirs(ctx, edits)
	defer unlock()
	if err != nil {
		return err
	}
	for _, e := range edits {
		now, err := readForEdit(e.path)
		switch {
		case err != nil:
			return err
		case !bytes.Equal(now, e.before):
			return fmt.Errorf("%s was changed meanwhile, and nothing was written: run the command again", e.path)
		}
		if err := checkWritable(e.path); err != nil {
			return err
		}
	}
	for i, e := range edits {
		if err := writeAtomically(fileContent{e.path, e.after}); err != nil {
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
func lockDirs(ctx context.Context, edits []fileEdit) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	var dirs []string
	for _, e := range edits {
		dirs = append(dirs, filepath.Dir(canonicalPath(e.path)))
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

func restoreFiles(edits []fileEdit) error {
	var failed []error
	for _, e := range edits {
		if e.before == nil {
			failed = append(failed, os.Remove(e.path))
		} else {
			failed = append(failed, writeAtomically(fileContent{e.path, e.before}))
		}
	}
	return errors.Join(failed...)
}
