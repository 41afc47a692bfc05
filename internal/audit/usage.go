package audit

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/quota"
)

// segmentBatches is the number of batches that are indexed together.
const segmentBatches = 256

// entryOverhead estimates what an entry takes beside its facts and its content.
const entryOverhead = 160

// usageIndex describes the stored batches by time and by owner, in segments of
// consecutive numbers. It is in memory and derived from the stream: the writer adds the
// batches that it writes, and the retainer those of earlier processes.
type usageIndex struct {
	mu       sync.Mutex
	segments map[segmentKey]*segment
	totals   map[quota.Owner]ownerBytes
	facts    int64 // of all owners
	complete bool  // retainer.loadUsage has ended
}

// segmentKey identifies a segment: the writer of the chain, and the number of its batches
// divided by segmentBatches.
type segmentKey struct {
	writer string
	number uint64
}

// firstBatch returns the number of the first batch.
func (k segmentKey) firstBatch() uint64 { return k.number * segmentBatches }

func keyOf(writer string, batch uint64) segmentKey { return segmentKey{writer, batch / segmentBatches} }

// segment describes batches of one chain with adjacent numbers.
type segment struct {
	firstSeq uint64    // first message of a batch that was not rewritten; 0 = none
	oldest   time.Time // of all records
	newest   time.Time
	seen     [segmentBatches / 64]uint64
	stale    bool // contents were removed that are still counted
	owners   map[quota.Owner]ownerBytes
}

// ownerBytes are the stored bytes of one owner.
type ownerBytes struct{ facts, contents int64 }

func (b ownerBytes) sum() int64 { return b.facts + b.contents }

// recordUsage is what one record adds to the index.
type recordUsage struct {
	owner quota.Owner
	at    time.Time
	bytes ownerBytes
}

func newUsageIndex() *usageIndex {
	return &usageIndex{segments: map[segmentKey]*segment{}, totals: map[quota.Owner]ownerBytes{}}
}

// usageOf returns what a record adds to the index. Records of the log itself have no
// owner.
func usageOf(rec *Record, e *batchEntry) recordUsage {
	u := recordUsage{at: rec.At}
	if rec.Kind == KindAdmin {
		return u
	}
	u.owner = ownerOf(rec)
	u.bytes = ownerBytes{facts: int64(len(e.facts)) + entryOverhead, contents: e.content.storedSize()}
	return u
}

// ownerOf returns the owner of a decision or an outcome.
func ownerOf(rec *Record) quota.Owner {
	return quota.OwnerOf(&contract.Caller{Tenant: rec.Tenant, Issuer: rec.Issuer, Subject: rec.Subject})
}

// storedSize estimates the size of a content where it is stored.
func (c *entryContent) storedSize() int64 { return int64(len(c.data) + len(c.parts)*maxPart) }

// add adds a batch, once. seq is its message, 0 if it was rewritten.
func (x *usageIndex) add(writer string, number, seq uint64, records []recordUsage) {
	x.mu.Lock()
	defer x.mu.Unlock()
	key := keyOf(writer, number)
	s := x.segments[key]
	if s == nil {
		s = &segment{owners: map[quota.Owner]ownerBytes{}}
		x.segments[key] = s
	}
	if s.hasSeen(number) {
		return
	}
	s.seen[number%segmentBatches/64] |= 1 << (number % 64)
	if seq != 0 && (s.firstSeq == 0 || seq < s.firstSeq) {
		s.firstSeq = seq
	}
	for i := range records {
		r := &records[i]
		if r.at.After(s.newest) {
			s.newest = r.at
		}
		if s.oldest.IsZero() || r.at.Before(s.oldest) {
			s.oldest = r.at
		}
		if r.owner != (quota.Owner{}) {
			x.change(s, r.owner, r.bytes)
		}
	}
}

func (s *segment) hasSeen(number uint64) bool {
	return s.seen[number%segmentBatches/64]&(1<<(number%64)) != 0
}

func (x *usageIndex) change(s *segment, owner quota.Owner, by ownerBytes) {
	x.facts += by.facts
	for _, m := range []map[quota.Owner]ownerBytes{s.owners, x.totals} {
		sum := ownerBytes{facts: m[owner].facts + by.facts, contents: m[owner].contents + by.contents}
		if m[owner] = sum; sum == (ownerBytes{}) {
			delete(m, owner)
		}
	}
}

// dropContent subtracts a content that was removed.
func (x *usageIndex) dropContent(writer string, number uint64, u recordUsage) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if s := x.segments[keyOf(writer, number)]; s != nil && s.hasSeen(number) {
		x.change(s, u.owner, ownerBytes{contents: -min(u.bytes.contents, s.owners[u.owner].contents)})
	}
}

// trim removes the segments of batches of a chain up to a number.
func (x *usageIndex) trim(writer string, upTo uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for k, s := range x.segments {
		if k.writer != writer || k.firstBatch()+segmentBatches > upTo+1 {
			continue
		}
		for owner, bytes := range maps.Clone(s.owners) {
			x.change(s, owner, ownerBytes{facts: -bytes.facts, contents: -bytes.contents})
		}
		delete(x.segments, k)
	}
}

// firstSince returns the number of the batch of a chain from which the records since a time are
// found, and a message at or behind it that was not rewritten, 0 if there is none. known
// is false if the index is not complete, found is false if there are no such records.
func (x *usageIndex) firstSince(writer string, since time.Time) (number, seq uint64, found, known bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, n := range x.segmentsOf(writer) {
		s := x.segments[segmentKey{writer, n}]
		if !found && !s.newest.Before(since) {
			number, found = n*segmentBatches, true
		}
		if found && s.firstSeq != 0 {
			return number, s.firstSeq, true, x.complete
		}
	}
	return number, 0, found, x.complete
}

// segmentsOf returns the numbers of the segments of a chain in order.
func (x *usageIndex) segmentsOf(writer string) []uint64 {
	var numbers []uint64
	for k := range x.segments {
		if k.writer == writer {
			numbers = append(numbers, k.number)
		}
	}
	slices.Sort(numbers)
	return numbers
}

// firstContents returns the first segment of each chain with contents of the owners, oldest
// records first.
func (x *usageIndex) firstContents(owners map[quota.Owner]bool) []segmentKey {
	x.mu.Lock()
	defer x.mu.Unlock()
	first := map[string]segmentKey{}
	for k, s := range x.segments {
		for owner := range owners {
			if s.owners[owner].contents <= 0 {
				continue
			}
			if known, ok := first[k.writer]; !ok || k.number < known.number {
				first[k.writer] = k
			}
		}
	}
	return slices.SortedFunc(maps.Values(first), func(a, b segmentKey) int {
		return cmp.Or(x.segments[a].newest.Compare(x.segments[b].newest), cmp.Compare(a.writer, b.writer))
	})
}

// isOlder reports whether a segment is older than another: in one chain by number, because
// the clock may have been set back.
func (x *usageIndex) isOlder(a, b segmentKey) bool {
	if a.writer == b.writer {
		return a.number < b.number
	}
	return x.segments[a].newest.Before(x.segments[b].newest)
}

// heaviest returns the most bytes that an owner with contents has; 0 if there is none, or
// if the index is not complete.
func (x *usageIndex) heaviest() (bytes int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.complete {
		return 0
	}
	for _, b := range x.totals {
		if b.contents > 0 {
			bytes = max(bytes, b.sum())
		}
	}
	return bytes
}

// ownersAbove returns the owners with contents and more than this many bytes.
func (x *usageIndex) ownersAbove(bytes int64) map[quota.Owner]bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	owners := map[quota.Owner]bool{}
	for owner, b := range x.totals {
		if b.contents > 0 && b.sum() > bytes {
			owners[owner] = true
		}
	}
	return owners
}

// sumOf returns the bytes of an owner, and of the one with the most.
func (x *usageIndex) sumOf(owner quota.Owner) (own, most int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, b := range x.totals {
		most = max(most, b.sum())
	}
	return x.totals[owner].sum(), most
}

// factsOf returns the bytes of the owner's facts, and of all facts.
func (x *usageIndex) factsOf(owner quota.Owner) (own, all int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.totals[owner].facts, x.facts
}

// mostFacts returns the bytes of the facts of the owner with the most.
func (x *usageIndex) mostFacts() (most int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, b := range x.totals {
		most = max(most, b.facts)
	}
	return most
}

// byOwner returns the stored bytes by owner.
func (x *usageIndex) byOwner() map[quota.Owner]ownerBytes {
	x.mu.Lock()
	defer x.mu.Unlock()
	return maps.Clone(x.totals)
}

// usageOfEntry returns what entry i adds to the index.
func (b *batch) usageOfEntry(i int) recordUsage {
	rec, err := b.decodeRecord(i)
	if err != nil {
		return recordUsage{}
	}
	return usageOf(rec, &b.entries[i])
}

// usage returns what the records of the batch add to the index.
func (b *batch) usage() []recordUsage {
	records := make([]recordUsage, 0, len(b.entries))
	for i := range b.entries {
		records = append(records, b.usageOfEntry(i))
	}
	return records
}

// markStale marks the segment of a batch that was rewritten, possibly by another replica.
func (x *usageIndex) markStale(writer string, number uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if s := x.segments[keyOf(writer, number)]; s != nil {
		s.stale = true
	}
}

// takeStale returns the marked segments with contents, and removes the marks.
func (x *usageIndex) takeStale() (stale map[segmentKey]uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	stale = map[segmentKey]uint64{}
	for k, s := range x.segments {
		if s.stale && s.hasContents() {
			stale[k] = s.firstSeq
		}
		s.stale = false
	}
	return stale
}

func (s *segment) hasContents() bool {
	for _, b := range s.owners {
		if b.contents > 0 {
			return true
		}
	}
	return false
}

// setContents replaces the contents of a segment.
func (x *usageIndex) setContents(k segmentKey, contents map[quota.Owner]int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.segments[k]
	if s == nil {
		return // trimmed
	}
	for owner, b := range maps.Clone(s.owners) {
		x.change(s, owner, ownerBytes{contents: contents[owner] - b.contents})
	}
}

// hasBefore reports whether a chain has records before a time.
func (x *usageIndex) hasBefore(writer string, at time.Time) bool {
	return x.has(writer, at, func(*segment) bool { return true })
}

// hasContentBefore reports whether a chain has contents of records before a time.
func (x *usageIndex) hasContentBefore(writer string, at time.Time) bool {
	return x.has(writer, at, (*segment).hasContents)
}

func (x *usageIndex) has(writer string, before time.Time, wanted func(*segment) bool) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for k, s := range x.segments {
		if k.writer == writer && s.oldest.Before(before) && wanted(s) {
			return true
		}
	}
	return false
}

// oldestSegment returns the oldest segment of all chains, unless the index is not complete.
func (x *usageIndex) oldestSegment() (oldest segmentKey, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.complete {
		return segmentKey{}, false
	}
	for k := range x.segments {
		if !ok || x.isOlder(k, oldest) {
			oldest, ok = k, true
		}
	}
	return oldest, ok
}
