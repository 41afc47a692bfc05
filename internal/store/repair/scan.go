package repair

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// repairTail is the size of the checked end of a stream if the engine uses its
// index. Otherwise the engine reads everything, and everything is checked.
const repairTail = 8 << 20

// repairPlan is the repair of one stream. One goroutine owns it.
type repairPlan struct {
	files      *Files
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
	if err := p.scanBlocks(ctx, numbers, newest); err != nil {
		return err
	}
	if len(p.damage) == 0 {
		return nil
	}
	if p.usesIndex { // it will not be used after the repair, so that the engine reads everything
		p.usesIndex = false
		if err := p.scanBlocks(ctx, numbers, newest); err != nil {
			return err
		}
	}
	p.outdated = p.index.matchesBlock(newest.withoutRanges(newest.findDamage()))
	slices.Reverse(p.damage)
	return nil
}

// scanBlocks checks the blocks, the newest first, which was read already.
func (p *repairPlan) scanBlocks(ctx context.Context, numbers []int, newest *block) error {
	p.deletedSeqs, p.deletedSubjects = map[uint64]bool{}, map[string]bool{}
	p.blocks, p.damage, p.checked, p.checkBytes, p.tail, p.content = nil, nil, 0, 0, false, false
	for _, number := range slices.Backward(numbers) {
		b := new(*newest) // scanBlock changes it
		if number != newest.number {
			var err error
			if b, err = p.readBlock(number); err != nil {
				return err
			}
		}
		p.checked++
		p.checkBytes += int64(len(b.data))
		p.scanBlock(b, number == newest.number)
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

// findDeleted returns the values of deleted keys in a bucket's block without damage.
// The engine marks only the deleted message; the values before it stay in the files
// until these are rewritten. When the engine rebuilds its index, it would take the
// newest of them for the key's value.
func (p *repairPlan) findDeleted(b *block) []damagedRange {
	if p.usesIndex || !p.files.IsBucket(p.stream) {
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
