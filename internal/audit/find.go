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
	// maxRequestDuration bounds how long after the time in its id a request can have
	// records.
	maxRequestDuration = 24 * time.Hour
	// clockSlack bounds the differences between the clocks of a record, an id and
	// the stream.
	clockSlack = 5 * time.Minute
)

// RequestRecords are the records of one request. Each may be nil: not every request
// is dispatched, and not every one has ended. ToolCall is the last call of a tool, or the
// last event of an orchestration, if the request has neither a decision nor an outcome.
type RequestRecords struct{ Decision, Outcome, ToolCall *Record }

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
	indexed := true // everything that was written since the start
	if l.others != nil && l.index.lookUp(id).outcome == (recordRef{}) {
		if err := l.others.catchUp(ctx); err != nil {
			if ctx.Err() != nil {
				return RequestRecords{}, err
			}
			indexed = false
		}
	}
	written, all := l.known.lookUp(id)
	switch {
	case written:
		life = maxRequestDuration
	case all && indexed:
		return RequestRecords{}, store.ErrNotFound
	}
	found, err := l.findIndexed(ctx, id)
	if err != nil {
		return RequestRecords{}, err
	}
	// A dispatched request has a decision. If the index contains only its outcome,
	// an earlier process wrote the decision.
	if indexed && (found.Decision != nil || found.Outcome != nil && len(found.Outcome.Agents) == 0) {
		return found, nil
	}
	var decidedIn *storedChain
	err = l.searchRecords(ctx, id, life, func(c *storedChain, b *batch, i int) error {
		if facts, err := b.decodeRecord(i); err == nil && facts.isCall() && (found.Decision != nil || found.Outcome != nil) {
			return nil // its content may be large
		}
		rec, err := c.loadRecord(ctx, b, i)
		if err != nil {
			return err
		}
		if found.addRecord(rec); rec.Kind == KindDecision {
			decidedIn = c
		}
		return nil
	})
	if found.Outcome == nil && decidedIn != nil && found.Decision.Position <= decidedIn.trimmed.Load() {
		found.Decision = nil // the outcome was trimmed before the search had reached it
	}
	if found == (RequestRecords{}) && err == nil {
		err = store.ErrNotFound
	}
	if errors.Is(err, store.ErrNotFound) && found != (RequestRecords{}) {
		err = nil
	}
	return found, err
}

// findIndexed returns the records whose places are known.
func (l *Log) findIndexed(ctx context.Context, id string) (found RequestRecords, err error) {
	known := l.index.lookUp(id)
	refs := []recordRef{known.decision, known.outcome}
	if n := len(known.calls); n > 0 && refs[0] == (recordRef{}) && refs[1] == (recordRef{}) {
		refs = known.calls[n-1:]
	}
	for _, r := range refs {
		if r == (recordRef{}) {
			continue
		}
		b, err := r.chain.readBatch(ctx, r)
		if err != nil {
			return RequestRecords{}, err
		}
		rec, err := r.chain.loadRecord(ctx, b, int(r.pos-b.first))
		if err != nil {
			return RequestRecords{}, err
		}
		found.addRecord(rec)
	}
	return found, nil
}

func (f *RequestRecords) addRecord(rec *Record) {
	switch rec.Kind {
	case KindDecision:
		f.Decision, f.ToolCall = rec, nil
	case KindOutcome:
		f.Outcome, f.ToolCall = rec, nil
	case KindToolCall, KindRun:
		if f.Decision == nil && f.Outcome == nil {
			f.ToolCall = rec
		}
	}
}

// maxSearches bounds the concurrent searches, because any caller can ask for an
// unknown request, and routing needs the stream as well.
const maxSearches = 2

// searchRecords calls fn for every record of a request in every chain, except admin
// records, from the time in its id on.
func (l *Log) searchRecords(ctx context.Context, id string, life time.Duration, fn func(c *storedChain, b *batch, i int) error) error {
	born, ok := uuidTime(id)
	if !ok {
		return store.ErrNotFound
	}
	select {
	case l.searchSemaphore <- struct{}{}:
		defer func() { <-l.searchSemaphore }()
	case <-ctx.Done():
		return fmt.Errorf("%w: waiting for other searches: %w", store.ErrUnavailable, context.Cause(ctx))
	}
	from, to := born.Add(-clockSlack), born.Add(life+clockSlack)
	for _, c := range l.allChains() {
		if c != l.storedChain && !c.reaches(from) {
			continue
		}
		if err := c.search(ctx, id, from, to, fn); err != nil {
			return err
		}
	}
	return nil
}

// allChains returns the own chain and those of other replicas.
func (l *Log) allChains() []*storedChain {
	if l.others == nil {
		return []*storedChain{l.storedChain}
	}
	return append([]*storedChain{l.storedChain}, l.others.all()...)
}

// chainOf returns the chain of a writer.
func (l *Log) chainOf(ctx context.Context, writer string) (*storedChain, error) {
	if writer == l.writer || l.others == nil {
		return l.storedChain, nil
	}
	return l.others.chain(ctx, writer)
}

func (c *storedChain) search(ctx context.Context, id string, from, to time.Time, fn func(c *storedChain, b *batch, i int) error) error {
	for _, span := range c.clock.timeSpans(from, to) {
		start, err := span.findStart(ctx, c, from)
		if err != nil {
			return err
		}
		reached := func(b *batch) bool { return !b.newestTime().Before(from) }
		err = c.walkBatches(ctx, start, reached, func(_ uint64, b *batch) error {
			if span.afterBatch != 0 && b.number >= span.afterBatch {
				return store.ErrStop
			}
			for i := range b.entries {
				if !b.isRecordOf(i, id) {
					continue
				}
				if err := fn(c, b, i); err != nil {
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
