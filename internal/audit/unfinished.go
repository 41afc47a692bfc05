package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/caprouter/caprouter/internal/store"
)

// Unfinished returns the decisions without an outcome that earlier processes with this
// writer left, oldest first, at most of the last 24 hours. The requests of a process that stopped
// cleanly have ended; those of the processes before it may still lack an outcome.
func (l *Log) Unfinished(ctx context.Context) ([]Record, error) {
	left, err := l.unfinishedIn(ctx, l.storedChain, l.openedAt)
	if err != nil {
		return nil, fmt.Errorf("find unfinished requests in the audit log: %w", err)
	}
	return left, nil
}

// unfinishedIn returns the decisions of a chain, up to a position, without an outcome in
// any chain.
func (l *Log) unfinishedIn(ctx context.Context, c *storedChain, upTo uint64) (left []Record, err error) {
	u := openDecisions{open: map[string]decisionEntry{}}
	since := l.cfg.Now().Add(-maxRequestDuration - clockSlack)
	err = c.walkBatches(ctx, store.ReadFrom{Since: since}, func(b *batch) bool { return !b.newestTime().Before(since) },
		func(_ uint64, b *batch) error {
			return u.addBatch(b, upTo)
		})
	if err != nil {
		return nil, err
	}
	for _, id := range u.sorted() {
		at := u.open[id]
		if l.others != nil {
			if found, err := l.findRecords(ctx, id, maxRequestDuration); err == nil && found.Outcome != nil {
				continue // in the chain of a replica that continued it
			} else if err != nil && !errors.Is(err, store.ErrNotFound) {
				return nil, err
			}
		}
		rec, err := c.loadRecord(ctx, at.batch, at.entry)
		if err != nil {
			return nil, err
		}
		left = append(left, *rec)
	}
	return left, nil
}

// openDecisions collects the decisions whose outcome was not read yet.
type openDecisions struct {
	open    map[string]decisionEntry // by id of the request
	started uint64                   // position of the last start record
}

type decisionEntry struct {
	batch *batch
	entry int
}

func (d decisionEntry) position() uint64 { return d.batch.first + uint64(d.entry) }

// addBatch adds the records of a batch. Of those behind a position, only outcomes and
// checkpoints count: a decision that was trimmed may lack its outcome because that was
// removed before, or before this walk had reached it.
func (u *openDecisions) addBatch(b *batch, upTo uint64) error {
	for i := range b.entries {
		rec, err := b.decodeRecord(i)
		if err != nil {
			return err
		}
		switch {
		case rec.Kind == KindOutcome:
			delete(u.open, rec.RequestID)
		case rec.Event == EventCheckpoint && rec.Chain == "" && rec.UpTo != nil:
			maps.DeleteFunc(u.open, func(_ string, at decisionEntry) bool { return at.position() <= rec.UpTo.Record })
		case rec.Position > upTo:
		case rec.Event == EventStart:
			u.started = rec.Position
		case rec.Event == EventStop:
			u.dropEnded()
		case rec.Kind == KindDecision:
			u.open[rec.RequestID] = decisionEntry{b, i}
		}
	}
	return nil
}

// dropEnded drops the decisions of the process that stopped cleanly.
func (u *openDecisions) dropEnded() {
	maps.DeleteFunc(u.open, func(_ string, at decisionEntry) bool { return at.position() > u.started })
}

// sorted returns the ids of the requests, oldest decision first.
func (u *openDecisions) sorted() []string {
	return slices.SortedFunc(maps.Keys(u.open), func(a, b string) int {
		return cmp.Compare(u.open[a].position(), u.open[b].position())
	})
}

// CloseChain records the ends of the requests that a replica which is gone left without
// one, and returns their number. For each such decision, end returns the outcome, or nil if
// the request has not ended, for example because its record can be continued.
//
// The outcomes are appended to the chain of that replica, behind its last record as it was
// read. Hence each request has exactly one: of several replicas that close a chain, one is
// faster, and so is the writer itself if it is not gone after all. The error is then
// store.ErrConflict; try again if the writer is still gone. From the first outcome on, a
// process that continues to write to the chain is fenced.
//
// CloseChain also signs the heads that only this writer has signed, because the others
// accept its key for a limited time. Hence it is to be called for every replica that
// ends, also after a clean stop.
func (l *Log) CloseChain(ctx context.Context, writer string, end func(ctx context.Context, decision *Record) (*Record, error)) (closed int, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("close chain %s of the audit log: %w", writer, err)
		}
	}()
	if l.others == nil || writer == l.writer || !validWriter.MatchString(writer) {
		return 0, errors.New("it is not the chain of another replica")
	}
	c, err := l.others.load(ctx, writer)
	if err != nil {
		return 0, err
	}
	at := *c.end.Load()
	if at.number > 0 {
		if closed, err = l.endDecisions(ctx, c, &at, end); closed > 0 {
			err = errors.Join(err, l.others.heads.publish(ctx, l.newHead(c, &at)))
		}
	}
	if err != nil {
		return closed, err
	}
	return closed, l.others.heads.countersign(ctx, writer)
}

// endDecisions appends the outcomes to the chain, and moves its end.
func (l *Log) endDecisions(
	ctx context.Context, c *storedChain, at *chainEnd, end func(ctx context.Context, decision *Record) (*Record, error),
) (closed int, err error) {
	decisions, err := l.unfinishedIn(ctx, c, math.MaxUint64)
	if err != nil {
		return 0, err
	}
	var next []batchEntry
	size := 0
	flush := func() error {
		if len(next) == 0 {
			return nil
		}
		note, err := newPending(&Record{Kind: KindAdmin, Event: EventClose, Note: l.writer}, &l.cfg)
		if err == nil {
			err = c.appendBatch(ctx, at, append([]batchEntry{note.entry}, next...))
		}
		if err == nil {
			closed += len(next)
		}
		next, size = nil, 0
		return err
	}
	for i := range decisions {
		rec, err := end(ctx, &decisions[i])
		if err != nil {
			return closed, err
		}
		if rec == nil {
			continue
		}
		p, err := newPending(rec, &l.cfg)
		if err != nil {
			return closed, err
		}
		if s := p.entry.inlineSize(); len(next) == maxBatch || size+s > maxBatchBytes {
			if err := flush(); err != nil {
				return closed, err
			}
		}
		next, size = append(next, p.entry), size+p.entry.inlineSize()
	}
	return closed, flush()
}

// appendBatch appends a batch to the chain of another replica, if its end is still the one
// that was read, and moves the end.
func (c *storedChain) appendBatch(ctx context.Context, at *chainEnd, entries []batchEntry) error {
	b := &batch{chain: at.chain, writer: c.writer, number: at.number + 1, first: at.last + 1, prev: at.hash, entries: entries}
	if err := b.storeSeparate(ctx, c.subjects.content, c.stream.Append); err != nil {
		return err
	}
	b.computeHashes()
	seq, err := c.stream.Append(ctx, c.subjects.chain, b.encodeBatch(), store.AppendOptions{
		ID:         c.writer + ":" + strconv.FormatUint(b.number, 10) + ":" + b.lastHash().String()[:16],
		ExpectLast: &at.seq,
	})
	if err == nil {
		*at = b.end(seq)
	}
	return err
}
