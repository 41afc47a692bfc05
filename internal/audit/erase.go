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
	for _, b := range batches {
		for i := range b.entries {
			if s := b.entries[i].content.state; (s == contentInline || s == contentSeparate) && b.isRecordOf(i, id) {
				count++
			}
		}
	}
	if count > 0 {
		// Announce before removing, because a content that is missing without an
		// announcement counts as tampering. The new record also keeps the batches
		// below from being the last of the chain, which must not be rewritten.
		rec := Record{Kind: KindAdmin, Event: EventErase, RequestID: id, Note: by}
		if err := l.appendAdmin(ctx, &rec); err != nil {
			return 0, err
		}
	}
	for _, b := range batches {
		if err := l.rewriteBatch(ctx, b, func(i int) bool { return b.isRecordOf(i, id) }); err != nil {
			return 0, err
		}
	}
	return count, nil
}

// findBatches returns the batches with records of a request. If the index contains
// both records, there are no others.
func (l *Log) findBatches(ctx context.Context, id string) ([]*batch, error) {
	var batches []*batch
	add := func(b *batch) {
		if !slices.ContainsFunc(batches, func(have *batch) bool { return have.number == b.number }) {
			batches = append(batches, b)
		}
	}
	known := l.index.lookUp(id)
	for _, r := range []recordRef{known.decision, known.outcome} {
		if r == (recordRef{}) {
			continue
		}
		b, err := l.readBatch(ctx, r)
		if errors.Is(err, store.ErrNotFound) {
			continue // trimmed
		}
		if err != nil {
			return nil, err
		}
		add(b)
	}
	if known.decision != (recordRef{}) && known.outcome != (recordRef{}) {
		return batches, nil
	}
	err := l.searchRecords(ctx, id, maxRequestDuration, func(_ uint64, b *batch, _ int) error {
		add(b)
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
func (l *Log) rewriteBatch(ctx context.Context, b *batch, drop func(i int) bool) error {
	removed, parts := b.dropContents(drop)
	n := strconv.FormatUint(b.number, 10)
	newest, old := b.seq, parts
	if len(removed) > 0 {
		var err error
		if newest, err = b.appendRewritten(ctx, l, removed); err != nil {
			return err
		}
		old = append(old, b.seq)
	}
	for _, subject := range []string{l.subjects.withoutContents + n, l.subjects.rewritten + n} {
		err := l.cfg.Log.Read(ctx, store.ReadFrom{Subject: subject}, func(m store.Message) error {
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
		if err := l.cfg.Log.Delete(ctx, seq); err != nil {
			return err
		}
	}
	return nil
}

// dropContents removes the contents that drop selects from the batch. It returns what
// they used, and the messages with their parts.
func (b *batch) dropContents(drop func(i int) bool) (removed []recordUsage, parts []uint64) {
	for i := range b.entries {
		if s := b.entries[i].content.state; (s == contentInline || s == contentSeparate) && drop(i) {
			removed = append(removed, b.usageOfEntry(i))
			parts = append(parts, b.removeContent(i)...)
		}
	}
	return removed, parts
}

// appendRewritten writes the batch again, without the contents that were removed from it.
func (b *batch) appendRewritten(ctx context.Context, l *Log, removed []recordUsage) (seq uint64, err error) {
	subject := l.subjects.rewritten
	if !b.hasContent() {
		subject = l.subjects.withoutContents
	}
	data := b.encodeBatch()
	seq, err = l.cfg.Log.Append(ctx, subject+strconv.FormatUint(b.number, 10), data, store.AppendOptions{})
	if err == nil {
		l.size.Add(int64(len(data)) + messageOverhead) // until the original is purged
		for _, u := range removed {
			l.usage.dropContent(b.number, u)
		}
	}
	return seq, err
}
