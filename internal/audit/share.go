package audit

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/quota"
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
