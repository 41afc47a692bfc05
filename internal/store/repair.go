package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/caprouter/caprouter/internal/store/repair"
)

// RepairConfig configures Repair.
type RepairConfig struct {
	Dir    string // the data directory
	DryRun bool   // only report
	Logger *slog.Logger
}

// Repair checks all files of a directory that no process uses, and removes all damage
// from them. It keeps the damaged files. Log.Damage of the next store that is opened
// contains the damage. Repair changes nothing unless it knows the format and the
// version of the files.
func Repair(ctx context.Context, cfg RepairConfig) (list []repair.Stream, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("repair store: %w", err)
		}
	}()
	c := Config{Dir: cfg.Dir, Logger: cfg.Logger}.withDefaults()
	if _, err := os.Stat(c.engineDir()); err != nil {
		return nil, err
	}
	lock, err := lockDirectory(cfg.Dir, "repair")
	if err != nil {
		return nil, err
	}
	defer lock.Release()
	files := c.engineFiles()
	if err := errors.Join(newEngine(c).checkFiles(), files.Check()); err != nil {
		return nil, err
	}
	return files.RepairAll(ctx, cfg.DryRun)
}

// engineFiles returns the files of an embedded engine.
func (c *Config) engineFiles() *repair.Files {
	return &repair.Files{
		Dir: c.Dir, Engine: EngineVersion, DisplayName: displayName, Logger: c.Logger, Now: c.Now,
		IsBucket: func(stream string) bool { return strings.HasPrefix(stream, bucketStream) },
	}
}

// forgetRepaired removes the list of repaired damage when its readers have ended. A store
// that could not be opened had none.
func (s *Store) forgetRepaired() {
	s.mu.Lock()
	used := len(s.specs) > 0
	s.mu.Unlock()
	if s.cfg.URL != "" || !used {
		return
	}
	if err := s.cfg.engineFiles().ForgetRepaired(); err != nil {
		s.cfg.Logger.Warn("store: cannot remove the list of repaired damage, which is reported again", "error", err)
	}
}
