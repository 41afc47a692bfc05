package audit

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/caprouter/caprouter/internal/fairqueue"
	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/store"
)

const (
	queueSize = 1024 // records that wait to be written
	// writeTimeout bounds one batch. A cluster may stall for seconds after it lost
	// its leader.
	writeTimeout = 10 * time.Second
	// maxUnconfirmed bounds the remembered batches whose write failed, but may have
	// happened.
	maxUnconfirmed = 64
)

// pendingRecord is a queued record.
type pendingRecord struct {
	entry batchEntry
	at    time.Time
	kind  Kind
	id    string
	usage recordUsage
	done  func(error) // receives the result of the write; nil for a record that nobody waits for
	// delayed is set if the record may wait for others.
	delayed bool
}

// maxDelay is how long a delayed record waits at most for one that is not.
const maxDelay = 2 * time.Millisecond

// recordQueue contains the records that wait to be written.
type recordQueue = fairqueue.BatchQueue[quota.Owner, *pendingRecord]

// takeBatch removes the records of the next batch from the queue.
func takeBatch(q *recordQueue) []*pendingRecord {
	size := 0
	return q.Take(func(list []*pendingRecord) bool {
		if len(list) > 0 {
			size += list[len(list)-1].entry.inlineSize()
		}
		return len(list) < maxBatch && size < batchTarget
	})
}

// appendFunc is store.Log.Append, or a substitute of a test.
type appendFunc func(ctx context.Context, subject string, data []byte, opts store.AppendOptions) (uint64, error)

// batchWriter extends the chain. One goroutine owns it.
type batchWriter struct {
	log          *Log
	append       appendFunc // tests replace it to lose acknowledgements
	end          chainEnd
	adminRecords []*pendingRecord // precede the records of the next batch
	headWritten  bool
	lastSize     int             // records of the last batch
	outOfSync    bool            // the end of the stream is not known
	unconfirmed  []digest        // batches behind end that may have been written
	indexed      []indexedRecord // of the batch that is written
	starting     bool            // the log is being opened: another process may still have written before
	failed       error           // another process wrote to the chain: write nothing more
}

// run writes batches until the log is closed.
func (w *batchWriter) run(ctx context.Context) error {
	defer func() {
		close(w.log.ended)
		w.log.queue.Close()
		for { // stopped early: let callers that wait for their records, or for space, see it
			list := takeBatch(w.log.queue)
			if len(list) == 0 {
				return
			}
			for _, p := range list {
				p.done(ErrClosed)
			}
		}
	}()
	delay := time.NewTimer(maxDelay)
	delay.Stop()
	defer delay.Stop()
	for {
		if w.log.queue.StartDelay() {
			delay.Reset(maxDelay)
		}
		select {
		case <-w.log.queue.Filled():
			w.writeQueue(ctx)
		case <-delay.C:
			w.log.queue.EndDelay()
			w.writeQueue(ctx)
		case <-w.log.closing:
			w.writeQueue(ctx)
			w.writeStop(ctx)
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// writeQueue writes all queued records.
func (w *batchWriter) writeQueue(ctx context.Context) {
	for {
		// Callers that the last batch has just released may append again at once: yield as
		// long as that fills the queue, but only up to the size of the last batch, because
		// each time may take long if other goroutines use the CPUs. There is no timer, so
		// that a single caller does not wait.
		for before, n := 0, w.log.queue.Len(); before < n && n < max(2, w.lastSize); n = w.log.queue.Len() {
			before = n
			runtime.Gosched()
		}
		list := takeBatch(w.log.queue)
		if w.lastSize = len(list); len(list) == 0 {
			return
		}
		w.writeBatch(ctx, list)
	}
}

// writeStop writes the stop record.
func (w *batchWriter) writeStop(ctx context.Context) {
	stop, err := newPending(&Record{Kind: KindAdmin, Event: EventStop}, &w.log.cfg)
	if err == nil {
		stop.done = func(written error) { err = written }
		w.writeBatch(ctx, []*pendingRecord{stop})
	}
	if err != nil {
		w.log.cfg.Logger.WarnContext(ctx, "the audit log was not closed cleanly", "error", err)
	}
}

// inlineSize returns the size of the entry in the message of the batch.
func (e *batchEntry) inlineSize() int {
	if len(e.content.data) > maxInline {
		return len(e.facts) + 1024
	}
	return e.encodedSize()
}

// writeBatch writes one batch, and reports the result to its callers.
func (w *batchWriter) writeBatch(ctx context.Context, list []*pendingRecord) {
	result := ErrClosed // if the write panics
	defer func() {
		for _, p := range list {
			p.done(result)
		}
	}()
	start := time.Now()
	err := w.failed
	if err == nil {
		err = w.commitBatch(ctx, list)
	}
	w.log.cfg.OnWrite(len(list), time.Since(start), err)
	result = err
}

// commitBatch writes a batch durably.
func (w *batchWriter) commitBatch(ctx context.Context, list []*pendingRecord) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if w.outOfSync {
		if err := w.resyncEnd(ctx); err != nil {
			return err
		}
	}
	for {
		list := append(slices.Clone(w.adminRecords), list...)
		b := &batch{
			chain: w.end.chain, writer: w.log.cfg.Writer,
			number: w.end.number + 1, first: w.end.last + 1, prev: w.end.hash,
			entries: make([]batchEntry, len(list)),
		}
		for i, p := range list {
			b.entries[i] = p.entry
		}
		w.indexRecords(b.first, list)
		w.log.known.addRecords(w.indexed, w.log.cfg.Now()) // first, because a failed batch may have been written
		before := w.end
		err := w.appendBatch(ctx, b)
		if err == nil {
			w.adminRecords = nil
			w.log.noteTimes(w.end.seq, w.end.number, w.indexed)
			w.log.index.addBatch(w.log.storedChain, b, w.end.seq, w.indexed)
			usage := make([]recordUsage, len(list))
			for i, p := range list {
				usage[i] = p.usage
			}
			w.log.usage.add(w.log.writer, b.number, w.end.seq, usage)
			return nil
		}
		// Either an earlier failed batch was written after all: it is part of the
		// chain now, and this batch follows it. Or the engine lost the end of the
		// stream, which this batch then records.
		if w.failed != nil || w.outOfSync || w.end == before {
			return err
		}
	}
}

// indexRecords sets what the indexes need of the records of the next batch.
func (w *batchWriter) indexRecords(first uint64, list []*pendingRecord) {
	w.indexed = w.indexed[:0]
	for i, p := range list {
		w.indexed = append(w.indexed, indexedRecord{id: p.id, kind: p.kind, pos: first + uint64(i), at: p.at})
	}
}

// appendBatch writes the batch behind w.end. After an error it reads the end of the
// stream, so that no record is written twice and no acknowledged record is lost.
func (w *batchWriter) appendBatch(ctx context.Context, b *batch) error {
	if err := b.storeSeparate(ctx, w.log.subjects.content, w.append); err != nil {
		return err
	}
	b.computeHashes()
	hash := b.lastHash()
	seq, err := w.append(ctx, w.log.subjects.chain, b.encodeBatch(), store.AppendOptions{
		// The id contains the hash, so that a later batch with the same number is
		// not taken for a retry of a failed one.
		ID:         w.log.cfg.Writer + ":" + strconv.FormatUint(b.number, 10) + ":" + hash.String()[:16],
		ExpectLast: &w.end.seq,
	})
	if err == nil {
		w.moveEnd(b, seq)
		return nil
	}
	w.outOfSync = true
	w.unconfirmed = append(w.unconfirmed, hash)
	w.unconfirmed = w.unconfirmed[max(0, len(w.unconfirmed)-maxUnconfirmed):]
	if synced := w.resyncEnd(ctx); synced != nil {
		return errors.Join(err, synced)
	}
	if w.end.hash == hash {
		return nil
	}
	return err
}

// storeSeparate writes contents that are too large for the batch as separate
// messages before it.
func (b *batch) storeSeparate(ctx context.Context, subject string, write appendFunc) error {
	for i := range b.entries {
		c := &b.entries[i].content
		if c.state != contentInline || len(c.data) <= maxInline {
			continue
		}
		var parts []uint64
		for part := range slices.Chunk(c.data, maxPart) {
			seq, err := write(ctx, subject, part, store.AppendOptions{})
			if err != nil {
				return err
			}
			parts = append(parts, seq)
		}
		*c = entryContent{state: contentSeparate, hash: c.hash, nonce: c.nonce, parts: parts}
	}
	return nil
}

// moveEnd makes the batch the end of the chain.
func (w *batchWriter) moveEnd(b *batch, seq uint64) {
	w.end = b.end(seq)
	w.outOfSync, w.unconfirmed = false, nil
	at := w.end
	w.log.end.Store(&at)
	if !w.headWritten {
		// Write the first head before the first batch is acknowledged: a chain
		// without a head looks as if the head had been removed.
		err := w.log.writeHead()
		if w.headWritten = err == nil; err != nil {
			w.log.cfg.Logger.Error("write the head of the audit log", "error", err)
		}
		return
	}
	select {
	case w.log.headOutdated <- struct{}{}:
	default:
	}
}

// resyncEnd reads the end of the stream: it is the known one, an earlier one, one of
// our own unacknowledged batches, or a message of another writer.
func (w *batchWriter) resyncEnd(ctx context.Context) error {
	m, err := w.log.cfg.Log.Last(ctx, w.log.subjects.chain)
	switch {
	case errors.Is(err, store.ErrNotFound):
		m.Seq = 0
	case err != nil:
		return err
	}
	if m.Seq == w.end.seq {
		w.outOfSync = false
		return nil
	}
	if m.Seq < w.end.seq {
		if found, err := w.findRewrittenEnd(ctx, m.Seq); found || err != nil {
			return err
		}
		return w.continueAfterLoss(ctx, m.Seq)
	}
	b, err := decodeMessage(m)
	if err == nil && slices.Contains(w.unconfirmed, b.lastHash()) && b.prev == w.end.hash {
		w.moveEnd(b, m.Seq)
		return nil
	}
	w.failed = fmt.Errorf("another process writes to the audit log%s: message %d is not ours: %w", closedBy(b), m.Seq, store.ErrConflict)
	if w.starting {
		return w.failed
	}
	w.log.known.disable()
	w.log.cfg.Logger.ErrorContext(ctx, "the audit log has another writer: stop writing",
		"writer", w.log.cfg.Writer, "sequence", m.Seq, "ours", w.end.seq)
	close(w.log.fenced)
	return w.failed
}

// findRewrittenEnd reports whether the last batch is stored as a rewritten one, because
// another replica has erased a content of it. Its message was removed, and the next batch
// follows the one before.
func (w *batchWriter) findRewrittenEnd(ctx context.Context, seq uint64) (bool, error) {
	if w.log.others == nil {
		return false, nil
	}
	b, err := w.log.readRewritten(ctx, w.end.number)
	if errors.Is(err, store.ErrNotFound) || err == nil && b.lastHash() != w.end.hash {
		return false, nil
	}
	if err == nil {
		w.end.seq, w.outOfSync = seq, false
		w.log.end.Store(new(w.end))
	}
	return err == nil, err
}

// closedBy names the replica that has closed the chain with this batch; nil = unreadable.
func closedBy(b *batch) string {
	if b == nil {
		return ""
	}
	rec, err := b.decodeRecord(0)
	if err != nil || rec.Event != EventClose {
		return ""
	}
	return fmt.Sprintf(" (replica %s took this one for gone and closed its chain)", rec.Note)
}

// continueAfterLoss continues after the engine lost acknowledged batches, which can
// happen if it does not sync every write. The chain keeps its numbers, so that the
// loss stays visible.
func (w *batchWriter) continueAfterLoss(ctx context.Context, seq uint64) error {
	note := fmt.Sprintf("the stream ends with message %d, but message %d was acknowledged", seq, w.end.seq)
	w.log.cfg.Logger.ErrorContext(ctx, "the audit log has lost its end", "reason", note)
	p, err := newPending(&Record{Kind: KindAdmin, Event: EventMismatch, Note: note}, &w.log.cfg)
	if err != nil {
		return err
	}
	w.adminRecords = append(w.adminRecords, p)
	w.end.seq, w.outOfSync = seq, false
	return nil
}
