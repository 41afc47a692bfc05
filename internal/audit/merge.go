package audit

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/caprouter/caprouter/internal/store"
)

// readMerged is Log.Read for a log with several chains. Batches are ordered by the sequence of
// their first message: the order in which they were written, whatever the clocks of the
// replicas say, and also if they were rewritten since.
func readMerged(ctx context.Context, l *Log, q Query) (Page, error) {
	own := l.end.Load() // before reading: records written meanwhile belong to the next page
	info, err := l.stream.Info(ctx)
	if err != nil {
		return Page{}, fmt.Errorf("read the audit log: %w", err)
	}
	r := pageReader{log: l, query: q, next: pageCursor{seq: info.Last + 1, pos: own.last + 1, writer: l.writer}}
	if q.Cursor != "" {
		c, err := parseCursor(q.Cursor)
		if err != nil {
			return Page{}, err
		}
		if c.seq > info.Last+1 {
			return Page{}, invalidCursor("is ahead of the log")
		}
		r.from, r.next = c, c
	}
	if err := l.others.catchUp(ctx); err != nil {
		return Page{}, fmt.Errorf("read the audit log: %w", err)
	}
	r.setLimits()
	if err := r.merge(ctx); err != nil {
		return Page{}, fmt.Errorf("read the audit log: %w", err)
	}
	return Page{Records: r.records, Next: r.next.String()}, nil
}

// mergedChains are chains that are read together.
type mergedChains []*mergedChain

// mergedChain is a chain that is being read.
type mergedChain struct {
	chain *storedChain
	first uint64 // see pageReader.first
	next  func() (*batch, error, bool)
	stop  func() // ends next
	head  *batch // the next batch; nil = no more
}

// add begins to read a chain. stop must be called.
func (l *mergedChains) add(m *mergedChain, batches iter.Seq2[*batch, error]) {
	m.next, m.stop = iter.Pull2(batches)
	*l = append(*l, m)
}

// stop ends reading.
func (l *mergedChains) stop() {
	for _, m := range *l {
		m.stop()
	}
}

// walk calls fn with each chain whose head precedes the heads of the others, until there are
// no more batches, or fn returns store.ErrStop.
func (l *mergedChains) walk(precedes func(a, b *batch) bool, fn func(*mergedChain) error) error {
	for _, m := range *l {
		if err := m.advance(); err != nil {
			return err
		}
	}
	for {
		var next *mergedChain
		for _, m := range *l {
			if m.head != nil && (next == nil || precedes(m.head, next.head)) {
				next = m
			}
		}
		if next == nil {
			return nil
		}
		err := fn(next)
		if err == nil {
			err = next.advance()
		}
		if errors.Is(err, store.ErrStop) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (m *mergedChain) advance() (err error) {
	var more bool
	if m.head, err, more = m.next(); !more {
		m.head = nil
	}
	return err
}

// merge adds the batches of all chains, oldest first.
func (r *pageReader) merge(ctx context.Context) error {
	var chains mergedChains
	defer func() {
		r.chain = nil
		chains.stop()
	}()
	for _, c := range r.log.allChains() {
		if r.from == (pageCursor{}) && !r.query.Since.IsZero() && !c.reaches(r.query.Since.Add(-clockSlack)) || r.hasRead(c) {
			continue
		}
		m := &mergedChain{chain: c}
		batches, err := r.batchesOf(ctx, m)
		if err != nil {
			return err
		}
		chains.add(m, batches)
	}
	return chains.walk(func(a, b *batch) bool { return a.origin < b.origin }, func(m *mergedChain) error {
		r.chain, r.first = m.chain, m.first
		return r.addBatch(ctx, m.head.origin, m.head)
	})
}

// hasRead reports whether all batches of a chain are before the cursor.
func (r *pageReader) hasRead(c *storedChain) bool {
	end := c.end.Load()
	return end.number == 0 || c.writer != r.from.writer && end.origin < r.from.seq
}

// batchesOf returns the batches of a chain from the cursor, or the time, on.
func (r *pageReader) batchesOf(ctx context.Context, m *mergedChain) (iter.Seq2[*batch, error], error) {
	c := m.chain
	from, reached := store.ReadFrom{}, func(*batch) bool { return true }
	switch {
	case r.from != (pageCursor{}):
		from = store.ReadFrom{Seq: max(r.from.seq, 1)}
		reached = func(b *batch) bool {
			if c.writer == r.from.writer {
				return b.lastPosition() >= r.from.pos
			}
			return b.origin >= r.from.seq
		}
	case !r.query.Since.IsZero():
		since := r.query.Since.Add(-clockSlack)
		reached = func(b *batch) bool { return !b.newestTime().Before(since) }
		var err error
		if from, err = c.clock.findSince(ctx, c, since); err != nil {
			return nil, err
		}
		if number, seq, found, known := r.log.usage.firstSince(c.writer, r.query.Since); known && found && seq != 0 {
			m.first, from = max(number, 1), store.ReadFrom{Seq: seq}
			reached = func(b *batch) bool { return b.number >= m.first }
		}
	}
	return func(yield func(*batch, error) bool) {
		origin := uint64(0)
		err := c.walkBatches(ctx, from, reached, func(seq uint64, b *batch) error {
			if b.origin == 0 { // rewritten by an earlier version, before there were other chains
				b.origin = origin
			}
			if origin = b.origin; !yield(b, nil) {
				return store.ErrStop
			}
			return nil
		})
		if err != nil {
			yield(nil, err)
		}
	}, nil
}
