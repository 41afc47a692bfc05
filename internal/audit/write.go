package audit

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/caprouter/caprouter/internal/store"
)

const (
	queueSize = 1024
	// writeTimeout bounds one batch. A clustered store may stall for seconds
	// when it loses its leader; an embedded one answers in less than one.
	writeTimeout = 10 * time.Second
	// maxDoubts is how many batches that failed are remembered as ours, should
	// they turn up after all.
	maxDoubts = 64
)

// pending is a record that waits for the disk.
type pending struct {
	entry entry
	kind  Kind
	id    string
	done  chan error // holds one
}

// appendFunc is store.Log.Append.
type appendFunc func(ctx context.Context, subject string, data []byte, opts store.AppendOptions) (uint64, error)

// writer is the one goroutine that extends the chain.
type writer struct {
	trail   *Log
	append  appendFunc // the log's, but for tests that lose acknowledgements
	at      place
	held    *pending   // taken from the queue, and too much for the last batch
	preface []*pending // the trail's own records, which go before the next batch's
	sealed  bool       // this process has written a head
	unsure  bool       // what the log ends with is not known
	doubts  []digest   // batches behind at that may have been written
	failed  error      // there is another writer: nothing is written any more
}

// run writes batches until the trail is closed.
func (w *writer) run(ctx context.Context) error {
	defer close(w.trail.ended)
	for {
		select {
		case p := <-w.trail.queue:
			w.write(ctx, p)
		case <-w.trail.closing:
			w.finish(ctx)
			return nil
		case <-ctx.Done():
			return nil
		}
		for w.held != nil {
			w.write(ctx, w.held)
		}
	}
}

// finish writes what is still in the queue, and the mark of a good end.
func (w *writer) finish(ctx context.Context) {
	for {
		select {
		case p := <-w.trail.queue:
			w.write(ctx, p)
			for w.held != nil {
				w.write(ctx, w.held)
			}
			continue
		default:
		}
		break
	}
	stop, err := w.trail.pending(&Record{Kind: KindAdmin, Event: EventStop})
	if err == nil {
		w.write(ctx, stop)
		err = <-stop.done
	}
	if err != nil {
		w.trail.cfg.Logger.WarnContext(ctx, "the audit trail was not closed in good order", "error", err)
	}
}

// gather takes along what is waiting already. There is no timer: who is alone
// does not wait for company.
func (w *writer) gather(first *pending) []*pending {
	// Those the last batch has just let go come along, if they are quick. Who is
	// alone yields once, to nobody.
	for n := -1; n < len(w.trail.queue) && n < maxBatch; {
		n = len(w.trail.queue)
		runtime.Gosched()
	}
	list := []*pending{first}
	size := first.entry.inline()
	w.held = nil
	for len(list) < maxBatch {
		select {
		case p := <-w.trail.queue:
			if size += p.entry.inline(); size > maxBatchBytes {
				w.held = p
				return list
			}
			list = append(list, p)
		default:
			return list
		}
	}
	return list
}

// inline is what the entry will take in the batch's message.
func (e *entry) inline() int {
	if len(e.content.data) > maxInline {
		return len(e.facts) + 1024
	}
	return e.size()
}

// write writes one batch, which first begins, and tells everyone in it.
func (w *writer) write(ctx context.Context, first *pending) {
	list := w.gather(first)
	start := time.Now()
	err := w.failed
	if err == nil {
		err = w.commit(ctx, list)
	}
	w.trail.cfg.OnWrite(len(list), time.Since(start), err)
	for _, p := range list {
		p.done <- err
	}
}

// commit puts a batch on disk.
func (w *writer) commit(ctx context.Context, list []*pending) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if w.unsure {
		if err := w.resync(ctx); err != nil {
			return err
		}
	}
	for {
		list := append(slices.Clone(w.preface), list...)
		b := &batch{
			chain: w.at.chain, writer: w.trail.cfg.Writer,
			number: w.at.number + 1, first: w.at.last + 1, prev: w.at.hash,
			entries: make([]entry, len(list)),
		}
		for i, p := range list {
			b.entries[i] = p.entry
		}
		w.trail.written.add(list, w.trail.cfg.Now()) // first: one that fails may turn up after all
		before := w.at
		err := w.publish(ctx, b)
		if err == nil {
			w.preface = nil
			w.trail.index.add(b, w.at.seq, list)
			return nil
		}
		// Either a batch that was given up turned up behind at after all: it is a
		// part of the chain now, and this one follows it. Or the log lost its end,
		// which this one then has to tell.
		if w.failed != nil || w.unsure || w.at == before {
			return err
		}
	}
}

// publish writes the batch behind w.at. When it cannot tell whether it got
// through it looks at what the log ends with; so no record is written twice, and
// none is lost that somebody was told is there.
func (w *writer) publish(ctx context.Context, b *batch) error {
	if err := w.storeApart(ctx, b); err != nil {
		return err
	}
	b.seal()
	hash := b.hash()
	seq, err := w.append(ctx, w.trail.subjects.chain, b.encode(), store.AppendOptions{
		// The hash is in the id: a later batch with the same number must not be
		// taken for a second try of one that was given up.
		ID:         w.trail.cfg.Writer + ":" + strconv.FormatUint(b.number, 10) + ":" + hash.String()[:16],
		ExpectLast: &w.at.seq,
	})
	if err == nil {
		w.advance(b, seq)
		return nil
	}
	w.unsure = true
	w.doubts = append(w.doubts, hash)
	w.doubts = w.doubts[max(0, len(w.doubts)-maxDoubts):]
	if synced := w.resync(ctx); synced != nil {
		return errors.Join(err, synced)
	}
	if w.at.hash == hash {
		return nil
	}
	return err
}

// storeApart puts contents that are too long for the batch into messages of
// their own, which lie right before it.
func (w *writer) storeApart(ctx context.Context, b *batch) error {
	for i := range b.entries {
		c := &b.entries[i].content
		if c.state != contentHere || len(c.data) <= maxInline {
			continue
		}
		var parts []uint64
		for part := range slices.Chunk(c.data, maxPart) {
			seq, err := w.append(ctx, w.trail.subjects.content, part, store.AppendOptions{})
			if err != nil {
				return err
			}
			parts = append(parts, seq)
		}
		*c = content{state: contentApart, hash: c.hash, nonce: c.nonce, parts: parts}
	}
	return nil
}

// advance makes the batch the end of the chain.
func (w *writer) advance(b *batch, seq uint64) {
	w.at = place{chain: b.chain, number: b.number, last: b.last(), hash: b.hash(), seq: seq}
	w.unsure, w.doubts = false, nil
	at := w.at
	w.trail.now.Store(&at)
	if !w.sealed {
		// The first head is written before anybody is told of the first batch: a
		// chain without a head is one that somebody took it from.
		err := w.trail.sealHead()
		if w.sealed = err == nil; err != nil {
			w.trail.cfg.Logger.Error("the audit trail's head is behind", "error", err)
		}
		return
	}
	select {
	case w.trail.dirty <- struct{}{}:
	default:
	}
}

// resync finds out what the log ends with: what we know, less, one of our own
// batches whose acknowledgement never came, or the work of another writer.
func (w *writer) resync(ctx context.Context) error {
	m, err := w.trail.cfg.Log.Last(ctx, w.trail.subjects.chain)
	switch {
	case errors.Is(err, store.ErrNotFound):
		m.Seq = 0
	case err != nil:
		return err
	}
	if m.Seq == w.at.seq {
		w.unsure = false
		return nil
	}
	if m.Seq < w.at.seq {
		return w.fallBack(ctx, m.Seq)
	}
	b, err := open(m)
	if err == nil && slices.Contains(w.doubts, b.hash()) && b.prev == w.at.hash {
		w.advance(b, m.Seq)
		return nil
	}
	w.trail.written.giveUp()
	w.failed = fmt.Errorf("another process writes to it: message %d is not ours: %w", m.Seq, store.ErrConflict)
	w.trail.cfg.Logger.ErrorContext(ctx, "the audit trail has another writer, nothing is written any more",
		"writer", w.trail.cfg.Writer, "sequence", m.Seq, "ours", w.at.seq)
	return w.failed
}

// fallBack goes on after the engine has lost batches that it had acknowledged,
// as it may when it does not wait for the disk. The chain keeps its numbers, so
// that what is gone stays missing for everyone to see.
func (w *writer) fallBack(ctx context.Context, seq uint64) error {
	note := fmt.Sprintf("the log ends with message %d, and %d was written", seq, w.at.seq)
	w.trail.cfg.Logger.ErrorContext(ctx, "the audit trail has lost its end", "because", note)
	p, err := w.trail.pending(&Record{Kind: KindAdmin, Event: EventMismatch, Note: note})
	if err != nil {
		return err
	}
	w.preface = append(w.preface, p)
	w.at.seq, w.unsure = seq, false
	return nil
}
