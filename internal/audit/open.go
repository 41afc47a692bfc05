package audit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/caprouter/caprouter/internal/store"
)

func earlierOf(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func laterOf(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func (p *chainEnd) newHead(writer string, now time.Time) chainHead {
	return chainHead{
		Writer: writer, Chain: fmt.Sprintf("%x", p.chain), Batch: p.number, Record: p.last,
		Hash: p.hash.String(), Seq: p.seq, At: now.UTC(),
	}
}

// resumeChain finds the end of the chain.
func (l *Log) resumeChain(ctx context.Context) (start chainStart, err error) {
	h, slot, how, err := readHead(l.cfg.HeadFile, l.cfg.Signer)
	if err != nil {
		return chainStart{}, err
	}
	var tail chainEnd
	var newest time.Time
	if l.others == nil {
		tail, newest, err = l.readTail(ctx)
	} else {
		tail, newest, err = l.readEnd(ctx, h.signedBatch())
		l.end.Store(new(tail))
	}
	if err != nil {
		return chainStart{}, err
	}
	l.newest.Store(&newest)
	if h != nil && how == headTrusted {
		l.clock.list.Store(&h.Steps)
	}
	at, notes, err := l.compareHead(ctx, tail, h, how)
	if err != nil {
		return chainStart{}, err
	}
	start.chainEnd = at
	notes = append(notes, l.damageRecords(ctx)...)
	notes = append(notes, Record{Kind: KindAdmin, Event: EventStart})
	for _, note := range notes {
		p, err := newPending(&note, &l.cfg)
		if err != nil {
			return chainStart{}, err
		}
		start.notes = append(start.notes, p)
	}
	if start.nextSlot = slot; how != headAbsent {
		start.nextSlot = (slot + 1) % slotCount
	}
	return start, nil
}

// signedBatch returns the number of the batch; 0 without a head.
func (h *chainHead) signedBatch() uint64 {
	if h == nil {
		return 0
	}
	return h.Batch
}

// readTail returns the last valid batch of the stream and its time, or zero values.
func (c *storedChain) readTail(ctx context.Context) (tail chainEnd, newest time.Time, err error) {
	m, err := c.stream.Last(ctx, c.subjects.chain)
	if errors.Is(err, store.ErrNotFound) {
		return chainEnd{}, newest, nil
	}
	if err != nil {
		return chainEnd{}, newest, err
	}
	b, ok := tryDecode(m)
	if !ok || b.firstInvalid() >= 0 || b.writer != c.writer {
		// The next batch is still expected behind this message. The chain continues
		// from the head.
		return chainEnd{seq: m.Seq}, newest, nil
	}
	return b.end(m.Seq), b.newestTime(), nil
}

// readEnd is readTail for a chain whose last batches another replica may have rewritten.
// signed is the number of the batch in its head; 0 = none.
func (c *storedChain) readEnd(ctx context.Context, signed uint64) (end chainEnd, newest time.Time, err error) {
	if end, newest, err = c.readTail(ctx); err != nil || end.number == 0 && end.seq != 0 {
		return end, newest, err
	}
	next := max(end.number+1, signed)
	for {
		b, err := c.readRewritten(ctx, next)
		switch {
		case err == nil && b.firstInvalid() < 0 && b.writer == c.writer:
			// The next batch is expected behind the last message of the subject.
			end, newest = b.end(end.seq), b.newestTime()
			next = end.number + 1
		case err != nil && !errors.Is(err, store.ErrNotFound):
			return end, newest, err
		case next > end.number+1:
			next = end.number + 1 // the end is before the head
		default:
			return end, newest, nil
		}
	}
}

// compareHead compares the end of the stream with the signed head. It returns where
// the chain continues, and records of what does not match. The chain never continues
// before a signed head, so that missing batches stay visible.
func (l *Log) compareHead(ctx context.Context, tail chainEnd, h *chainHead, how headStatus) (chainEnd, []Record, error) {
	if how == headAbsent || how == headInvalid || h.Writer != l.cfg.Writer {
		var notes []Record
		switch {
		case tail.seq != 0 || how != headAbsent:
			notes = l.mismatchRecord(ctx, "the signed head is missing or invalid")
		case l.cfg.Used:
			notes = l.mismatchRecord(ctx, "the data directory was used before, but there is neither a log nor a signed head")
		}
		if tail.number == 0 {
			rand.Read(tail.chain[:])
		}
		return tail, notes, nil
	}
	var notes []Record
	if how == headUnknownKey {
		notes = []Record{{Kind: KindAdmin, Event: EventRekey, Note: "the previous head was signed with another key"}}
	}
	signed, _ := h.signedEnd() // readHead has checked it
	next := signed             // the end where the chain continues if batches are missing
	next.seq = tail.seq
	trimmed, err := l.trimmedByOthers(ctx, tail, next)
	if err != nil {
		return chainEnd{}, nil, err
	}
	switch {
	case trimmed != nil:
		next.number, next.last = trimmed.Batch, trimmed.Record
		next.hash = hexDigest(trimmed.Hash)
		return next, notes, nil
	case tail.number < signed.number:
		note := fmt.Sprintf("the chain ends with batch %d, its head names batch %d", tail.number, signed.number)
		return next, append(notes, l.mismatchRecord(ctx, note)...), nil
	case tail.chain != signed.chain, tail.number == signed.number && tail.hash != signed.hash:
		note := "the last batch is not the one in the signed head"
		return next.continueBehind(tail), append(notes, l.mismatchRecord(ctx, note)...), nil
	}
	ok, stopped, err := l.isConnected(ctx, signed, tail)
	switch {
	case err != nil:
	case !ok:
		notes = append(notes, l.mismatchRecord(ctx, "the last batches do not connect to the signed head")...)
	case stopped:
		notes = append(notes, l.mismatchRecord(ctx, "the signed head is older than a clean stop, which signs the end")...)
	}
	return tail, notes, err
}

// trimmedByOthers returns the newest checkpoint of other replicas, if the chain is
// missing because they have trimmed it to its end, after this one was away for longer
// than the retention.
func (l *Log) trimmedByOthers(ctx context.Context, tail, signed chainEnd) (newest *ChainPosition, err error) {
	if l.others == nil || tail.number != 0 || tail.seq != 0 {
		return nil, nil
	}
	for _, c := range l.others.all() {
		err := c.walkBatches(ctx, store.ReadFrom{}, func(*batch) bool { return true }, func(_ uint64, b *batch) error {
			for i := range b.entries {
				rec, err := b.decodeRecord(i)
				if err != nil || rec.Event != EventCheckpoint || rec.Chain != l.writer || rec.UpTo == nil {
					continue
				}
				if rec.UpTo.Batch >= signed.number && (newest == nil || rec.UpTo.Batch > newest.Batch) {
					newest = rec.UpTo
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return newest, nil
}

// damageRecords returns records of the damage that the store removed from the files
// when it opened them. The damage may have been a batch, which is missing from now
// on, or a part of a content.
func (l *Log) damageRecords(ctx context.Context) []Record {
	var notes []Record
	for _, d := range l.cfg.Log.Damage() {
		notes = append(notes, l.mismatchRecord(ctx, fmt.Sprintf(
			"files were damaged: removed %[3]d unreadable bytes between the messages %[1]d and %[2]d", d.From, d.To, d.Bytes))...)
	}
	return notes
}

// mismatchRecord logs the note and returns its record for the chain.
func (l *Log) mismatchRecord(ctx context.Context, note string) []Record {
	l.cfg.Logger.ErrorContext(ctx, "the audit log does not match its head: run caprouter audit verify", "reason", note)
	return []Record{{Kind: KindAdmin, Event: EventMismatch, Note: note}}
}

// continueBehind returns the signed end with a number beyond the unexpected tail, so
// that both stay visible.
func (p chainEnd) continueBehind(tail chainEnd) chainEnd {
	if tail.number > p.number {
		p.number, p.last = tail.number, max(p.last, tail.last)
	}
	return p
}

// isConnected reports whether the chain leads from the head to the tail, over the
// few batches that were written after the head, and whether one of them is a clean
// stop.
func (c *storedChain) isConnected(ctx context.Context, from, to chainEnd) (ok, stopped bool, err error) {
	if from.number == to.number {
		return true, false, nil
	}
	next := from
	err = c.walkBatches(ctx, store.ReadFrom{Seq: from.seq + 1}, func(b *batch) bool { return b.number > from.number },
		func(_ uint64, b *batch) error {
			if b.chain != next.chain || b.number != next.number+1 || b.prev != next.hash || b.firstInvalid() >= 0 {
				return store.ErrStop
			}
			next.number, next.hash = b.number, b.lastHash()
			for i := range b.entries {
				rec, err := b.decodeRecord(i)
				stopped = stopped || err == nil && rec.Event == EventStop
			}
			return nil
		})
	return next.hash == to.hash, stopped, err
}

// chainStart is where a process continues a chain.
type chainStart struct {
	chainEnd
	notes    []*pendingRecord // they precede the records of the next batch
	nextSlot int64            // of the next head in the head file
}

// continueChain continues the chain at its end.
func (l *Log) continueChain(ctx context.Context, w *batchWriter) error {
	info, err := l.stream.Info(ctx)
	if err != nil {
		return err
	}
	l.limiter.size.Store(int64(info.Bytes))
	l.limiter.streamLimit = info.MaxBytes
	if l.others != nil {
		l.openedBehind = info.Last
		if err := l.others.open(ctx); err != nil {
			return err
		}
	}
	for attempt := 1; ; attempt++ {
		start, err := l.resumeChain(ctx)
		if err != nil {
			return err
		}
		// If the clock was set back, requests of earlier processes seem younger than this
		// one.
		since := laterOf(l.cfg.Now(), l.newestTime())
		for _, step := range l.clock.steps() {
			since = laterOf(since, step.From)
		}
		l.known = newKnownRequests(knownSize, since)
		at := start.chainEnd
		l.head.nextSlot = start.nextSlot
		l.openedAt = at.last
		l.end.Store(&at)
		*w = batchWriter{log: l, append: w.append, end: at, adminRecords: start.notes, starting: l.others != nil}
		if l.others != nil {
			err = l.continueSharedChain(ctx, w)
		} else if at.number == 0 {
			// A chain begins with its process, not with its first request, so that a data
			// directory that was used is never without one.
			err = w.commitBatch(ctx, nil)
		}
		w.starting = false
		switch {
		case err == nil:
			return nil
		case l.others != nil && w.failed != nil && attempt < maxBegins:
			continue // a replica that closed the chain of the earlier process was faster
		case l.others != nil:
			return err
		}
		l.cfg.Logger.WarnContext(ctx, "the audit log cannot be begun before the first request", "error", err)
		return nil
	}
}

// maxBegins bounds the attempts to continue a chain that another replica closes meanwhile.
const maxBegins = 5

// continueSharedChain writes the start record at once, so that no other process continues
// the chain, and stores its head.
func (l *Log) continueSharedChain(ctx context.Context, w *batchWriter) error {
	if err := w.commitBatch(ctx, nil); err != nil {
		return err
	}
	return l.publishHead(ctx)
}
