package audit

import (
	"context"
	"errors"
	"sync"

	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/store"
)

// evictContents removes the oldest contents of the owners that exceed their share, or of
// the owners with the most bytes if the log exceeds its limit, and reports whether there
// may be more to remove. The facts stay.
func (r *retainer) evictContents(ctx context.Context) (more bool, err error) {
	l := r.log
	limit := l.cfg.Retention.MaxBytes
	most := l.usage.heaviest()
	if limit <= 0 || most == 0 {
		return false, nil
	}
	info, err := l.cfg.Log.Info(ctx)
	if err != nil {
		return false, err
	}
	r.limiter.size.Store(int64(info.Bytes))
	least, share := int64(heavyPart*float64(most)), r.limiter.shareBytes()
	switch {
	case int64(info.Bytes) > r.limiter.evictLimit():
		return false, nil // too slow: trim records
	case most > share:
		least = share
	case int64(info.Bytes) <= limit:
		return false, nil
	}
	size := evictionSize{evict: max(most-share, int64(evictedPart*float64(limit))), copied: maxPassBytes}
	if info.MaxBytes > 0 {
		size.copied = min(size.copied, (info.MaxBytes-int64(info.Bytes))/2)
	}
	return r.evictFrom(ctx, l.usage.ownersAbove(least), size)
}

// evictionSize bounds a pass.
type evictionSize struct {
	evict  int64 // about as many bytes of contents are removed
	copied int64 // and as many others copied at most, because both copies need space for a moment
}

// evictFrom removes contents of the owners, and reports whether there may be more of them.
//
// It works like the cleaner of a log-structured file system: it copies the oldest
// messages of a subject, without these contents, to the end of the stream, and then
// removes the originals in one step, because a delete of each of them takes much longer.
func (r *retainer) evictFrom(ctx context.Context, owners map[quota.Owner]bool, size evictionSize) (more bool, err error) {
	l := r.log
	var pass evictionPass
	for _, oldest := range l.usage.firstContents(owners) {
		if pass, err = r.planEviction(ctx, oldest, owners, size); err != nil {
			return false, err
		}
		if !pass.isEmpty() {
			break
		}
	}
	if pass.isEmpty() {
		return false, nil
	}
	// Announce every pass, because a batch without contents of these owners is copied, too.
	c := pass.chain
	for owner := range owners {
		rec := Record{Kind: KindAdmin, Event: EventEvict, Chain: c.writer, Tenant: owner.Tenant, Principal: owner.Principal, UpTo: pass.mark}
		if err := l.announce(ctx, &rec); err != nil {
			return false, err
		}
	}
	parts, err := r.copyWithoutContents(ctx, &pass, owners)
	if err != nil {
		return false, err
	}
	if err := c.stream.PurgeBefore(ctx, pass.subject, pass.batches[len(pass.batches)-1].seq+1); err != nil {
		return false, err
	}
	for _, seq := range parts {
		if err := c.stream.Delete(ctx, seq); err != nil {
			return false, err
		}
	}
	for owner, contents := range pass.evicted {
		l.cfg.OnEvict(owner, contents)
	}
	return true, nil
}

// copyWithoutContents appends the batches of the pass without the contents of the owners.
// It returns the messages of the contents that were stored separately.
func (r *retainer) copyWithoutContents(ctx context.Context, pass *evictionPass, owners map[quota.Owner]bool) (parts []uint64, err error) {
	l, c := r.log, pass.chain
	var mu sync.Mutex
	errs := make([]error, len(pass.batches))
	run.ForEach(ctx, evictionWriters, len(pass.batches), func(ctx context.Context, i int) {
		b := pass.batches[i]
		if newer, err := c.readRewritten(ctx, b.number); err == nil && newer.seq != b.seq {
			return // a copy that an interrupted erasure has left
		} else if err != nil && !errors.Is(err, store.ErrNotFound) {
			errs[i] = err
			return
		}
		removed, dropped := b.dropContents(func(i int) bool {
			owner, ok := b.contentOwner(i)
			return ok && owners[owner]
		})
		if _, errs[i] = l.rewriter.appendBatch(ctx, c, b, removed); l.others != nil && errors.Is(errs[i], store.ErrConflict) {
			errs[i] = nil // another replica has rewritten it
			return
		}
		mu.Lock()
		defer mu.Unlock()
		parts = append(parts, dropped...)
	})
	return parts, errors.Join(errs...)
}

// evictionWriters is the number of concurrent writes of an eviction.
const evictionWriters = 8

// evictionPass is a pass over the oldest messages of one subject.
type evictionPass struct {
	chain   *storedChain
	subject string
	batches []*batch // all of them
	more    bool     // there are more messages
	mark    *ChainPosition
	evicted map[quota.Owner]int // contents to remove
}

// isEmpty reports whether the pass removes nothing.
func (p *evictionPass) isEmpty() bool {
	return len(p.batches) == 0 || len(p.evicted) == 0 && !p.more
}

// maxPassBytes bounds the memory of an eviction pass.
const maxPassBytes = 64 << 20

// planEviction selects the messages of the next pass in a chain, whose oldest contents of
// the owners are in a segment: those of the chain, or of batches that were rewritten before,
// if these contain the older contents.
func (r *retainer) planEviction(ctx context.Context, oldest segmentKey, owners map[quota.Owner]bool, size evictionSize) (evictionPass, error) {
	l := r.log
	pass := evictionPass{evicted: map[quota.Owner]int{}}
	c, err := l.chainOf(ctx, oldest.writer)
	if err != nil {
		return pass, err
	}
	pass.chain, pass.subject = c, c.subjects.chain
	m, err := c.stream.Next(ctx, c.subjects.chain, 1)
	if err != nil && (l.others == nil || !errors.Is(err, store.ErrNotFound)) {
		return pass, err
	}
	if b, ok := tryDecode(m); err != nil || ok && oldest.firstBatch()+segmentBatches <= b.number {
		pass.subject = c.subjects.rewritten + "*"
	}
	read, end := 0, c.end.Load().number
	err = c.stream.Read(ctx, store.ReadFrom{Subject: pass.subject}, func(m store.Message) error {
		b, ok := tryDecode(m)
		switch {
		case !ok || !c.isPlausible(b):
			return store.ErrStop // damaged: keep it as evidence
		case b.number >= end:
			return store.ErrStop // the last batch of the chain must stay where it is
		case size.evict <= 0 || size.copied <= 0 && len(pass.batches) > 0 || read > maxPassBytes || len(pass.batches) == maxBatchesPerPass:
			pass.more = true
			return store.ErrStop
		}
		for i := range b.entries {
			if owner, ok := b.contentOwner(i); ok && owners[owner] {
				size.evict -= b.entries[i].content.storedSize()
				size.copied += int64(len(b.entries[i].content.data))
				pass.evicted[owner]++
			}
		}
		if pass.mark == nil || b.number > pass.mark.Batch {
			pass.mark = b.endPosition()
		}
		size.copied -= int64(len(m.Data))
		read += len(m.Data)
		pass.batches = append(pass.batches, b)
		return nil
	})
	return pass, err
}

// contentOwner returns the owner of the content of entry i, and whether there is one.
func (b *batch) contentOwner(i int) (quota.Owner, bool) {
	if !b.entries[i].content.isStored() {
		return quota.Owner{}, false
	}
	rec, err := b.decodeRecord(i)
	if err != nil || rec.Kind == KindAdmin {
		return quota.Owner{}, false
	}
	return ownerOf(rec), true
}
