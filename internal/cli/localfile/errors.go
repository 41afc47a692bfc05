package localfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ExplainPermission adds to the error that a file may not be accessed: the directory or
// file that prevents it, and the fix.
func ExplainPermission(err error) error {
	path, ok := errors.AsType[*fs.PathError](err)
	if !ok || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return fmt.Errorf("%w: %s", err, permissionAdvice(path.Path))
}

// permissionAdvice finds the first part of a path that this process may not access.
func permissionAdvice(path string) string {
	path = filepath.Clean(path)
	dir := filepath.Dir(path)
	_, err := os.Lstat(path)
	if err == nil { // the file is visible, so its own mode prevents the access
		return fmt.Sprintf("user id %d may not open %s in the directory %s; run caprouter as the owner of the file, or change its owner or mode",
			os.Getuid(), filepath.Base(path), dir)
	}
	access := "create files in"
	for errors.Is(err, fs.ErrPermission) {
		access = "enter"
		if _, err = os.Lstat(dir); errors.Is(err, fs.ErrPermission) {
			dir = filepath.Dir(dir)
		}
	}
	return fmt.Sprintf("user id %d may not %s the directory %s; run caprouter as its owner, change its owner or mode, or name another directory",
		os.Getuid(), access, dir)
}

// ShortenError shortens "load: open a.yaml: no such file" to "a.yaml: no such file".
func ShortenError(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = fmt.Errorf("%s: %w", path.Path, path.Err)
		if errors.Is(err, fs.ErrPermission) {
			err = fmt.Errorf("%w: %s", err, permissionAdvice(path.Path))
		}
	}
	return err
}
