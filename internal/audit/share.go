package audit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/store"
)

// shareEnforcer divides the log between owners. It is a part of the Log.
type shareEnforcer struct {
	log         *Log
	streamLimit int64        // of the stream; -1 = none. It is higher than that of the log
	size        atomic.Int64 // of the stream, about: as of the last check, and what this and other replicas have appended since
	queued      atomic.Int64 // bytes of records that are not written yet
}

// keepsFacts reports whether facts are kept while the log is full, so that new ones are
// rejected.
func (e *shareEnforcer) keepsFacts() bool {
	retention := &e.log.cfg.Retention
	return retention.KeepFacts && retention.MaxBytes > 0
}

// isAbove reports whether the log, with what waits to be written, is larger than this
// part of its limit.
func (e *shareEnforcer) isAbove(part float64) bool {
	return float64(e.size.Load()+e.queued.Load()) > part*float64(e.log.cfg.Retention.MaxBytes)
}

// Admit returns quota_exceeded if the caller's requests may not be recorded now: the facts
// of its tenant use up its share of the log, or the log is full of facts and no other
// tenant has more, or the tenant writes faster than its contents are evicted. Contents do
// not count otherwise.
func (e *shareEnforcer) Admit(caller *contract.Caller) error {
	if !e.keepsFacts() {
		return nil
	}
	usage, limit, share := e.log.usage, e.log.cfg.Retention.MaxBytes, e.shareBytes()
	owner := quota.OwnerOf(caller)
	sum, most := usage.sumOf(owner)
	if share < limit && float64(sum) > laggingShare*float64(share) || sum == most && e.isAbove(laggingPart) {
		e.log.requestSizeCheck()
		return &contract.Error{Code: contract.CodeQuotaExceeded, Message: "the audit log grows faster than old contents of this tenant are removed; try again"}
	}
	own, all := usage.factsOf(owner)
	if own < share && (all < limit/20*19 || own < usage.mostFacts()) {
		return nil
	}
	return &contract.Error{Code: contract.CodeQuotaExceeded, Message: fmt.Sprintf(
		"the share of the store for the audit log is used up (%d of %d bytes, store.tenant_share), so the request cannot be recorded; wait until records expire (store.retention.audit)",
		own, share)}
}

// checkRoom returns store.ErrFull for a record that has to wait until there is room, for
// example because of many requests that were admitted before. If facts are kept, first only
// the owner with the most bytes has to wait, so that others can still write. Then every
// owner has to wait: a removal is announced in the log before it begins, and an eviction
// copies the other records, so that a log without any space could not make room.
func (e *shareEnforcer) checkRoom(rec *Record) error {
	if e.log.cfg.Retention.MaxBytes <= 0 || !e.isAbove(nearlyFullPart) {
		return nil
	}
	var reason string
	switch {
	case e.isFull():
		reason = "the rest is reserved for the removal of old records"
	case e.keepsFacts() && e.isHeaviest(ownerOf(rec)):
		reason = "the tenant with the most bytes waits until its old contents are removed"
	default:
		return nil
	}
	e.log.requestSizeCheck()
	return fmt.Errorf("%w: %s", store.ErrFull, reason)
}

// isFull reports whether only removals of old records may be written. If facts are kept,
// they need space for copies.
func (e *shareEnforcer) isFull() bool {
	if e.keepsFacts() {
		return e.isAbove(reservedPart)
	}
	return e.streamLimit > 0 && e.size.Load()+e.queued.Load() > e.streamLimit-e.streamLimit/announcedPart
}

// isHeaviest reports whether an owner has contents that can be evicted, and no other owner
// has more bytes.
func (e *shareEnforcer) isHeaviest(owner quota.Owner) bool {
	most := e.log.usage.heaviest()
	own, _ := e.log.usage.sumOf(owner)
	return most > 0 && own >= most
}

// shareBytes returns the part of the log that one owner may use.
func (e *shareEnforcer) shareBytes() int64 {
	l := e.log
	keep := &l.cfg.Retention
	if !(keep.Share > 0 && keep.Share < 1) {
		return keep.MaxBytes
	}
	return int64(keep.Share * float64(keep.MaxBytes))
}

// trimLimit returns the size from which records are trimmed before their retention, after
// contents were evicted. It is higher if there are contents, or facts are to be kept: then
// records are trimmed only to keep the log writable.
func (e *shareEnforcer) trimLimit() int64 {
	limit := e.log.cfg.Retention.MaxBytes
	if e.log.usage.heaviest() > 0 || e.log.cfg.Retention.KeepFacts {
		return partOf(limit, nearlyFullPart)
	}
	return limit
}

// evictLimit returns the size above which evictions are too slow, so that records are
// trimmed. If facts are kept, callers wait for evictions first: see checkRoom.
func (e *shareEnforcer) evictLimit() int64 {
	limit := e.log.cfg.Retention.MaxBytes
	if e.log.cfg.Retention.KeepFacts {
		return partOf(limit, reservedPart)
	}
	return partOf(limit, nearlyFullPart)
}

func partOf(limit int64, part float64) int64 { return int64(part * float64(limit)) }

// nearlyFullShare is the part of its share above which the facts of an owner cause a
// warning, because its requests are rejected when they use up the share.
const nearlyFullShare = 0.8

// warnOfFullShares logs the owners whose requests will be rejected soon.
func (e *shareEnforcer) warnOfFullShares(ctx context.Context) {
	l := e.log
	if !e.keepsFacts() {
		return
	}
	limit := e.shareBytes()
	l.usage.mu.Lock()
	defer l.usage.mu.Unlock()
	for owner, b := range l.usage.totals {
		if float64(b.facts) > nearlyFullShare*float64(limit) {
			l.cfg.Logger.WarnContext(ctx, "a tenant has nearly used up its share of the audit log; its requests are rejected then: "+
				"raise store.retention.max_bytes or store.tenant_share, or shorten store.retention.audit",
				"tenant", owner.String(), "bytes", b.facts, "share", limit)
		}
	}
}

// Parts of the limit of the log, if nothing else is stated. The stream has 1.11 of the limit.
const (
	evictedPart  = 0.1 // by which one pass reduces the contents
	laggingShare = 1.5 // of the share of an owner, above which its requests are rejected until contents are evicted
	heavyPart    = 0.8 // of the bytes of the heaviest owner, from which an owner counts as heavy, too

	// Sizes of the log, see Admit and checkRoom.
	laggingPart    = 1.03 // above which requests of the heaviest owner are rejected until contents are evicted
	nearlyFullPart = 1.05 // above which its records are rejected as well, or trimmed
	reservedPart   = 1.08 // above which the stream only has space for the announcement of an eviction and its copies

	announcedPart = 100 // one part of the stream has space for announcements only
)

// evictContents removes the oldest contents of the owners that exceed their share, or of
// the owners with the most bytes if the log exceeds its limit, and reports whether there
// may be more to remove. The facts stay.
func (e *shareEnforcer) evictContents(ctx context.Context) (more bool, err error) {
	l := e.log
	limit := l.cfg.Retention.MaxBytes
	most := l.usage.heaviest()
	if limit <= 0 || most == 0 {
		return false, nil
	}
	info, err := l.cfg.Log.Info(ctx)
	if err != nil {
		return false, err
	}
	e.size.Store(int64(info.Bytes))
	least, share := int64(heavyPart*float64(most)), l.shareBytes()
	switch {
	case int64(info.Bytes) > l.evictLimit():
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
	return l.evictFrom(ctx, l.usage.ownersAbove(least), size)
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
func (e *shareEnforcer) evictFrom(ctx context.Context, owners map[quota.Owner]bool, size evictionSize) (more bool, err error) {
	l := e.log
	var pass evictionPass
	for _, oldest := range l.usage.firstContents(owners) {
		if pass, err = l.planEviction(ctx, oldest, owners, size); err != nil {
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
	parts, err := e.copyWithoutContents(ctx, &pass, owners)
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
func (e *shareEnforcer) copyWithoutContents(ctx context.Context, pass *evictionPass, owners map[quota.Owner]bool) (parts []uint64, err error) {
	l, c := e.log, pass.chain
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
		if _, errs[i] = l.appendRewritten(ctx, c, b, removed); l.others != nil && errors.Is(errs[i], store.ErrConflict) {
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
func (e *shareEnforcer) planEviction(ctx context.Context, oldest segmentKey, owners map[quota.Owner]bool, size evictionSize) (evictionPass, error) {
	l := e.log
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
	if s := b.entries[i].content.state; s != contentInline && s != contentSeparate {
		return quota.Owner{}, false
	}
	rec, err := b.decodeRecord(i)
	if err != nil || rec.Kind == KindAdmin {
		return quota.Owner{}, false
	}
	return ownerOf(rec), true
}
