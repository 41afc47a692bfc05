package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const fileMode = 0o600

// Errors of files that another process may be about to replace or to complete.
var (
	// ErrReplaced: the name refers to another file than a moment ago.
	ErrReplaced = errors.New("replaced while it was opened; start again")
	// ErrLinked: the file has several names.
	ErrLinked = errors.New("has another name (hard link), by which it can be changed")
)

// Check returns an error with the fix if other users can change what is in the
// directory, or if a newer program wrote it. A directory that does not exist is no
// error.
func Check(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return nil //nolint:nilerr // what fails next names it
	}
	if err := checkDir(dir, info); err != nil {
		return err
	}
	_, err = readFormat(dir)
	return err
}

// CheckSubdir is the check of a directory in the data directory. It must not be a
// symbolic link. If it does not exist, it returns fs.ErrNotExist.
func CheckSubdir(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return fmt.Errorf("%s is a symbolic link; put the directory itself there, or mount it there", path)
	}
	return checkDir(path, info)
}

func checkDir(dir string, info fs.FileInfo) error {
	mode := info.Mode()
	switch {
	case !mode.IsDir():
		return fmt.Errorf("%s is not a directory; name another with --data-dir", dir)
	case hasModes && mode.Perm()&0o022 != 0:
		return fmt.Errorf("directory %s may be changed by other users (mode %04o); run: chmod go-w %s", dir, mode.Perm(), dir)
	}
	if uid, known := ownerOf(info); known && uid != os.Geteuid() && os.Geteuid() != 0 {
		return fmt.Errorf("directory %s belongs to uid %d; run caprouter as that user, or change the owner", dir, uid)
	}
	return nil
}

// maxOpens bounds how often a file is opened again that another process created at
// the same time.
const maxOpens = 3

// OpenFile opens a file of the data directory as os.OpenFile does, without following
// a symbolic link, and checks that it is regular, has no other name, and belongs to
// this user or to the owner of its directory. os.O_CREATE creates it with mode 0600.
func OpenFile(path string, flag int) (file *os.File, err error) {
	for range maxOpens {
		file, err = openExisting(path, flag&^os.O_CREATE)
		if !errors.Is(err, fs.ErrNotExist) || flag&os.O_CREATE == 0 {
			return file, err
		}
		file, err = os.OpenFile(path, flag|os.O_EXCL, fileMode)
		if !errors.Is(err, fs.ErrExist) {
			return file, err
		}
	}
	return nil, err
}

func openExisting(path string, flag int) (*os.File, error) {
	named, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	switch mode := named.Mode(); {
	case mode&fs.ModeSymlink != 0:
		return nil, fmt.Errorf("%s is a symbolic link; put the file itself there", path)
	case !mode.IsRegular(): // opening a named pipe would wait for its other end
		return nil, fmt.Errorf("%s is not a regular file; move it away", path)
	}
	file, err := os.OpenFile(path, flag|noFollow, 0)
	if err != nil {
		return nil, err
	}
	if err := checkOpened(path, named, file); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// checkOpened checks the opened file, because the name may refer to another one now.
func checkOpened(path string, named fs.FileInfo, file *os.File) error {
	opened, err := file.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(named, opened) {
		return fmt.Errorf("%s was %w", path, ErrReplaced)
	}
	if countNames(opened) > 1 {
		return fmt.Errorf("%s %w; replace it by a copy: cp -p %s %s.copy && mv %s.copy %s", path, ErrLinked, path, path, path, path)
	}
	uid, known := ownerOf(opened)
	if !known || uid == os.Geteuid() {
		return nil
	}
	if dir, err := os.Stat(filepath.Dir(path)); err == nil {
		if owner, _ := ownerOf(dir); owner == uid {
			return nil
		}
	}
	return fmt.Errorf("%s belongs to uid %d; move it away, or change its owner", path, uid)
}
