// Package storecopy copies streams of a data directory, and opens the copy. A router may use
// the data directory meanwhile. The original is not opened, because an engine that opens a
// damaged file cuts it, which would destroy evidence.
//
//	c, err := storecopy.Open(ctx, dataDir, "AUDIT")
//	defer c.Close()
//	log, err := c.Store.Log(ctx, cfg)
package storecopy

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/caprouter/caprouter/internal/datadir"
	"github.com/caprouter/caprouter/internal/store"
)

// Copy is an open copy of streams.
type Copy struct {
	Store *store.Store
	dir   string
}

// StreamDir returns the directory of a stream's files.
func StreamDir(dataDir, stream string) string {
	return filepath.Join(dataDir, "store", "jetstream", "$G", "streams", stream)
}

// indexFile is rebuilt by the engine. In a copy of files that change meanwhile it
// would not match.
const indexFile = "index.db"

// Open copies streams in this order, and opens a store with the copy. A stream that does not
// exist is left out. Close deletes the copy.
func Open(ctx context.Context, dataDir string, streams ...string) (_ *Copy, err error) {
	if err := datadir.Check(dataDir); err != nil {
		return nil, err
	}
	c := &Copy{}
	if c.dir, err = os.MkdirTemp("", "caprouter-copy-*"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	for _, stream := range streams {
		if err := copyTree(ctx, StreamDir(c.dir, stream), StreamDir(dataDir, stream)); err != nil {
			return nil, err
		}
	}
	c.Store, err = store.Open(ctx, store.Config{
		Dir: c.dir, Owner: "copy", MinFree: 1, SyncEvery: time.Hour, MaxBytes: 1 << 50, RepairAll: true,
		Logger: slog.New(slog.DiscardHandler),
	})
	return c, err
}

// Close deletes the copy.
func (c *Copy) Close() {
	if c.Store != nil {
		_ = c.Store.Close()
	}
	_ = os.RemoveAll(c.dir)
}

func copyTree(ctx context.Context, to, from string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // deleted by the engine meanwhile
		}
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch target := filepath.Join(to, name); {
		case entry.IsDir():
			return os.MkdirAll(target, 0o700)
		case !entry.Type().IsRegular(), entry.Name() == indexFile:
			return nil
		default:
			return copyFile(target, path)
		}
	})
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
