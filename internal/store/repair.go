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
)

// Damage is an unreadable part of a file that was removed when the store was opened.
type Damage struct {
	// From and To are the first and the last sequence that may be lost; some of them
	// may have been deleted before. From is 0 if it is not known.
	From, To uint64
	Bytes    int
}

// repairTail is the size of the checked end of a stream if the engine uses its
// index. Otherwise the engine reads everything, and everything is checked.
const repairTail = 8 << 20

const (
	indexFile    = "index.db"
	blockSuffix  = ".blk"
	repairSuffix = ".mended"
	bucketStream = "KV_" // prefix of the streams of buckets
)

// repairFiles removes damaged records from the engine's files before it opens them.
// The engine itself appends behind a damaged record silently; the next time it reads
// the block, it drops the record with everything behind it, new messages included.
//
//	┌────┬────┬─╳──┬────┬────┐        ┌────┬────┬────┬────┐
//	│ 41 │ 42 │ 43 │ 44 │ 45 │   ─▶   │ 41 │ 42 │ 44 │ 45 │
//	└────┴────┴────┴────┴────┘        └────┴────┴────┴────┘
//
// Sequences do not change. It returns the damage by stream. A file that cannot be
// checked is logged and left to the engine.
func (c *Config) repairFiles(ctx context.Context) map[string][]Damage {
	found := map[string][]Damage{}
	root := filepath.Join(c.Dir, "store", "jetstream", "$G", "streams")
	streams, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.Logger.Error("store: files could not be checked for damage", "error", err)
	}
	for _, entry := range streams {
		m := repairer{cfg: c, dir: filepath.Join(root, entry.Name(), "msgs"), stream: entry.Name()}
		if err := m.repairStream(ctx); err != nil && !errors.Is(err, fs.ErrNotExist) {
			c.Logger.Error("store: files could not be checked for damage", "stream", m.stream, "error", err)
		}
		if len(m.damage) > 0 {
			found[m.stream] = m.damage
		}
	}
	return found
}

// repairer repairs one stream. One goroutine owns it.
type repairer struct {
	cfg       *Config
	dir       string
	stream    string
	index     streamIndex
	usesIndex bool // the engine will use the index
	damage    []Damage

	// Of a bucket: sequences of deleted values, and their subjects.
	deletedSeqs     map[uint64]bool
	deletedSubjects map[string]bool
}

func (m *repairer) repairStream(ctx context.Context) error {
	numbers, err := m.listBlocks()
	if err != nil || len(numbers) == 0 {
		return err
	}
	saved, _ := os.ReadFile(filepath.Join(m.dir, indexFile)) // it may not exist
	m.index = parseIndex(saved)
	relied, err := m.scanBlocks(ctx, numbers)
	if err == nil && relied && !m.usesIndex { // the engine reads everything now
		_, err = m.scanBlocks(ctx, numbers)
	}
	slices.Reverse(m.damage)
	return err
}

// scanBlocks checks the blocks, the newest first, and reports whether the engine
// would have used its index before.
func (m *repairer) scanBlocks(ctx context.Context, numbers []int) (relied bool, err error) {
	m.deletedSeqs, m.deletedSubjects = map[uint64]bool{}, map[string]bool{}
	looked := 0
	for i, number := range slices.Backward(numbers) {
		b, err := m.readBlock(number)
		if err != nil {
			return relied, err
		}
		newest := i == len(numbers)-1
		if newest {
			m.usesIndex = m.index.matchesBlock(b.data)
			relied = m.usesIndex
		}
		looked += len(b.data)
		if err := m.repairBlock(b, newest); err != nil {
			return relied, err
		}
		if err := m.removeDeleted(b); err != nil {
			return relied, err
		}
		if err := ctx.Err(); err != nil || m.usesIndex && looked >= repairTail {
			return relied, err
		}
	}
	return relied, nil
}

// listBlocks lists the numbers of the stream's blocks, oldest first.
func (m *repairer) listBlocks() ([]int, error) {
	entries, err := os.ReadDir(m.dir)
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

func (m *repairer) readBlock(number int) (*block, error) {
	path := filepath.Join(m.dir, fmt.Sprint(number)+blockSuffix)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return newBlock(m.stream, path, number, data)
}

// repairBlock removes the damage of one block.
func (m *repairer) repairBlock(b *block, newest bool) error {
	holes := b.findDamage()
	if len(holes) == 0 {
		return nil
	}
	whole := b.withoutRanges(holes)
	// The engine must not use an index that counts removed records. It takes only
	// the last sequence, so that none is assigned twice, from an index that does not
	// match the newest block.
	if newest {
		m.usesIndex = m.index.matchesBlock(whole)
	}
	if m.usesIndex {
		if err := os.Remove(filepath.Join(m.dir, indexFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		m.usesIndex, m.index.check = false, nil
	}
	if err := replaceFile(b.path, whole); err != nil {
		return err
	}
	b.data = whole
	for _, h := range slices.Backward(holes) {
		m.reportDamage(b, h, newest)
	}
	return nil
}

// removeDeleted removes values of deleted keys from a bucket's block. The engine
// marks only the deleted message; the values before it stay in the files until these
// are rewritten. When the engine rebuilds its index, it would take the newest of
// them for the key's value.
func (m *repairer) removeDeleted(b *block) error {
	if m.usesIndex || !strings.HasPrefix(m.stream, bucketStream) {
		return nil
	}
	records := b.listRecords()
	for _, r := range records {
		if r.deletes {
			m.deletedSeqs[r.seq] = true
		}
	}
	var dead []damagedRange
	for _, r := range slices.Backward(records) {
		switch {
		case r.deletes:
		case m.deletedSubjects[string(r.subject)]:
			dead = append(dead, damagedRange{begin: r.begin, end: r.end})
		case m.deletedSeqs[r.seq]:
			m.deletedSubjects[string(r.subject)] = true
		}
	}
	if len(dead) == 0 {
		return nil
	}
	slices.Reverse(dead)
	b.data = b.withoutRanges(dead)
	return replaceFile(b.path, b.data)
}

// reportDamage logs removed damage and adds it to the result. At the end of a stream
// it may be an unfinished write that was never acknowledged: then nothing is lost.
func (m *repairer) reportDamage(b *block, h damagedRange, newest bool) {
	d := Damage{From: h.after + 1, To: h.before - 1, Bytes: h.end - h.begin}
	tail := h.before == 0
	if tail {
		d.To = max(d.From, m.index.last)
	}
	if h.after == 0 { // no record before it in this block
		d.From = 0
		if h.claimedSeq <= d.To {
			d.From = h.claimedSeq
		}
	}
	attrs := []any{"stream", m.stream, "block", b.number, "bytes", d.Bytes}
	if tail && newest && m.index.last <= h.after {
		m.cfg.Logger.Warn("store: removed an unreadable end: an unfinished write, or damage", attrs...)
		return
	}
	m.damage = append(m.damage, d)
	m.cfg.Logger.Error("store: files were damaged, removed what could not be read",
		append(attrs, "from", d.From, "to", d.To)...)
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

// replaceFile replaces a file atomically.
func replaceFile(path string, data []byte) (err error) {
	temporary := path + repairSuffix
	defer func() {
		if err != nil {
			_ = os.Remove(temporary)
		}
	}()
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, wrote := f.Write(data)
	if err := errors.Join(wrote, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(temporary, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes a rename durable, where the system supports it.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	_ = d.Sync()
	return d.Close()
}
