package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/caprouter/caprouter/internal/datadir"
)

// Damage is an unreadable part of a file that was removed, or would be.
type Damage struct {
	// From and To are the first and the last sequence that may be lost; some of them
	// may have been deleted before. From is 0 if it is not known.
	From  uint64 `json:"from"`
	To    uint64 `json:"to"`
	Bytes int    `json:"bytes"`
}

// String describes the messages that may be lost.
func (d Damage) String() string {
	switch {
	case d.From == 0:
		return fmt.Sprintf("%d unreadable bytes", d.Bytes)
	case d.From >= d.To:
		return fmt.Sprintf("message %d (%d bytes)", d.From, d.Bytes)
	}
	return fmt.Sprintf("messages %d to %d (%d bytes)", d.From, d.To, d.Bytes)
}

const (
	blockSuffix  = ".blk"
	repairSuffix = ".mended"
	damagedDir   = "damaged" // the originals of repaired blocks, in the directory of the store
	bucketStream = "KV_"     // prefix of the streams of buckets
)

// ErrNeedsRepair is wrapped by the error of Open if the files are damaged before their
// end. Only Repair removes such damage.
var ErrNeedsRepair = errors.New("files are damaged")

// repairFiles removes damaged records from the engine's files before it opens them.
// The engine itself appends behind a damaged record silently; the next time it reads
// the block, it drops the record with everything behind it, new messages included.
//
//	┌────┬────┬─╳──┬────┬────┐        ┌────┬────┬────┬────┐
//	│ 41 │ 42 │ 43 │ 44 │ 45 │   ─▶   │ 41 │ 42 │ 44 │ 45 │
//	└────┴────┴────┴────┴────┘        └────┴────┴────┴────┘
//
// Sequences do not change. Unless RepairAll is set, it removes only a damaged end of a
// stream, which may be an unfinished write, and otherwise returns ErrNeedsRepair without
// any change. It returns the damage by stream. A file that cannot be checked is logged
// and left to the engine.
func (c *Config) repairFiles(ctx context.Context) (map[string][]Damage, error) {
	if _, err := os.Stat(c.streamsDir()); errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // a new store
	}
	if err := checkEngine(c.Dir); err != nil {
		c.Logger.Warn("store: files are not checked for damage", "error", err)
		return nil, nil //nolint:nilnil // nothing was found
	}
	plans, err := c.planRepair(ctx, false)
	if err != nil {
		c.Logger.Error("store: files could not be checked for damage", "error", err)
	}
	if !c.RepairAll {
		if err := refuseDamage(c.Dir, plans); err != nil {
			return nil, err
		}
	}
	found := map[string][]Damage{}
	for _, p := range plans {
		if err := p.apply(); err != nil {
			c.Logger.Error("store: damaged files could not be repaired", "stream", p.stream, "error", err)
		}
		if lost := p.logDamage(); len(lost) > 0 {
			found[p.stream] = append(found[p.stream], lost...)
		}
	}
	return found, nil
}

func (c *Config) streamsDir() string {
	return filepath.Join(c.Dir, "store", "jetstream", "$G", "streams")
}

// checkEngine returns an error unless the format of the directory is known, and the
// version of the engine that wrote it.
func checkEngine(dir string) error {
	wrote, err := datadir.Engine(dir)
	if err != nil || datadir.CompareEngines(wrote, EngineVersion) == 0 {
		return err
	}
	if wrote == "" {
		wrote = "of an unknown version"
	}
	return fmt.Errorf("storage engine %s wrote the files of %s, and this version knows those of %s", wrote, dir, EngineVersion)
}

// planRepair checks the files of all streams without changing them. everything
// includes the blocks that the engine would not read when it opens them.
func (c *Config) planRepair(ctx context.Context, everything bool) (plans []*repairPlan, err error) {
	root := c.streamsDir()
	streams, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	for _, entry := range streams {
		p := &repairPlan{cfg: c, dir: filepath.Join(root, entry.Name(), "msgs"), stream: entry.Name(), everything: everything}
		if scanErr := p.scan(ctx); scanErr == nil {
			plans = append(plans, p)
		} else if !errors.Is(scanErr, fs.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("stream %s: %w", p.stream, scanErr))
		}
	}
	return plans, err
}

// refuseDamage returns ErrNeedsRepair if a plan removes more than a damaged end.
func refuseDamage(dir string, plans []*repairPlan) error {
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
		ErrNeedsRepair, first.File, first.Damage, displayName(first.Stream), more, dir)
}

// apply removes the damage. The engine must not use an index that counts removed
// records. It takes only the last sequence, so that none is assigned twice, from an
// index that does not match the newest block.
func (p *repairPlan) apply() error {
	if p.outdated {
		if err := os.Remove(filepath.Join(p.dir, indexFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, r := range p.blocks {
		b, err := p.readBlock(r.number)
		if err != nil {
			return err
		}
		if len(r.holes) > 0 {
			kept, err := p.keepOriginal(b)
			if err != nil {
				return err
			}
			for i := range p.damage {
				if p.damage[i].File == b.path {
					p.damage[i].Kept = kept
				}
			}
		}
		b.data = b.withoutRanges(r.holes)
		if err := replaceFile(b.path, b.withoutRanges(r.dead)); err != nil {
			return err
		}
	}
	return nil
}

// keepOriginal keeps the damaged file under another name, outside of the engine's
// directory, because the engine would take it for a block.
func (p *repairPlan) keepOriginal(b *block) (path string, err error) {
	dir := filepath.Join(p.cfg.Dir, "store", damagedDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	name := fmt.Sprintf("%s.%d.%s%s.damaged", p.stream, b.number, p.cfg.Now().UTC().Format("20060102T150405.000000000Z"), blockSuffix)
	path = filepath.Join(dir, name)
	if err = os.Link(b.path, path); err != nil { // the file system has no hard links
		err = os.WriteFile(path, b.data, 0o600)
	}
	if err != nil {
		return "", fmt.Errorf("keep the damaged file: %w", err)
	}
	p.cfg.Logger.Warn("store: kept the damaged file", "path", path)
	return path, nil
}

// logDamage logs the removed damage, and returns the part that may be a loss.
func (p *repairPlan) logDamage() (lost []Damage) {
	for i := range p.damage {
		d := &p.damage[i]
		attrs := []any{"stream", p.stream, "file", filepath.Base(d.File), "bytes", d.Bytes}
		if d.Unfinished {
			p.cfg.Logger.Warn("store: removed an unreadable end: an unfinished write, or damage", attrs...)
			continue
		}
		lost = append(lost, d.Damage)
		p.cfg.Logger.Error("store: files were damaged, removed what could not be read",
			append(attrs, "from", d.From, "to", d.To)...)
	}
	return lost
}

// replaceFile replaces a file atomically. If the process is killed before that, the next
// repair of the same file replaces the temporary file, too.
func replaceFile(path string, data []byte) error {
	return datadir.WriteFile(path, path+repairSuffix, data)
}
