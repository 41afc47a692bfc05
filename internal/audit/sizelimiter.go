package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/store"
)

// sizeLimiter admits records by the size of the log and by what each owner has stored in it.
// It removes nothing: that does the retainer.
type sizeLimiter struct {
	retention   Retention
	usage       *usageIndex
	logger      *slog.Logger
	streamLimit int64         // of the stream; -1 = none. It is higher than that of the log
	size        atomic.Int64  // of the stream, about: as of the last check, and what this and other replicas have appended since
	queued      atomic.Int64  // bytes of records that are not written yet
	oversized   chan struct{} // capacity 1: the stream has grown much, check its size
}

func newSizeLimiter(cfg *Config, usage *usageIndex) *sizeLimiter {
	return &sizeLimiter{retention: cfg.Retention, usage: usage, logger: cfg.Logger, oversized: make(chan struct{}, 1)}
}

// requestSizeCheck lets the retainer compare the size of the log with its limit soon.
func (s *sizeLimiter) requestSizeCheck() {
	select {
	case s.oversized <- struct{}{}:
	default: // a check is requested already
	}
}

// watchSize wraps an append function, which is not called concurrently. It requests a check
// of the size after the stream has grown by 1/50 of its limit or is full, because a burst
// must not wait for the next interval.
func (s *sizeLimiter) watchSize(through appendFunc) appendFunc {
	grown := int64(0)
	return func(ctx context.Context, subject string, data []byte, opts store.AppendOptions) (uint64, error) {
		seq, err := through(ctx, subject, data, opts)
		if err == nil {
			s.size.Add(int64(len(data)) + messageOverhead)
		}
		if grown += int64(len(data)); s.retention.MaxBytes > 0 && grown > s.retention.MaxBytes/50 || errors.Is(err, store.ErrFull) {
			grown = 0
			s.requestSizeCheck()
		}
		return seq, err
	}
}

// messageOverhead is about what the stream stores beside the data of a message: subject,
// headers and checksum.
const messageOverhead = 256

// keepsFacts reports whether facts are kept while the log is full, so that new ones are
// rejected.
func (s *sizeLimiter) keepsFacts() bool {
	return s.retention.KeepFacts && s.retention.MaxBytes > 0
}

// isAbove reports whether the log, with what waits to be written, is larger than this
// part of its limit.
func (s *sizeLimiter) isAbove(part float64) bool {
	return float64(s.size.Load()+s.queued.Load()) > part*float64(s.retention.MaxBytes)
}

// admit implements Log.Admit.
func (s *sizeLimiter) admit(owner quota.Owner) error {
	if !s.keepsFacts() {
		return nil
	}
	usage, limit, share := s.usage, s.retention.MaxBytes, s.shareBytes()
	sum, most := usage.sumOf(owner)
	if share < limit && float64(sum) > laggingShare*float64(share) || sum == most && s.isAbove(laggingPart) {
		s.requestSizeCheck()
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
func (s *sizeLimiter) checkRoom(rec *Record) error {
	if s.retention.MaxBytes <= 0 || !s.isAbove(nearlyFullPart) {
		return nil
	}
	var reason string
	switch {
	case s.isFull():
		reason = "the rest is reserved for the removal of old records"
	case s.keepsFacts() && s.isHeaviest(ownerOf(rec)):
		reason = "the tenant with the most bytes waits until its old contents are removed"
	default:
		return nil
	}
	s.requestSizeCheck()
	return fmt.Errorf("%w: %s", store.ErrFull, reason)
}

// isFull reports whether only removals of old records may be written. If facts are kept,
// they need space for copies.
func (s *sizeLimiter) isFull() bool {
	if s.keepsFacts() {
		return s.isAbove(reservedPart)
	}
	return s.streamLimit > 0 && s.size.Load()+s.queued.Load() > s.streamLimit-s.streamLimit/announcedPart
}

// isHeaviest reports whether an owner has contents that can be evicted, and no other owner
// has more bytes.
func (s *sizeLimiter) isHeaviest(owner quota.Owner) bool {
	most := s.usage.heaviest()
	own, _ := s.usage.sumOf(owner)
	return most > 0 && own >= most
}

// shareBytes returns the part of the log that one owner may use.
func (s *sizeLimiter) shareBytes() int64 {
	if !(s.retention.Share > 0 && s.retention.Share < 1) {
		return s.retention.MaxBytes
	}
	return int64(s.retention.Share * float64(s.retention.MaxBytes))
}

// trimLimit returns the size from which records are trimmed before their retention, after
// contents were evicted. It is higher if there are contents, or facts are to be kept: then
// records are trimmed only to keep the log writable.
func (s *sizeLimiter) trimLimit() int64 {
	limit := s.retention.MaxBytes
	if s.usage.heaviest() > 0 || s.retention.KeepFacts {
		return partOf(limit, nearlyFullPart)
	}
	return limit
}

// evictLimit returns the size above which evictions are too slow, so that records are
// trimmed. If facts are kept, callers wait for evictions first: see checkRoom.
func (s *sizeLimiter) evictLimit() int64 {
	limit := s.retention.MaxBytes
	if s.retention.KeepFacts {
		return partOf(limit, reservedPart)
	}
	return partOf(limit, nearlyFullPart)
}

func partOf(limit int64, part float64) int64 { return int64(part * float64(limit)) }

// nearlyFullShare is the part of its share above which the facts of an owner cause a
// warning, because its requests are rejected when they use up the share.
const nearlyFullShare = 0.8

// warnOfFullShares logs the owners whose requests will be rejected soon.
func (s *sizeLimiter) warnOfFullShares(ctx context.Context) {
	if !s.keepsFacts() {
		return
	}
	limit := s.shareBytes()
	for owner, b := range s.usage.byOwner() {
		if float64(b.facts) > nearlyFullShare*float64(limit) {
			s.logger.WarnContext(ctx, "a tenant has nearly used up its share of the audit log; its requests are rejected then: "+
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
