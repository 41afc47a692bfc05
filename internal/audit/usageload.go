package audit

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/store"
)

// loadUsage adds the batches of earlier processes, and of other replicas, to the index.
func (r *retainer) loadUsage(ctx context.Context) error {
	l := r.log
	for _, c := range l.allChains() {
		if err := r.loadUsageOf(ctx, c); err != nil {
			return fmt.Errorf("index the audit log: %w", err)
		}
	}
	l.usage.mu.Lock()
	defer l.usage.mu.Unlock()
	l.usage.complete = true
	return nil
}

func (r *retainer) loadUsageOf(ctx context.Context, c *storedChain) error {
	l := r.log
	for _, subject := range []string{c.subjects.chain, c.subjects.rewritten + "*", c.subjects.withoutContents + "*"} {
		original := subject == c.subjects.chain
		err := c.stream.Read(ctx, store.ReadFrom{Subject: subject}, func(m store.Message) error {
			b, ok := tryDecode(m)
			switch {
			case !ok || !c.isPlausible(b):
				return nil
			case original && c == l.storedChain && b.first > l.openedAt, c != l.storedChain && m.Seq > l.openedBehind:
				return store.ErrStop // indexed when it was written, or followed
			}
			seq := b.seq
			if !original {
				seq = 0
			}
			l.usage.add(c.writer, b.number, seq, b.usage())
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
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

// recountContents counts the contents of the segments again in which another replica may
// have removed some.
func (r *retainer) recountContents(ctx context.Context) error {
	l := r.log
	for k, seq := range l.usage.takeStale() {
		c, err := l.chainOf(ctx, k.writer)
		if err != nil {
			return err
		}
		contents := map[quota.Owner]int64{}
		first := k.firstBatch()
		err = c.walkBatches(ctx, store.ReadFrom{Seq: max(seq, 1)}, func(b *batch) bool { return b.number >= first }, func(_ uint64, b *batch) error {
			if b.number >= first+segmentBatches {
				return store.ErrStop
			}
			for _, u := range b.usage() {
				contents[u.owner] += u.bytes.contents
			}
			return nil
		})
		if err != nil {
			l.usage.markStale(k.writer, first)
			return fmt.Errorf("index the audit log: %w", err)
		}
		l.usage.setContents(k, contents)
	}
	return nil
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
