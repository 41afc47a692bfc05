package repair

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/caprouter/caprouter/internal/datadir"
)

// ErrNeeded is wrapped by the error of RepairAtStart if the files are damaged before their
// end, which RepairAll removes.
var ErrNeeded = errors.New("files are damaged")

// Files are the engine's files in a data directory, which no process uses while they are
// repaired. Every field is required.
type Files struct {
	Dir    string // the data directory
	Engine string // the version of the engine whose files are known
	// DisplayName returns the name of a stream for people, for example "bucket TICKETS".
	DisplayName func(stream string) string
	// IsBucket reports whether only the last message of a subject counts in a stream.
	IsBucket func(stream string) bool
	Logger   *slog.Logger
	Now      func() time.Time
}

// RepairAtStart removes damaged records from the files before the engine opens them.
// The engine itself appends behind a damaged record silently; the next time it reads
// the block, it drops the record with everything behind it, new messages included.
//
//	┌────┬────┬─╳──┬────┬────┐        ┌────┬────┬────┬────┐
//	│ 41 │ 42 │ 43 │ 44 │ 45 │   ─▶   │ 41 │ 42 │ 44 │ 45 │
//	└────┴────┴────┴────┴────┘        └────┴────┴────┴────┘
//
// Sequences do not change. Unless all is set, it removes only a damaged end of a stream,
// which may be an unfinished write, and returns ErrNeeded without any change if there is
// other damage. It returns the damage by stream. A file that cannot be checked is logged and
// left to the engine.
func (f *Files) RepairAtStart(ctx context.Context, all bool) (map[string][]Damage, error) {
	if _, err := os.Stat(f.streamsDir()); errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // a new store
	}
	if err := f.Check(); err != nil {
		f.Logger.Warn("store: files are not checked for damage", "error", err)
		return nil, nil //nolint:nilnil // nothing was found
	}
	plans, err := f.planRepair(ctx, false)
	if err != nil {
		f.Logger.Error("store: files could not be checked for damage", "error", err)
	}
	if !all {
		if err := f.refuseDamage(plans); err != nil {
			return nil, err
		}
	}
	found := map[string][]Damage{}
	for _, p := range plans {
		if err := p.apply(); err != nil {
			f.Logger.Error("store: damaged files could not be repaired", "stream", p.stream, "error", err)
		}
		if lost := p.logDamage(); len(lost) > 0 {
			found[p.stream] = append(found[p.stream], lost...)
		}
	}
	return found, nil
}

func (f *Files) streamsDir() string {
	return filepath.Join(f.Dir, "store", "jetstream", "$G", "streams")
}

// Check returns an error unless the format of the directory is known, and the version of the
// engine that wrote it.
func (f *Files) Check() error {
	wrote, err := datadir.Engine(f.Dir)
	if err != nil || datadir.CompareEngines(wrote, f.Engine) == 0 {
		return err
	}
	if wrote == "" {
		wrote = "of an unknown version"
	}
	return fmt.Errorf("storage engine %s wrote the files of %s, and this version knows those of %s", wrote, f.Dir, f.Engine)
}

// planRepair checks the files of all streams without changing them. everything
// includes the blocks that the engine would not read when it opens them.
func (f *Files) planRepair(ctx context.Context, everything bool) (plans []*repairPlan, err error) {
	root := f.streamsDir()
	streams, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	for _, entry := range streams {
		p := &repairPlan{files: f, dir: filepath.Join(root, entry.Name(), "msgs"), stream: entry.Name(), everything: everything}
		if scanErr := p.scan(ctx); scanErr == nil {
			plans = append(plans, p)
		} else if !errors.Is(scanErr, fs.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("stream %s: %w", p.stream, scanErr))
		}
	}
	return plans, err
}

// refuseDamage returns ErrNeeded if a plan removes more than a damaged end.
func (f *Files) refuseDamage(plans []*repairPlan) error {
	var refused []FileDamage
	for _, p := range plans {
		if !p.isTail() {
			refused = append(refused, p.damage...)
		}
	}
	if len(refused) == 0 {
		return nil
	}
	more := ""
	if n := len(refused) - 1; n > 0 {
		more = fmt.Sprintf(", and %d more", n)
	}
	first := &refused[0]
	return fmt.Errorf("%w: %s: a repair would remove %s of %s%s, not only an unfinished end, so nothing was changed: copy the directory, then run: caprouter store repair --data-dir %s",
		ErrNeeded, first.File, first.Damage, f.DisplayName(first.Stream), more, f.Dir)
}

// Stream is the result of RepairAll for one stream.
type Stream struct {
	Stream string       `json:"stream"`
	Name   string       `json:"name"`   // for people, for example "bucket TICKETS"
	Blocks int          `json:"blocks"` // checked files
	Bytes  int64        `json:"bytes"`
	Damage []FileDamage `json:"damage"`
}

// RepairAll checks all files, and removes all damage from them, unless it is a dry run. It
// keeps the damaged files, and lists the damage for Repaired. It changes nothing unless it
// knows the format and the version of the files.
func (f *Files) RepairAll(ctx context.Context, dryRun bool) (list []Stream, err error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	plans, err := f.planRepair(ctx, true)
	if err != nil {
		return nil, err // before any change
	}
	if !dryRun {
		err = f.applyPlans(plans)
	}
	for _, p := range plans {
		list = append(list, Stream{
			Stream: p.stream, Name: f.DisplayName(p.stream), Blocks: p.checked, Bytes: p.checkBytes,
			Damage: append([]FileDamage{}, p.damage...),
		})
	}
	return list, err
}

// applyPlans repairs the streams. It records the damage before it removes any.
func (f *Files) applyPlans(plans []*repairPlan) error {
	found, err := f.Repaired()
	if err != nil {
		return err
	}
	for _, p := range plans {
		if lost := p.logDamage(); len(lost) > 0 {
			found[p.stream] = append(found[p.stream], lost...)
		}
	}
	if len(found) > 0 {
		if err := f.writeRepaired(found); err != nil {
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
