package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// RepairConfig configures Repair.
type RepairConfig struct {
	Dir    string // the data directory
	DryRun bool   // only report
	Logger *slog.Logger
}

// StreamRepair is the result of Repair for one stream.
type StreamRepair struct {
	Stream string       `json:"stream"`
	Name   string       `json:"name"`   // for people, for example "bucket TICKETS"
	Blocks int          `json:"blocks"` // checked files
	Bytes  int64        `json:"bytes"`
	Damage []FileDamage `json:"damage"`
}

// FileDamage is the damage of one place in a file.
type FileDamage struct {
	Stream string `json:"-"`
	File   string `json:"file"`
	Damage
	// Unfinished: it is the end of the stream, and may be a write that was never
	// acknowledged.
	Unfinished bool   `json:"unfinished"`
	Kept       string `json:"kept,omitzero"` // the copy of the damaged file
}

// Repair checks all files of a directory that no process uses, and removes all damage
// from them. It keeps the damaged files. Log.Damage of the next store that is opened
// contains the damage. Repair changes nothing unless it knows the format and the
// version of the files.
func Repair(ctx context.Context, cfg RepairConfig) (list []StreamRepair, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("repair store: %w", err)
		}
	}()
	if _, err := os.Stat(filepath.Join(cfg.Dir, "store")); err != nil {
		return nil, err
	}
	lock, err := lockDirectory(cfg.Dir, "repair")
	if err != nil {
		return nil, err
	}
	defer lock.Release()
	c := Config{Dir: cfg.Dir, Logger: cfg.Logger}.withDefaults()
	if err := errors.Join(newEngine(c).checkFiles(), checkEngine(c.Dir)); err != nil {
		return nil, err
	}
	plans, err := c.planRepair(ctx, true)
	if err != nil {
		return nil, err // before any change
	}
	if !cfg.DryRun {
		err = c.applyPlans(plans)
	}
	for _, p := range plans {
		list = append(list, StreamRepair{
			Stream: p.stream, Name: displayName(p.stream), Blocks: p.checked, Bytes: p.checkBytes,
			Damage: append([]FileDamage{}, p.damage...),
		})
	}
	return list, err
}

// applyPlans repairs the streams. It records the damage before it removes any.
func (c *Config) applyPlans(plans []*repairPlan) error {
	found, err := c.readRepaired()
	if err != nil {
		return err
	}
	for _, p := range plans {
		if lost := p.logDamage(); len(lost) > 0 {
			found[p.stream] = append(found[p.stream], lost...)
		}
	}
	if len(found) > 0 {
		if err := c.writeRepaired(found); err != nil {
			return err
		}
	}
	for _, p := range plans {
		if len(p.damage) == 0 {
			continue // leave the values of deleted keys to the start
		}
		if err := p.apply(); err != nil {
			return fmt.Errorf("stream %s: %w", p.stream, err)
		}
	}
	return nil
}

// repairedFile contains the damage that Repair removed, until a store that was opened
// since then is closed. It may be reported twice, but is not lost if the process is
// killed.
const repairedFile = "repaired.json"

func (c *Config) repairedPath() string {
	return filepath.Join(c.Dir, "store", damagedDir, repairedFile)
}

// readRepaired returns the damage that Repair removed, by stream.
func (c *Config) readRepaired() (map[string][]Damage, error) {
	found := map[string][]Damage{}
	data, err := os.ReadFile(c.repairedPath())
	if errors.Is(err, fs.ErrNotExist) {
		return found, nil
	}
	if err == nil {
		err = strictjson.Unmarshal(data, &found)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w; move it away", c.repairedPath(), err)
	}
	return found, nil
}

func (c *Config) writeRepaired(found map[string][]Damage) error {
	data, err := strictjson.Marshal(found)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(c.repairedPath()), 0o700)
	}
	if err == nil {
		err = replaceFile(c.repairedPath(), data)
	}
	return err
}

// forgetRepaired removes the list when its readers have ended. A store that could not
// be opened had none.
func (s *Store) forgetRepaired() {
	s.mu.Lock()
	used := len(s.specs) > 0
	s.mu.Unlock()
	if s.cfg.URL != "" || !used {
		return
	}
	if err := os.Remove(s.cfg.repairedPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.cfg.Logger.Warn("store: cannot remove the list of repaired damage, which is reported again", "error", err)
	}
}
