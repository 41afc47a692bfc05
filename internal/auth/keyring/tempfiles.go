package keyring

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Prefixes of temporary files, followed by the digits of os.CreateTemp. The names
// are specific, so that cleanup removes files of killed processes and no file of
// an operator.
const (
	keyringTemp  = "caprouter-key-"       // written while holding the lock of the ring
	firstKeyTemp = "caprouter-first-key-" // written for the first key, without a lock
	tempSuffix   = ".tmp"

	maxTempDigits = 10 // 32 bits

	// maxTempAge is the age after which a temporary file without a lock is
	// abandoned: a living process needs it for milliseconds only.
	maxTempAge = time.Minute
)

// isTempName reports whether name is a temporary file of that kind.
func isTempName(name, kind string) bool {
	digits, ours := strings.CutPrefix(name, kind)
	digits, whole := strings.CutSuffix(digits, tempSuffix)
	return ours && whole && digits != "" && len(digits) <= maxTempDigits &&
		!strings.ContainsFunc(digits, func(r rune) bool { return r < '0' || r > '9' })
}

// removeAbandonedTempFiles removes the files of processes that were killed while
// they created a first key. It needs no lock, and ignores files that it cannot
// remove.
func removeAbandonedTempFiles(dir string, now time.Time) {
	for _, at := range []string{dir, filepath.Join(dir, retiredDir)} {
		for _, kind := range []string{keyringTemp, firstKeyTemp} {
			_ = removeTempFiles(at, kind, func(info fs.FileInfo) bool { return isAbandoned(info, now) })
		}
	}
}

// removeSecondNames removes the temporary names of the current key: the process that
// created it removes them next, or was killed before it could.
func removeSecondNames(dir string) {
	if key, err := os.Lstat(filepath.Join(dir, File)); err == nil {
		_ = removeTempFiles(dir, firstKeyTemp, func(info fs.FileInfo) bool { return os.SameFile(info, key) })
	}
}

func isAbandoned(info fs.FileInfo, now time.Time) bool { return now.Sub(info.ModTime()) > maxTempAge }

// removeKeyringTempFiles removes the temporary files of interrupted rotations. The
// caller holds the lock of the ring, so no other process uses them. They may
// contain the private half of a revoked key and must not outlive it.
func removeKeyringTempFiles(dir string, now time.Time) error {
	all := func(fs.FileInfo) bool { return true }
	key, err := os.Lstat(filepath.Join(dir, File))
	if err != nil {
		return err
	}
	// Files of a first key have no lock, so only abandoned ones are removed, and a
	// second name of the current key itself.
	done := func(info fs.FileInfo) bool { return os.SameFile(info, key) || isAbandoned(info, now) }
	return errors.Join(
		removeTempFiles(filepath.Join(dir, retiredDir), keyringTemp, all),
		removeTempFiles(dir, keyringTemp, all),
		removeTempFiles(dir, firstKeyTemp, done),
	)
}

// removeTempFiles removes the temporary files of one kind that match.
func removeTempFiles(dir, kind string, matches func(fs.FileInfo) bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var errs []error
	for _, e := range entries {
		if !isTempName(e.Name(), kind) || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if err == nil && matches(info) {
			err = os.Remove(filepath.Join(dir, e.Name()))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // another process removed it first
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
