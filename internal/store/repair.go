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

// Damage is a part of a file that could not be read when the store was opened,
// and that was cut out of it.
type Damage struct {
	// From and To are the sequences between which messages are lost. Others
	// between them may have been deleted before. From is 0 when nobody can tell.
	From, To uint64
	Bytes    int
}

// repairTail is how much of a stream is looked at, from its end, as long as the
// engine relies on its index. When it does not it reads everything itself, and
// then everything is looked at.
const repairTail = 8 << 20

const (
	indexFile    = "index.db"
	blockSuffix  = ".blk"
	repairSuffix = ".mended"
	bucketStream = "KV_" // begins the name of a bucket's stream
)

// repairFiles cuts out of the engine's files what it would stumble over, before it opens
// them: it appends behind a damaged record without a word, and the next time it
// has to read the block itself it drops the record and everything behind it, what
// was appended since included.
//
//	┌────┬────┬─╳──┬────┬────┐        ┌────┬────┬────┬────┐
//	│ 41 │ 42 │ 43 │ 44 │ 45 │   ─▶   │ 41 │ 42 │ 44 │ 45 │
//	└────┴────┴────┴────┴────┘        └────┴────┴────┴────┘
//
// Sequences stay what they were. It returns the damage by stream. A file that
// cannot be looked at is left to the engine, and said.
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

// repairer mends one stream.
type repairer struct {
	cfg       *Config
	dir       string
	stream    string
	index     streamIndex
	usesIndex bool // the engine will rely on the index
	damage    []Damage

	// Of a bucket: the sequences of values that were deleted, and their keys.
	deletedSeqs     map[uint64]bool
	deletedSubjects map[string]bool
}

func (m *repairer) repairStream(ctx context.Context) error {
	numbers, err := m.listBlocks()
	if err != nil || len(numbers) == 0 {
		return err
	}
	saved, _ := os.ReadFile(filepath.Join(m.dir, indexFile)) // there need not be one
	m.index = parseIndex(saved)
	relied, err := m.scanBlocks(ctx, numbers)
	if err == nil && relied && !m.usesIndex { // now the engine reads everything
		_, err = m.scanBlocks(ctx, numbers)
	}
	slices.Reverse(m.damage)
	return err
}

// scanBlocks looks at the blocks, the newest first, and reports whether the engine
// would have relied on its index before.
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

// repairBlock cuts the holes out of one block.
func (m *repairer) repairBlock(b *block, newest bool) error {
	holes := b.findDamage()
	if len(holes) == 0 {
		return nil
	}
	whole := b.withoutRanges(holes)
	// The engine must not rely on an index that counts what is cut. One that does
	// not fit the newest block it reads only for the last sequence, so that none
	// is given twice.
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

// removeDeleted cuts values of deleted keys out of a bucket's block, which the engine
// would bring back: it says of a deletion only which message it took away, and
// those that this one had replaced are in the files until they are rewritten. An
// engine that makes its index anew finds no newer one, and takes the newest of
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

// reportDamage says what was cut, and keeps it. At the end of a stream it may be the
// beginning of a write that was never acknowledged: then nothing is lost.
func (m *repairer) reportDamage(b *block, h damagedRange, newest bool) {
	d := Damage{From: h.after + 1, To: h.before - 1, Bytes: h.end - h.begin}
	tail := h.before == 0
	if tail {
		d.To = max(d.From, m.index.last)
	}
	if h.after == 0 { // nothing is before it, in this block
		d.From = 0
		if h.claimedSeq <= d.To {
			d.From = h.claimedSeq
		}
	}
	attrs := []any{"stream", m.stream, "block", b.number, "bytes", d.Bytes}
	if tail && newest && m.index.last <= h.after {
		m.cfg.Logger.Warn("store: the end cannot be read and was cut off: a write that was not finished, or damage", attrs...)
		return
	}
	m.damage = append(m.damage, d)
	m.cfg.Logger.Error("store: files were damaged, what could not be read was cut out",
		append(attrs, "from", d.From, "to", d.To)...)
}

// streamIndex is what the engine's index of a stream says.
type streamIndex struct {
	last  uint64 // the last sequence
	check []byte // the last bytes of the newest block
}

// parseIndex reads an index; the zero index when it cannot be read.
func parseIndex(data []byte) streamIndex {
	const hashed, least = 8, 32
	if len(data) < least {
		return streamIndex{}
	}
	x := streamIndex{check: data[len(data)-hashed-recordHash : len(data)-hashed]}
	rest := data[2:] // kind and version
	for _, field := range []*uint64{nil, nil, nil, nil, &x.last} {
		// Messages, bytes, first sequence, its time, last sequence. The time is
		// signed, and as long as if it were not.
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

// matchesBlock reports whether the engine will rely on the index, given the newest block.
func (x streamIndex) matchesBlock(newest []byte) bool {
	return len(newest) >= recordHash && bytes.HasSuffix(newest, x.check) && len(x.check) > 0
}

// replaceFile puts a file in the place of another: whatever ends the process,
// one of them is there, whole.
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

// syncDir makes a rename last. Not every system can.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	_ = d.Sync()
	return d.Close()
}
