package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/store"
)

// segmentBatches is the number of batches that are indexed together.
const segmentBatches = 256

// entryOverhead estimates what an entry takes beside its facts and its content.
const entryOverhead = 160

// usageIndex describes the stored batches by time and by owner, in segments of
// consecutive numbers. It is in memory and derived from the stream: the writer adds the
// batches that it writes, and load those of earlier processes.
type usageIndex struct {
	mu       sync.Mutex
	segments map[uint64]*segment // by batch number / segmentBatches
	totals   map[quota.Owner]ownerBytes
	facts    int64 // of all owners
	complete bool  // load has ended
}

// segment describes batches with adjacent numbers.
type segment struct {
	firstSeq uint64    // first message of a batch that was not rewritten; 0 = none
	newest   time.Time // of all records
	seen     [segmentBatches / 64]uint64
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
	return &usageIndex{segments: map[uint64]*segment{}, totals: map[quota.Owner]ownerBytes{}}
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
func (x *usageIndex) add(number, seq uint64, records []recordUsage) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.segments[number/segmentBatches]
	if s == nil {
		s = &segment{owners: map[quota.Owner]ownerBytes{}}
		x.segments[number/segmentBatches] = s
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
func (x *usageIndex) dropContent(number uint64, u recordUsage) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if s := x.segments[number/segmentBatches]; s != nil && s.hasSeen(number) {
		x.change(s, u.owner, ownerBytes{contents: -min(u.bytes.contents, s.owners[u.owner].contents)})
	}
}

// trim removes the segments of batches up to a number.
func (x *usageIndex) trim(upTo uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for k, s := range x.segments {
		if (k+1)*segmentBatches > upTo+1 {
			continue
		}
		for owner, bytes := range maps.Clone(s.owners) {
			x.change(s, owner, ownerBytes{facts: -bytes.facts, contents: -bytes.contents})
		}
		delete(x.segments, k)
	}
}

// firstSince returns the number of the batch from which the records since a time are
// found, and a message at or behind it that was not rewritten, 0 if there is none. known
// is false if the index is not complete, found is false if there are no such records.
func (x *usageIndex) firstSince(since time.Time) (number, seq uint64, found, known bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, k := range slices.Sorted(maps.Keys(x.segments)) {
		s := x.segments[k]
		if !found && !s.newest.Before(since) {
			number, found = k*segmentBatches, true
		}
		if found && s.firstSeq != 0 {
			return number, s.firstSeq, true, x.complete
		}
	}
	return number, 0, found, x.complete
}

// firstContent returns the first batch number of the oldest segment with contents of the
// owners.
func (x *usageIndex) firstContent(owners map[quota.Owner]bool) (number uint64, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for k, s := range x.segments {
		for owner := range owners {
			if s.owners[owner].contents > 0 && (!ok || k*segmentBatches < number) {
				number, ok = k*segmentBatches, true
			}
		}
	}
	return number, ok
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

// Usage returns the stored bytes by owner.
func (k *shareKeeper) Usage() map[quota.Owner]int64 {
	l := k.log
	l.usage.mu.Lock()
	defer l.usage.mu.Unlock()
	usage := make(map[quota.Owner]int64, len(l.usage.totals))
	for owner, b := range l.usage.totals {
		usage[owner] = b.sum()
	}
	return usage
}

// loadUsage adds the batches of earlier processes to the index.
func (k *shareKeeper) loadUsage(ctx context.Context) error {
	l := k.log
	for _, subject := range []string{l.subjects.chain, l.subjects.rewritten + "*", l.subjects.withoutContents + "*"} {
		original := subject == l.subjects.chain
		err := l.cfg.Log.Read(ctx, store.ReadFrom{Subject: subject}, func(m store.Message) error {
			b, ok := tryDecode(m)
			switch {
			case !ok || !l.isPlausible(b):
				return nil
			case b.first > l.openedAt && original:
				return store.ErrStop
			}
			seq := b.seq
			if !original {
				seq = 0
			}
			l.usage.add(b.number, seq, b.usage())
			return nil
		})
		if err != nil {
			return fmt.Errorf("index the audit log: %w", err)
		}
	}
	l.usage.mu.Lock()
	defer l.usage.mu.Unlock()
	l.usage.complete = true
	return nil
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
