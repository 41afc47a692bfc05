// Package localfile reads and writes the files of the user: a file is complete or unchanged,
// several are changed together or not at all, and an error contains the path that the user
// gave and the fix. The content of the files is none of its concern.
package localfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// File is a file to write.
type File struct {
	Path    string // as the user gave it
	Content []byte
}

// Write writes a temporary file and renames it, so that the file is complete
// or unchanged. It writes to the target of a link and keeps the permissions of a file
// that exists. Errors contain the given path.
func Write(f File) error {
	path := resolveLinks(f.Path)
	return writeTemp(f, path, func(temp string) error { return os.Rename(temp, path) })
}

// Create is Write of a file that must not exist, also if another
// process creates it at the same time: then the error is fs.ErrExist.
func Create(f File) error {
	return writeTemp(f, f.Path, func(temp string) error {
		err := os.Link(temp, f.Path)
		if err == nil {
			return os.Remove(temp)
		}
		if errors.Is(err, fs.ErrExist) {
			return err
		}
		return os.Rename(temp, f.Path) // a file system without hard links
	})
}

// writeTemp writes the content to a temporary file beside path, and has finish give it that
// name.
func writeTemp(f File, path string, finish func(temp string) error) error {
	temp, err := createBeside(path)
	if err != nil {
		return withPath(f.Path, err)
	}
	if info, statErr := os.Stat(path); statErr == nil && info.Mode().IsRegular() {
		err = temp.Chmod(info.Mode().Perm())
	}
	if err == nil {
		_, err = temp.Write(f.Content)
	}
	if err = errors.Join(err, temp.Sync(), temp.Close()); err == nil {
		err = finish(temp.Name())
	}
	if err != nil {
		return errors.Join(withPath(f.Path, err), os.Remove(temp.Name()))
	}
	return nil
}

// tempPrefix begins the names of temporary files. Digits follow.
const tempPrefix = ".caprouter-"

// maxTempAge is the age of a temporary file whose process was killed: one that runs
// renames or removes it within seconds.
const maxTempAge = time.Hour

func createBeside(path string) (*os.File, error) {
	dir := filepath.Dir(path)
	removeAbandonedTempFiles(dir, time.Now())
	return os.CreateTemp(dir, tempPrefix)
}

// removeAbandonedTempFiles removes the temporary files of processes that were killed. It
// ignores what it cannot read or remove.
func removeAbandonedTempFiles(dir string, now time.Time) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, entry := range entries {
		digits, ours := strings.CutPrefix(entry.Name(), tempPrefix)
		if !ours || digits == "" || strings.Trim(digits, "0123456789") != "" || !entry.Type().IsRegular() {
			continue
		}
		if info, err := entry.Info(); err == nil && now.Sub(info.ModTime()) > maxTempAge {
			_ = os.Remove(filepath.Join(dir, entry.Name()))
		}
	}
}

// maxLinks bounds chains of links, as Linux does.
const maxLinks = 40

// resolveLinks returns the target of a path, which need not exist.
func resolveLinks(path string) string {
	if there, err := filepath.EvalSymlinks(path); err == nil {
		return there
	}
	for range maxLinks {
		to, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	return path
}

// withPath replaces the path in an error of the file system by the one that the user
// gave.
func withPath(path string, err error) error {
	why := err
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		why = e.Err
	} else if e, ok := errors.AsType[*os.LinkError](err); ok {
		why = e.Err
	}
	return fmt.Errorf("%s: %w", path, why)
}

// WriteReport replaces a file by the output of write, or leaves it unchanged if that fails.
// The file may be a device or a pipe.
func WriteReport(path string, write func(io.Writer) error) error {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	mode := os.FileMode(0o644) // a CI server may read it as another user
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
		if !info.Mode().IsRegular() { // for example a pipe
			return ShortenError(os.WriteFile(path, b.Bytes(), mode))
		}
	}
	if err := Write(File{Path: path, Content: b.Bytes()}); err != nil {
		return err
	}
	return ShortenError(os.Chmod(path, mode))
}

// CheckWritable checks before long work whether WriteReport can write. It leaves no
// file behind.
func CheckWritable(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		if info.IsDir() {
			return withPath(path, syscall.EISDIR)
		}
		return nil // opening a pipe may block
	}
	temp, err := createBeside(resolveLinks(path))
	if err != nil {
		return withPath(path, err)
	}
	if err := errors.Join(temp.Close(), os.Remove(temp.Name())); err != nil {
		return withPath(path, err)
	}
	return nil
}

// SameFile reports whether writing one path would replace the other. Devices are not
// replaced.
func SameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	if errA == nil && errB == nil {
		return infoA.Mode().IsRegular() && os.SameFile(infoA, infoB)
	}
	return errors.Is(errA, fs.ErrNotExist) && errors.Is(errB, fs.ErrNotExist) && canonicalPath(a) == canonicalPath(b)
}

// canonicalPath returns the absolute path of a file that need not exist.
func canonicalPath(path string) string {
	path = resolveLinks(path)
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(dir, filepath.Base(path))
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
