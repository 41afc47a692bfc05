// Package modelfile keeps trained lexical models in the data directory, so that a start,
// or a reload, with a registry of before needs no training.
//
//	lexical/<key>.model   SHA-256 of the rest, then the model
//
// The key is made of the registry and the version of the training. A file contains words
// of the registry, has mode 0600, and can be deleted at any time: a missing, damaged or
// unreadable one costs a training.
package modelfile

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/caprouter/caprouter/internal/datadir"
)

const (
	// maxFiles is the number of models that are kept, those that were used last.
	maxFiles = 4
	// maxBytes bounds a file. The greatest models have some 10 MiB.
	maxBytes = 64 << 20

	subdir = "lexical"
	suffix = ".model"
)

// Dir is the directory of the models. One process uses it at a time, the one that has
// locked the data directory.
type Dir struct {
	path string
	log  *slog.Logger
}

// New returns the directory in a data directory. It is created with the first model.
func New(dataDir string, log *slog.Logger) *Dir {
	return &Dir{path: filepath.Join(dataDir, subdir), log: log}
}

// Load returns the model with the key, or nil.
func (d *Dir) Load(key string) []byte {
	data, err := d.read(key)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			d.log.Warn("a stored lexical model cannot be used, and is trained again", "file", d.file(key), "error", err)
		}
		return nil
	}
	now := time.Now()
	_ = os.Chtimes(d.file(key), now, now) // else it is the first to be removed
	return data
}

func (d *Dir) file(key string) string { return filepath.Join(d.path, key+suffix) }

var errDamaged = errors.New("the file is damaged")

func (d *Dir) read(key string) ([]byte, error) {
	if err := datadir.CheckSubdir(d.path); err != nil {
		return nil, err
	}
	f, err := datadir.OpenFile(d.file(key), os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) < sha256.Size || len(data) > maxBytes {
		return nil, errDamaged
	}
	sum, data := data[:sha256.Size], data[sha256.Size:]
	if want := sha256.Sum256(data); !bytes.Equal(sum, want[:]) {
		return nil, errDamaged
	}
	return data, nil
}

// Store stores a model, and removes those that were not used for the longest time. It logs
// an error, because everything works without the file.
func (d *Dir) Store(key string, encode func() []byte) {
	if err := d.write(key, encode()); err != nil {
		d.log.Warn("the lexical model cannot be stored, and is trained again at the next start", "error", err)
	}
}

func (d *Dir) write(key string, data []byte) error {
	if err := os.Mkdir(d.path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := datadir.CheckSubdir(d.path); err != nil {
		return err
	}
	if len(data)+sha256.Size > maxBytes {
		return nil
	}
	sum := sha256.Sum256(data)
	path := d.file(key)
	if err := datadir.WriteFile(path, path+".tmp", slices.Concat(sum[:], data)); err != nil {
		return err
	}
	return d.removeOld(key)
}

// removeOld removes all but the newest files. The one that was just written is kept, even if
// the clock was set back.
func (d *Dir) removeOld(newest string) error {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return err
	}
	type file struct {
		path string
		used time.Time
	}
	var files []file
	for _, e := range entries {
		info, err := e.Info()
		if path := filepath.Join(d.path, e.Name()); err == nil && info.Mode().IsRegular() && path != d.file(newest) {
			files = append(files, file{path, info.ModTime()})
		}
	}
	slices.SortFunc(files, func(a, b file) int { return cmp.Or(b.used.Compare(a.used), cmp.Compare(a.path, b.path)) })
	var errs []error
	for _, f := range files[min(len(files), maxFiles-1):] {
		errs = append(errs, os.Remove(f.path))
	}
	return errors.Join(errs...)
}
