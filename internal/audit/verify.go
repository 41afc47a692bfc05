package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/caprouter/caprouter/internal/store"
)

// VerifyConfig says which trail is verified: the one in a data directory, or
// that of an open log.
type VerifyConfig struct {
	// DataDir is read and never written to, also while a router works with it:
	// what is verified is a copy, which goes again.
	DataDir string
	Log     *store.Log // instead of DataDir

	HeadFile string // "" = HeadFile in DataDir
	Writer   string // "" = "main"
	Signer   Signer // knows the keys that heads were signed with
	// Progress is told how many messages are read, of about how many.
	Progress func(done, total uint64)
}

// progressEvery is how many messages lie between two calls of Progress.
const progressEvery = 1000

// Verify reads a whole trail and says what is wrong with it. The error is that it
// could not be read; what is wrong is in the report.
func Verify(ctx context.Context, cfg VerifyConfig) (_ *Report, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("verify the audit trail: %w", err)
		}
	}()
	if cfg.Signer == nil {
		return nil, errors.New("no signer")
	}
	if cfg.Writer == "" {
		cfg.Writer = DefaultWriter
	}
	if cfg.HeadFile == "" {
		cfg.HeadFile = filepath.Join(cfg.DataDir, HeadFile)
	}
	if cfg.Progress == nil {
		cfg.Progress = func(uint64, uint64) {}
	}
	// Before the log: what is written meanwhile is then behind the head, while a
	// head that is newer than the copy would look like a chain cut off.
	h, _, how, err := readHead(cfg.HeadFile, cfg.Signer)
	if err != nil {
		return nil, err
	}
	log := cfg.Log
	if log == nil {
		opened, err := openCopy(ctx, cfg.DataDir)
		if err != nil {
			return nil, err
		}
		defer opened.close()
		log = opened.log
	}
	return examineLog(ctx, cfg, log, h, how)
}

func examineLog(ctx context.Context, cfg VerifyConfig, log *store.Log, h *head, how trust) (*Report, error) {
	info, err := log.Info(ctx)
	if err != nil {
		return nil, err
	}
	x := newExaminer(cfg.Writer, func(seq uint64) ([]byte, error) {
		m, err := log.Get(ctx, seq)
		return m.Data, err
	})
	done := uint64(0)
	for _, subject := range []string{x.subjects.bare + "*", x.subjects.restated + "*", x.subjects.chain} {
		err := log.Read(ctx, store.ReadFrom{Subject: subject}, func(m store.Message) error {
			x.add(m)
			if done++; done%progressEvery == 0 {
				cfg.Progress(done, max(done, info.Msgs))
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	cfg.Progress(done, done)
	return x.report(h, how), nil
}

// copied is a copy of a trail, open.
type copied struct {
	dir   string
	store *store.Store
	log   *store.Log
}

// streamDir is where the engine keeps the log inside a data directory.
func streamDir(dataDir string) string {
	return filepath.Join(dataDir, "store", "jetstream", "$G", "streams", LogConfig(0).Name)
}

// indexFile is what the engine can make anew from the messages. In a copy of
// files that are written to meanwhile it would not fit them.
const indexFile = "index.db"

// openCopy copies the log's files and opens the copy, so that the evidence is not
// touched: an engine that opens a damaged file cuts it.
func openCopy(ctx context.Context, dataDir string) (_ *copied, err error) {
	if _, err := os.Stat(streamDir(dataDir)); err != nil {
		return nil, fmt.Errorf("no trail in %s: %w", dataDir, err)
	}
	c := &copied{}
	if c.dir, err = os.MkdirTemp("", "caprouter-audit-*"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	if err := copyTree(ctx, streamDir(c.dir), streamDir(dataDir)); err != nil {
		return nil, err
	}
	c.store, err = store.Open(ctx, store.Config{
		Dir: c.dir, Owner: "audit-verify", MinFree: 1, SyncEvery: time.Hour, MaxBytes: 1 << 50,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	c.log, err = c.store.Log(ctx, LogConfig(0))
	return c, err
}

func (c *copied) close() {
	if c.store != nil {
		_ = c.store.Close() // of a copy, on the way to its end
	}
	_ = os.RemoveAll(c.dir)
}

func copyTree(ctx context.Context, to, from string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a file of the engine that has just gone
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
