package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

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

// String returns what may be lost.
func (d Damage) String() string {
	switch {
	case d.From == 0:
		return fmt.Sprintf("%d unreadable bytes", d.Bytes)
	case d.From >= d.To:
		return fmt.Sprintf("message %d (%d bytes)", d.From, d.Bytes)
	}
	return fmt.Sprintf("messages %d to %d (%d bytes)", d.From, d.To, d.Bytes)
}

// repairTail is the size of the checked end of a stream if the engine uses its
// index. Otherwise the engine reads everything, and everything is checked.
const repairTail = 8 << 20

const (
	indexFile    = "index.db"
	blockSuffix  = ".blk"
	repairSuffix = ".mended"
	damagedDir   = "damaged" // the originals of repaired blocks, in the directory of the store
	bucketStream = "KV_"     // prefix of the streams of buckets

	indexMagic   = 11 // first byte of an index
	indexVersion = 4  // newest known version, in its second byte
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
	if err != nil || compareEngines(wrote, EngineVersion) == 0 {
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

// repairPlan is the repair of one stream. One goroutine owns it.
type repairPlan struct {
	cfg        *Config
	dir        string
	stream     string
	everything bool // check all blocks

	index      streamIndex
	usesIndex  bool // the engine will use the index
	outdated   bool // the engine would use the index, which counts removed records
	checked    int  // blocks
	checkBytes int64
	blocks     []*blockRepair // those that change, newest first
	damage     []FileDamage   // in the order of the stream

	tail    bool // the damage is one range, behind which nothing is readable
	content bool // a newer block has records, or damage

	// Of a bucket: sequences of deleted values, and their subjects.
	deletedSeqs     map[uint64]bool
	deletedSubjects map[string]bool
}

// blockRepair is the repair of one block.
type blockRepair struct {
	number int
	path   string
	holes  []damagedRange
	dead   []damagedRange // values of deleted keys, in the block without holes
}

// isTail reports whether nothing is removed except one damaged end.
func (p *repairPlan) isTail() bool { return len(p.damage) == 0 || len(p.damage) == 1 && p.tail }

func (p *repairPlan) scan(ctx context.Context) error {
	numbers, err := p.listBlocks()
	if err != nil || len(numbers) == 0 {
		return err
	}
	saved, _ := os.ReadFile(filepath.Join(p.dir, indexFile)) // it may not exist
	p.index = parseIndex(saved)
	newest, err := p.readBlock(numbers[len(numbers)-1])
	if err != nil {
		return err
	}
	p.usesIndex = p.index.matchesBlock(newest.data)
	if err := p.scanBlocks(ctx, numbers); err != nil {
		return err
	}
	if len(p.damage) == 0 {
		return nil
	}
	if p.usesIndex { // it will not be used after the repair, so that the engine reads everything
		p.usesIndex = false
		if err := p.scanBlocks(ctx, numbers); err != nil {
			return err
		}
	}
	p.outdated = p.index.matchesBlock(newest.withoutRanges(newest.findDamage()))
	slices.Reverse(p.damage)
	return nil
}

// scanBlocks checks the blocks, the newest first.
func (p *repairPlan) scanBlocks(ctx context.Context, numbers []int) error {
	p.deletedSeqs, p.deletedSubjects = map[uint64]bool{}, map[string]bool{}
	p.blocks, p.damage, p.checked, p.checkBytes, p.tail, p.content = nil, nil, 0, 0, false, false
	for i, number := range slices.Backward(numbers) {
		b, err := p.readBlock(number)
		if err != nil {
			return err
		}
		p.checked++
		p.checkBytes += int64(len(b.data))
		p.scanBlock(b, i == len(numbers)-1)
		if err := ctx.Err(); err != nil {
			return err
		}
		if p.usesIndex && !p.everything && p.checkBytes >= repairTail {
			return nil
		}
	}
	return nil
}

func (p *repairPlan) scanBlock(b *block, newest bool) {
	r := &blockRepair{number: b.number, path: b.path, holes: b.findDamage()}
	for _, h := range slices.Backward(r.holes) {
		p.damage = append(p.damage, p.newDamage(b, h, newest))
	}
	if len(r.holes) == 1 {
		p.tail = !p.content && b.endsUnfinished(r.holes[0])
	}
	p.content = p.content || len(b.data) > 0
	b.data = b.withoutRanges(r.holes)
	r.dead = p.findDeleted(b)
	if len(r.holes)+len(r.dead) > 0 {
		p.blocks = append(p.blocks, r)
	}
}

// listBlocks lists the numbers of the stream's blocks, oldest first.
func (p *repairPlan) listBlocks() ([]int, error) {
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		return nil, err
	}
	var numbers []int
	for _, entry := range entries {
		name, isBlock := strings.CutSuffix(entry.Name(), blockSuffix)
		var n int
		if _, err := fmt.Sscanf(name, "%d", &n); isBlock && err == nil && name == fmt.Sprint(n) {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

func (p *repairPlan) readBlock(number int) (*block, error) {
	path := filepath.Join(p.dir, fmt.Sprint(number)+blockSuffix)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return newBlock(p.stream, path, number, data)
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

// findDeleted returns the values of deleted keys in a bucket's block without damage.
// The engine marks only the deleted message; the values before it stay in the files
// until these are rewritten. When the engine rebuilds its index, it would take the
// newest of them for the key's value.
func (p *repairPlan) findDeleted(b *block) []damagedRange {
	if p.usesIndex || !strings.HasPrefix(p.stream, bucketStream) {
		return nil
	}
	records := b.listRecords()
	for _, r := range records {
		if r.deletes {
			p.deletedSeqs[r.seq] = true
		}
	}
	var dead []damagedRange
	for _, r := range slices.Backward(records) {
		switch {
		case r.deletes:
		case p.deletedSubjects[string(r.subject)]:
			dead = append(dead, damagedRange{begin: r.begin, end: r.end})
		case p.deletedSeqs[r.seq]:
			p.deletedSubjects[string(r.subject)] = true
		}
	}
	slices.Reverse(dead)
	return dead
}

// newDamage describes a damaged range. At the end of a stream it may be an unfinished
// write that was never acknowledged: then nothing is lost.
func (p *repairPlan) newDamage(b *block, h damagedRange, newest bool) FileDamage {
	d := FileDamage{Stream: p.stream, File: b.path, Damage: Damage{From: h.after + 1, To: h.before - 1, Bytes: h.end - h.begin}}
	tail := h.before == 0
	if tail {
		d.To = max(d.From, p.index.last)
	}
	if h.after == 0 { // no record before it in this block
		d.From = 0
		if h.claimedSeq <= d.To {
			d.From = h.claimedSeq
		}
	}
	d.Unfinished = tail && newest && p.index.last <= h.after
	return d
}

// logDamage logs the removed damage, and returns what may be lost.
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

// streamIndex is the used part of the engine's index of a stream.
type streamIndex struct {
	last  uint64 // the last sequence
	check []byte // the last bytes of the newest block
}

// parseIndex decodes an index; the zero value if it is invalid.
func parseIndex(data []byte) streamIndex {
	const hashed, least = 8, 32
	if len(data) < least {
		return streamIndex{}
	}
	if data[0] != indexMagic || data[1] < 1 || data[1] > indexVersion {
		return streamIndex{} // of another engine, which this one does not use either
	}
	x := streamIndex{check: data[len(data)-hashed-recordHash : len(data)-hashed]}
	rest := data[2:] // without kind and version
	for _, field := range []*uint64{nil, nil, nil, nil, &x.last} {
		// Messages, bytes, first sequence, its time, last sequence. The time is
		// signed, and has the same length as if it were unsigned.
		value, n := binary.Uvarint(rest)
		if n <= 0 {
			return streamIndex{}
		}
		if rest = rest[n:]; field != nil {
			*field = value
		}
	}
	return x
}

// matchesBlock reports whether the engine will use the index, given the newest
// block.
func (x streamIndex) matchesBlock(newest []byte) bool {
	return len(newest) >= recordHash && bytes.HasSuffix(newest, x.check) && len(x.check) > 0
}

// replaceFile replaces a file atomically. If the process is killed before that, the next
// repair of the same file replaces the temporary file, too.
func replaceFile(path string, data []byte) error {
	return datadir.WriteFile(path, path+repairSuffix, data)
}
