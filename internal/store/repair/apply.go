package repair

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/caprouter/caprouter/internal/datadir"
)

const (
	blockSuffix  = ".blk"
	repairSuffix = ".mended"
	damagedDir   = "damaged" // the originals of repaired blocks, in the directory of the store
)

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
	dir := filepath.Join(p.files.Dir, "store", damagedDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	name := fmt.Sprintf("%s.%d.%s%s.damaged", p.stream, b.number, p.files.Now().UTC().Format("20060102T150405.000000000Z"), blockSuffix)
	path = filepath.Join(dir, name)
	if err = os.Link(b.path, path); err != nil { // the file system has no hard links
		err = os.WriteFile(path, b.data, 0o600)
	}
	if err != nil {
		return "", fmt.Errorf("keep the damaged file: %w", err)
	}
	p.files.Logger.Warn("store: kept the damaged file", "path", path)
	return path, nil
}

// logDamage logs the removed damage, and returns the part that may be a loss.
func (p *repairPlan) logDamage() (lost []Damage) {
	for i := range p.damage {
		d := &p.damage[i]
		attrs := []any{"stream", p.stream, "file", filepath.Base(d.File), "bytes", d.Bytes}
		if d.Unfinished {
			p.files.Logger.Warn("store: removed an unreadable end: an unfinished write, or damage", attrs...)
			continue
		}
		lost = append(lost, d.Damage)
		p.files.Logger.Error("store: files were damaged, removed what could not be read",
			append(attrs, "from", d.From, "to", d.To)...)
	}
	return lost
}

// replaceFile replaces a file atomically. If the process is killed before that, the next
// repair of the same file replaces the temporary file, too.
func replaceFile(path string, data []byte) error {
	return datadir.WriteFile(path, path+repairSuffix, data)
}
