package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/caprouter/caprouter/internal/store"
)

// Erase removes the contents of a request's records, overwrites their bytes, and
// returns their number. Facts and chain stay, and an admin record names the request,
// the time and the person. It can be repeated, and completes an interrupted erasure.
func (l *Log) Erase(ctx context.Context, requestID, by string) (int, error) {
	l.rewriteMu.Lock()
	defer l.rewriteMu.Unlock()
	n, err := l.eraseContents(ctx, requestID, by)
	if err != nil {
		return n, fmt.Errorf("erase request %.64q from the audit log: %w", requestID, err)
	}
	return n, nil
}

func (l *Log) eraseContents(ctx context.Context, id, by string) (int, error) {
	batches, err := l.findBatches(ctx, id)
	if err != nil {
		return 0, err
	}
	count := 0
	for _, found := range batches {
		b := found.batch
		for i := range b.entries {
			if b.entries[i].content.isStored() && b.isRecordOf(i, id) {
				count++
			}
		}
	}
	if count > 0 {
		// Announce before removing, because a content that is missing without an
		// announcement counts as tampering. The new record also keeps the batches
		// below from being the last of the chain, which must not be rewritten.
		rec := Record{Kind: KindAdmin, Event: EventErase, RequestID: id, Note: by}
		if err := l.announce(ctx, &rec); err != nil {
			return 0, err
		}
	}
	for _, found := range batches {
		b := found.batch
		if err := l.rewriteBatch(ctx, found.chain, b, func(i int) bool { return b.isRecordOf(i, id) }); err != nil {
			return 0, err
		}
	}
	return count, nil
}

// announce records a removal before it begins. If other replicas share the store, it also
// stores a head that covers the record, because Verify accepts announcements about other
// chains only from the signed part of a chain.
func (l *Log) announce(ctx context.Context, rec *Record) error {
	if rec.Chain == l.writer {
		rec.Chain = ""
	}
	if err := l.appendAdmin(ctx, rec); err != nil || l.others == nil {
		return err
	}
	return l.publishHead(ctx)
}

// chainBatch is a batch of a chain.
type chainBatch struct {
	chain *storedChain
	batch *batch
}

// findBatches returns the batches with records of a request. If the index contains
// decision and outcome, it contains all records.
func (l *Log) findBatches(ctx context.Context, id string) ([]chainBatch, error) {
	var batches []chainBatch
	add := func(c *storedChain, b *batch) {
		if !slices.ContainsFunc(batches, func(have chainBatch) bool { return have.chain == c && have.batch.number == b.number }) {
			batches = append(batches, chainBatch{c, b})
		}
	}
	if l.others != nil {
		if err := l.others.catchUp(ctx); err != nil {
			return nil, err
		}
	}
	known := l.index.lookUp(id)
	for _, r := range append([]recordRef{known.decision, known.outcome}, known.calls...) {
		if r == (recordRef{}) {
			continue
		}
		b, err := r.chain.readBatch(ctx, r)
		if errors.Is(err, store.ErrNotFound) {
			continue // trimmed
		}
		if err != nil {
			return nil, err
		}
		add(r.chain, b)
	}
	if known.decision != (recordRef{}) && known.outcome != (recordRef{}) {
		return batches, nil
	}
	err := l.searchRecords(ctx, id, maxRequestDuration, func(c *storedChain, b *batch, _ int) error {
		add(c, b)
		return nil
	})
	if errors.Is(err, store.ErrNotFound) {
		err = nil // an id without a time belongs to no request
	}
	return batches, err
}

// rewriteBatch writes a batch again without the contents that drop selects, and then
// erases the messages that held them: older copies of the batch, and parts. Entries
// and hashes stay the same.
func (l *Log) rewriteBatch(ctx context.Context, c *storedChain, b *batch, drop func(i int) bool) error {
	var old []uint64
	var newest uint64
	for {
		removed, parts := b.dropContents(drop)
		old = append(old, parts...)
		if newest = b.seq; len(removed) == 0 {
			break
		}
		seq, err := l.appendRewritten(ctx, c, b, removed)
		old = append(old, b.seq)
		if err == nil {
			newest = seq
			break
		}
		if l.others == nil || !errors.Is(err, store.ErrConflict) {
			return err
		}
		// Another replica has rewritten it, too: continue with its copy.
		if b, err = c.readRewritten(ctx, b.number); errors.Is(err, store.ErrNotFound) {
			return nil // trimmed
		}
		if err != nil {
			return err
		}
	}
	n := strconv.FormatUint(b.number, 10)
	for _, subject := range []string{c.subjects.withoutContents + n, c.subjects.rewritten + n} {
		err := c.stream.Read(ctx, store.ReadFrom{Subject: subject}, func(m store.Message) error {
			if m.Seq < newest {
				old = append(old, m.Seq)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, seq := range old {
		if seq == newest {
			continue
		}
		if err := c.stream.Delete(ctx, seq); err != nil {
			return err
		}
	}
	return nil
}

// dropContents removes the contents that drop selects from the batch. It returns what
// they used, and the messages with their parts.
func (b *batch) dropContents(drop func(i int) bool) (removed []recordUsage, parts []uint64) {
	for i := range b.entries {
		if b.entries[i].content.isStored() && drop(i) {
			removed = append(removed, b.usageOfEntry(i))
			parts = append(parts, b.removeContent(i)...)
		}
	}
	return removed, parts
}

// appendRewritten writes a batch again, without the contents that were removed from it. It
// returns store.ErrConflict if another replica was faster.
func (l *Log) appendRewritten(ctx context.Context, c *storedChain, b *batch, removed []recordUsage) (seq uint64, err error) {
	subject := c.subjects.rewritten
	if !b.hasContent() {
		subject = c.subjects.withoutContents
	}
	n := strconv.FormatUint(b.number, 10)
	opts := store.AppendOptions{Origin: b.origin}
	if l.others != nil {
		opts.ExpectFor, opts.ExpectLast = c.subjects.chain+".*."+n, new(uint64(0))
		if b.rewritten {
			opts.ExpectLast = &b.seq
		}
	}
	data := b.encodeBatch()
	seq, err = c.stream.Append(ctx, subject+n, data, opts)
	if err == nil {
		l.size.Add(int64(len(data)) + messageOverhead) // until the original is purged
		for _, u := range removed {
			l.usage.dropContent(c.writer, b.number, u)
		}
	}
	return seq, err
}
