package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// starterFile is one of the files init writes, or a report.
type starterFile struct {
	path    string
	content []byte
}

// writeComplete writes a file whole or not at all: under another name first. A
// link stays one, and what it leads to is written. Errors name the path that was
// asked for.
func writeComplete(f starterFile) error {
	path := behindLinks(f.path)
	temp, err := createBeside(path)
	if err != nil {
		return named(f.path, err)
	}
	_, err = temp.Write(f.content)
	if err = errors.Join(err, temp.Sync(), temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return errors.Join(named(f.path, err), os.Remove(temp.Name()))
	}
	return nil
}

func createBeside(path string) (*os.File, error) {
	return os.CreateTemp(filepath.Dir(path), ".caprouter-")
}

// mostLinks is how many links are followed one after the other, as many as Linux
// follows.
const mostLinks = 40

// behindLinks is the file that is meant by a path, which may not be there yet.
func behindLinks(path string) string {
	if there, err := filepath.EvalSymlinks(path); err == nil {
		return there
	}
	for range mostLinks {
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

// named is an error of the file system under the name that the user knows.
func named(path string, err error) error {
	why := err
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		why = e.Err
	} else if e, ok := errors.AsType[*os.LinkError](err); ok {
		why = e.Err
	}
	return fmt.Errorf("%s: %w", path, why)
}

// writeReport writes a file whole, or leaves what was there.
func writeReport(path string, write func(io.Writer) error) error {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	mode := os.FileMode(0o644) // of a new file: CI servers read it as another user
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
		if !info.Mode().IsRegular() { // a pipe, a device
			return withoutVerb(os.WriteFile(path, b.Bytes(), mode))
		}
	}
	if err := writeComplete(starterFile{path: path, content: b.Bytes()}); err != nil {
		return err
	}
	return withoutVerb(os.Chmod(path, mode))
}

// checkWritable says before long work what would keep writeReport from writing.
// Nothing is left behind.
func checkWritable(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		if info.IsDir() {
			return named(path, syscall.EISDIR)
		}
		return nil // to open a pipe may wait for who reads it
	}
	temp, err := createBeside(behindLinks(path))
	if err != nil {
		return named(path, err)
	}
	if err := errors.Join(temp.Close(), os.Remove(temp.Name())); err != nil {
		return named(path, err)
	}
	return nil
}

// sameFile reports whether writing the one would replace the other. Devices are
// not replaced.
func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	if errA == nil && errB == nil {
		return infoA.Mode().IsRegular() && os.SameFile(infoA, infoB)
	}
	return errors.Is(errA, fs.ErrNotExist) && errors.Is(errB, fs.ErrNotExist) && place(a) == place(b)
}

// place is where a file that is not there yet would be.
func place(path string) string {
	path = behindLinks(path)
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(dir, filepath.Base(path))
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
