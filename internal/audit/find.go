package audit

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/caprouter/caprouter/internal/store"
)

const (
	// maxRequestDuration bounds how long after the time in its id a request can have
	// records.
	maxRequestDuration = 24 * time.Hour
	// clockSlack bounds the differences between the clocks of a record, an id and
	// the stream.
	clockSlack = 5 * time.Minute
)

// RequestRecords are the records of one request. Each may be nil: not every request
// is dispatched, and not every one has ended.
type RequestRecords struct{ Decision, Outcome *Record }

// Find returns the records of a request, or store.ErrNotFound. The places of recent
// records are known. For older ones it searches from the time in the id (UUIDv7) for
// the maximum duration of a request.
func (l *Log) Find(ctx context.Context, requestID string) (RequestRecords, error) {
	return l.FindWithin(ctx, requestID, maxRequestDuration)
}

// FindWithin is Find for a request that took at most this long. Later records are
// found only if this process wrote them.
func (l *Log) FindWithin(ctx context.Context, requestID string, life time.Duration) (RequestRecords, error) {
	found, err := l.findRecords(ctx, requestID, min(life, maxRequestDuration))
	if err != nil {
		return RequestRecords{}, fmt.Errorf("find request %.64q in the audit log: %w", requestID, err)
	}
	return found, nil
}

func (l *Log) findRecords(ctx context.Context, id string, life time.Duration) (RequestRecords, error) {
	written, all := l.known.lookUp(id)
	switch {
	case written:
		life = maxRequestDuration
	case all:
		return RequestRecords{}, store.ErrNotFound
	}
	var found RequestRecords
	known := l.index.lookUp(id)
	for _, r := range []recordRef{known.decision, known.outcome} {
		if r == (recordRef{}) {
			continue
		}
		b, err := l.readBatch(ctx, r)
		if err != nil {
			return RequestRecords{}, err
		}
		rec, err := l.loadRecord(ctx, b, int(r.pos-b.first))
		if err != nil {
			return RequestRecords{}, err
		}
		found.addRecord(rec)
	}
	// A dispatched request has a decision. If the index contains only its outcome,
	// an earlier process wrote the decision.
	if found.Decision != nil || found.Outcome != nil && len(found.Outcome.Agents) == 0 {
		return found, nil
	}
	err := l.searchRecords(ctx, id, life, func(_ uint64, b *batch, i int) error {
		rec, err := l.loadRecord(ctx, b, i)
		if err == nil {
			found.addRecord(rec)
		}
		return err
	})
	if found == (RequestRecords{}) && err == nil {
		err = store.ErrNotFound
	}
	if errors.Is(err, store.ErrNotFound) && found != (RequestRecords{}) {
		err = nil
	}
	return found, err
}

func (f *RequestRecords) addRecord(rec *Record) {
	switch rec.Kind {
	case KindDecision:
		f.Decision = rec
	case KindOutcome:
		f.Outcome = rec
	}
}

// maxSearches bounds the concurrent searches, because any caller can ask for an
// unknown request, and routing needs the stream as well.
const maxSearches = 2

// searchRecords calls fn for every record of a request, except admin records, from
// the time in its id on.
func (l *Log) searchRecords(ctx context.Context, id string, life time.Duration, fn func(seq uint64, b *batch, i int) error) error {
	born, ok := uuidTime(id)
	if !ok {
		return store.ErrNotFound
	}
	select {
	case l.searchSlots <- struct{}{}:
		defer func() { <-l.searchSlots }()
	case <-ctx.Done():
		return fmt.Errorf("%w: waiting for other searches: %w", store.ErrUnavailable, context.Cause(ctx))
	}
	from, to := born.Add(-clockSlack), born.Add(life+clockSlack)
	for _, span := range l.clock.timeSpans(from, to) {
		start, err := span.findStart(ctx, l, from)
		if err != nil {
			return err
		}
		reached := func(b *batch) bool { return !b.newestTime().Before(from) }
		err = l.walkBatches(ctx, start, reached, func(seq uint64, b *batch) error {
			if span.afterBatch != 0 && b.number >= span.afterBatch {
				return store.ErrStop
			}
			for i := range b.entries {
				if !b.isRecordOf(i, id) {
					continue
				}
				if err := fn(seq, b, i); err != nil {
					return err
				}
			}
			if b.newestTime().After(to) {
				return store.ErrStop
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// isRecordOf reports whether entry i is a record of the request, and not an admin
// record. It decodes the facts only if they contain the id.
func (b *batch) isRecordOf(i int, id string) bool {
	if !bytes.Contains(b.entries[i].facts, []byte(id)) {
		return false
	}
	rec, err := b.decodeRecord(i)
	return err == nil && rec.RequestID == id && rec.Kind != KindAdmin
}

// uuidTime returns the time in a UUIDv7 (RFC 9562 §5.7).
func uuidTime(id string) (time.Time, bool) {
	digits := strings.ReplaceAll(id, "-", "")
	raw, err := hex.DecodeString(digits)
	if err != nil || len(raw) != 16 || len(id) != 36 || raw[6]>>4 != 7 {
		return time.Time{}, false
	}
	var ms int64
	for _, b := range raw[:6] {
		ms = ms<<8 | int64(b)
	}
	return time.UnixMilli(ms), true
}

// Unfinished returns the decisions without an outcome that earlier processes left,
// oldest first, at most of the last 24 hours. The requests of a process that stopped
// cleanly have ended; those of the processes before it may still lack an outcome.
func (l *Log) Unfinished(ctx context.Context) ([]Record, error) {
	u := openDecisions{open: map[string]decisionEntry{}}
	since := l.cfg.Now().Add(-maxRequestDuration - clockSlack)
	err := l.walkBatches(ctx, store.ReadFrom{Since: since}, func(b *batch) bool { return !b.newestTime().Before(since) },
		func(_ uint64, b *batch) error {
			if b.first > l.openedAt {
				return store.ErrStop
			}
			return u.addBatch(b)
		})
	var left []Record
	for _, id := range u.order {
		at, ok := u.open[id]
		if delete(u.open, id); !ok || err != nil {
			continue // it has an outcome, or is a duplicate
		}
		var rec *Record
		if rec, err = l.loadRecord(ctx, at.batch, at.entry); err == nil {
			left = append(left, *rec)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("find unfinished requests in the audit log: %w", err)
	}
	return left, nil
}

// openDecisions collects the decisions whose outcome was not read yet.
type openDecisions struct {
	open    map[string]decisionEntry
	order   []string
	started uint64 // position of the last start record
}

type decisionEntry struct {
	batch *batch
	entry int
}

func (u *openDecisions) addBatch(b *batch) error {
	for i := range b.entries {
		rec, err := b.decodeRecord(i)
		if err != nil {
			return err
		}
		switch {
		case rec.Event == EventStart:
			u.started = rec.Position
		case rec.Event == EventStop:
			u.dropEnded()
		case rec.Kind == KindDecision:
			u.open[rec.RequestID] = decisionEntry{b, i}
			u.order = append(u.order, rec.RequestID)
		case rec.Kind == KindOutcome:
			delete(u.open, rec.RequestID)
		}
	}
	return nil
}

// dropEnded drops the decisions of the process that stopped cleanly.
func (u *openDecisions) dropEnded() {
	maps.DeleteFunc(u.open, func(_ string, at decisionEntry) bool { return at.batch.first+uint64(at.entry) > u.started })
	u.order = slices.DeleteFunc(u.order, func(id string) bool {
		_, ok := u.open[id]
		return !ok
	})
}

// loadRecord returns a record with its content and answer.
func (l *Log) loadRecord(ctx context.Context, b *batch, i int) (*Record, error) {
	rec, err := b.decodeRecord(i)
	if err == nil {
		err = l.loadContent(ctx, b, i, rec, true)
	}
	return rec, err
}

// loadContent sets the content of a record, wherever that is stored. A content that
// disappears meanwhile was erased.
func (l *Log) loadContent(ctx context.Context, b *batch, i int, rec *Record, withAnswer bool) (err error) {
	c := &b.entries[i].content
	data := c.data
	switch c.state {
	case contentSeparate:
		if data, err = joinParts(ctx, l.cfg.Log, c); errors.Is(err, store.ErrNotFound) {
			rec.Erased = true
			return nil
		}
	case contentNone, contentRemoved:
		return nil
	}
	if err != nil {
		return err
	}
	return openContent(rec, data, l.cfg.Keys, withAnswer)
}

func joinParts(ctx context.Context, log *store.Log, c *entryContent) ([]byte, error) {
	var data []byte
	for _, seq := range c.parts {
		m, err := log.Get(ctx, seq)
		if err != nil {
			return nil, err
		}
		data = append(data, m.Data...)
	}
	return data, nil
}
