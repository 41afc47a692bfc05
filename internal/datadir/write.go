package datadir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteFile replaces the file at path, or creates it, with mode 0600. After a power
// failure it has either the old content or all of the new one. temp is the path of a
// temporary file in the same directory. It is replaced if a process that was killed has
// left one, so the caller must be the only process that writes the file.
func WriteFile(path, temp string, content []byte) error {
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	if err := writeAndClose(f, content); err != nil {
		return err
	}
	return Rename(temp, path)
}

// WriteTemp writes and syncs a new file in dir with mode 0600, and returns its path. The
// pattern is that of os.CreateTemp, so several processes may write at the same time.
func WriteTemp(dir, pattern string, content []byte) (path string, err error) {
	f, err := os.CreateTemp(dir, pattern) // O_EXCL, mode 0600
	if err != nil {
		return "", err
	}
	if err := writeAndClose(f, content); err != nil {
		return "", err
	}
	return f.Name(), nil
}

// writeAndClose writes and syncs a new file, and removes it if that fails.
func writeAndClose(f *os.File, content []byte) error {
	_, err := f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// Rename durably gives a complete temporary file the name of the file that it replaces.
// It removes the temporary file if that fails.
func Rename(temp, path string) error {
	if err := os.Rename(temp, path); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir makes the names of the files in dir durable, if the system supports it.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	_ = d.Sync() // some file systems cannot sync directories; the files themselves are synced
	return d.Close()
}

// WithoutPath returns the error of the operating system without the path of the file, for
// a message that contains another path.
func WithoutPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
