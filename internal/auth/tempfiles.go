package auth

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Files under construction have names that nobody else gives, with the digits of
// os.CreateTemp in the middle: what a killed process leaves of them is removed,
// and nothing that an operator has put there.
const (
	keyringTemp  = "caprouter-key-"       // of who holds the lock of the ring
	firstKeyTemp = "caprouter-first-key-" // of who starts without a key, and has no lock
	tempSuffix   = ".tmp"

	maxTempDigits = 10 // of 32 bits

	// maxTempAge is how old such a file must be to belong to nobody any more,
	// where no lock says so: a living process needs milliseconds.
	maxTempAge = time.Minute
)

// isTempName reports whether a file under construction of that kind has the name.
func isTempName(name, kind string) bool {
	digits, ours := strings.CutPrefix(name, kind)
	digits, whole := strings.CutSuffix(digits, tempSuffix)
	return ours && whole && digits != "" && len(digits) <= maxTempDigits &&
		!strings.ContainsFunc(digits, func(r rune) bool { return r < '0' || r > '9' })
}

// removeAbandonedTempFiles removes what processes left that were killed while they made
// a key. It needs no lock, and what it cannot remove it leaves to the next one.
func removeAbandonedTempFiles(dir string, now time.Time) {
	for _, at := range []string{dir, filepath.Join(dir, RetiredDir)} {
		for _, kind := range []string{keyringTemp, firstKeyTemp} {
			_ = removeTempFiles(at, kind, func(info fs.FileInfo) bool { return isAbandoned(info, now) })
		}
	}
}

func isAbandoned(info fs.FileInfo, now time.Time) bool { return now.Sub(info.ModTime()) > maxTempAge }

// removeKeyringTempFiles must be called with the lock of the ring held: then nobody
// else is at work on the files it removes. They may hold the private half of a
// key that is revoked, and must not outlive it.
func removeKeyringTempFiles(dir string, now time.Time) error {
	all := func(fs.FileInfo) bool { return true }
	key, err := os.Lstat(filepath.Join(dir, KeyFile))
	if err != nil {
		return err
	}
	// No lock says whose a first key is. The current key itself, under the name it
	// was made with, is needed under that name no more.
	done := func(info fs.FileInfo) bool { return os.SameFile(info, key) || isAbandoned(info, now) }
	return errors.Join(
		removeTempFiles(filepath.Join(dir, RetiredDir), keyringTemp, all),
		removeTempFiles(dir, keyringTemp, all),
		removeTempFiles(dir, firstKeyTemp, done),
	)
}

// removeTempFiles removes the files under construction of one kind that are to go.
func removeTempFiles(dir, kind string, goes func(fs.FileInfo) bool) error {
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
		if err == nil && goes(info) {
			err = os.Remove(filepath.Join(dir, e.Name()))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // somebody else was quicker
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
