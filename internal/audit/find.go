package audit

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/caprouter/caprouter/internal/store"
)

const (
	// requestLife is the longest a request may take, so how far its records can
	// lie behind its id.
	requestLife = 24 * time.Hour
	// clockSlack is how far the clocks of a record, of an id and of the log may
	// be apart.
	clockSlack = 5 * time.Minute
)

// RequestRecords is what the trail has on one request. Either may be nil: not every
// request is dispatched, and not every one has ended.
type RequestRecords struct{ Decision, Outcome *Record }

// Find reads the records of a request. store.ErrNotFound. For a request of the
// recent past it knows where they are; otherwise it searches from the time that
// the id says (UUIDv7) for as long as a request may take.
func (t *Log) Find(ctx context.Context, requestID string) (RequestRecords, error) {
	return t.FindWithin(ctx, requestID, requestLife)
}

// FindWithin is Find for a request that took no longer than life, as far as the
// caller knows: what lies further behind the id is found only where this process
// wrote it. What cannot be there is told without a search.
func (t *Log) FindWithin(ctx context.Context, requestID string, life time.Duration) (RequestRecords, error) {
	found, err := t.find(ctx, requestID, min(life, requestLife))
	if err != nil {
		return RequestRecords{}, fmt.Errorf("find request %.64q in the audit trail: %w", requestID, err)
	}
	return found, nil
}

func (t *Log) find(ctx context.Context, id string, life time.Duration) (RequestRecords, error) {
	written, all := t.written.knows(id)
	switch {
	case written:
		life = requestLife
	case all:
		return RequestRecords{}, store.ErrNotFound
	}
	var found RequestRecords
	known := t.index.get(id)
	for _, r := range []ref{known.decision, known.outcome} {
		if r == (ref{}) {
			continue
		}
		b, err := t.at(ctx, r)
		if err != nil {
			return RequestRecords{}, err
		}
		rec, err := t.load(ctx, b, int(r.pos-b.first))
		if err != nil {
			return RequestRecords{}, err
		}
		found.take(rec)
	}
	// What was dispatched has a decision: where the index knows the outcome alone
	// an earlier process wrote it.
	if found.Decision != nil || found.Outcome != nil && len(found.Outcome.Agents) == 0 {
		return found, nil
	}
	err := t.search(ctx, id, life, func(_ uint64, b *batch, i int) error {
		rec, err := t.load(ctx, b, i)
		if err == nil {
			found.take(rec)
		}
		return err
	})
	if found == (RequestRecords{}) && err == nil {
		err = store.ErrNotFound
	}
	if errors.Is(err, store.ErrNotFound) && found != (RequestRecords{}) {
		err = nil // an id without a time
	}
	return found, err
}

func (f *RequestRecords) take(rec *Record) {
	switch rec.Kind {
	case KindDecision:
		f.Decision = rec
	case KindOutcome:
		f.Outcome = rec
	}
}

// mostSearches is how many searches read the log at a time. Anybody may ask for
// what was never there, and whoever routes needs the log as well.
const mostSearches = 2

// search calls fn for every record of callers that a request has up to life behind
// its id.
func (t *Log) search(ctx context.Context, id string, life time.Duration, fn func(seq uint64, b *batch, i int) error) error {
	born, ok := timeOf(id)
	if !ok {
		return store.ErrNotFound
	}
	select {
	case t.searches <- struct{}{}:
		defer func() { <-t.searches }()
	case <-ctx.Done():
		return fmt.Errorf("%w: waiting for other searches: %w", store.ErrUnavailable, context.Cause(ctx))
	}
	from, to := born.Add(-clockSlack), born.Add(life+clockSlack)
	reached := func(b *batch) bool { return !b.newest().Before(from) }
	return t.walk(ctx, store.ReadFrom{Since: from}, reached, func(seq uint64, b *batch) error {
		for i := range b.entries {
			if !b.isOf(i, id) {
				continue
			}
			if err := fn(seq, b, i); err != nil {
				return err
			}
		}
		if b.newest().After(to) {
			return store.ErrStop
		}
		return nil
	})
}

// isOf reports whether entry i is a record of that request that callers
// appended. Facts are decoded only where the id occurs at all.
func (b *batch) isOf(i int, id string) bool {
	if !bytes.Contains(b.entries[i].facts, []byte(id)) {
		return false
	}
	rec, err := b.record(i)
	return err == nil && rec.RequestID == id && rec.Kind != KindAdmin
}

// timeOf reads the time out of a UUIDv7 (RFC 9562 §5.7).
func timeOf(id string) (time.Time, bool) {
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

// Unfinished returns the decisions without an outcome that the processes before
// this one left, oldest first: those since the trail was last closed in good
// order, at most of the last 24 hours.
func (t *Log) Unfinished(ctx context.Context) ([]Record, error) {
	u := unfinished{open: map[string]located{}}
	since := t.cfg.Now().Add(-requestLife - clockSlack)
	err := t.walk(ctx, store.ReadFrom{Since: since}, func(b *batch) bool { return !b.newest().Before(since) },
		func(_ uint64, b *batch) error {
			if b.first > t.opened {
				return store.ErrStop
			}
			return u.take(b)
		})
	var left []Record
	for _, id := range u.order {
		at, ok := u.open[id]
		if delete(u.open, id); !ok || err != nil {
			continue // ended, or recorded twice
		}
		var rec *Record
		if rec, err = t.load(ctx, at.batch, at.entry); err == nil {
			left = append(left, *rec)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("find unfinished requests in the audit trail: %w", err)
	}
	return left, nil
}

// unfinished are the decisions whose outcome has not been met yet.
type unfinished struct {
	open  map[string]located
	order []string
}

type located struct {
	batch *batch
	entry int
}

func (u *unfinished) take(b *batch) error {
	for i := range b.entries {
		rec, err := b.record(i)
		if err != nil {
			return err
		}
		switch {
		case rec.Event == EventStop:
			clear(u.open)
			u.order = u.order[:0]
		case rec.Kind == KindDecision:
			u.open[rec.RequestID] = located{b, i}
			u.order = append(u.order, rec.RequestID)
		case rec.Kind == KindOutcome:
			delete(u.open, rec.RequestID)
		}
	}
	return nil
}
