package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/caprouter/caprouter/internal/store"
)

// Erase removes the contents of a request's records, the bytes too, and returns
// how many. The facts stay and the chain stays whole; a record of its own says
// that, when and by whom it was done. It may be repeated, and finishes what one
// that was interrupted began.
func (t *Log) Erase(ctx context.Context, requestID, by string) (int, error) {
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	n, err := t.erase(ctx, requestID, by)
	if err != nil {
		return n, fmt.Errorf("erase request %.64q from the audit trail: %w", requestID, err)
	}
	return n, nil
}

func (t *Log) erase(ctx context.Context, id, by string) (int, error) {
	batches, err := t.holding(ctx, id)
	if err != nil {
		return 0, err
	}
	count := 0
	for _, b := range batches {
		for i := range b.entries {
			if s := b.entries[i].content.state; (s == contentHere || s == contentApart) && b.isOf(i, id) {
				count++
			}
		}
	}
	if count > 0 {
		// First the reason, then the deed: a content that is missing without a
		// reason counts as tampering. It also makes sure that the batches below
		// are not the end of the chain, which must stay where it is.
		rec := Record{Kind: KindAdmin, Event: EventErase, RequestID: id, Note: by}
		if err := t.append(ctx, &rec); err != nil {
			return 0, err
		}
	}
	for _, b := range batches {
		if err := t.restate(ctx, b, func(i int) bool { return b.isOf(i, id) }); err != nil {
			return 0, err
		}
	}
	return count, nil
}

// holding returns the batches with records of a request, each once. Where the
// index has both records there are no others; else it is no more than a hint.
func (t *Log) holding(ctx context.Context, id string) ([]*batch, error) {
	var batches []*batch
	add := func(b *batch) {
		if !slices.ContainsFunc(batches, func(have *batch) bool { return have.number == b.number }) {
			batches = append(batches, b)
		}
	}
	known := t.index.get(id)
	for _, r := range []ref{known.decision, known.outcome} {
		if r == (ref{}) {
			continue
		}
		b, err := t.at(ctx, r)
		if errors.Is(err, store.ErrNotFound) {
			continue // trimmed
		}
		if err != nil {
			return nil, err
		}
		add(b)
	}
	if known.decision != (ref{}) && known.outcome != (ref{}) {
		return batches, nil
	}
	err := t.search(ctx, id, requestLife, func(_ uint64, b *batch, _ int) error {
		add(b)
		return nil
	})
	if errors.Is(err, store.ErrNotFound) {
		err = nil // not an id with a time in it, so none of a request of ours
	}
	return batches, err
}

// restate writes a batch anew, without the contents that drop names, and then
// erases whatever held them: other copies of the batch, and parts. The entries
// and their hashes are the same as before.
func (t *Log) restate(ctx context.Context, b *batch, drop func(i int) bool) error {
	var parts []uint64
	dropped := false
	for i := range b.entries {
		if s := b.entries[i].content.state; (s == contentHere || s == contentApart) && drop(i) {
			parts = append(parts, b.strip(i)...)
			dropped = true
		}
	}
	n := strconv.FormatUint(b.number, 10)
	newest, old := b.seq, parts
	if dropped {
		subject := t.subjects.restated + n
		if !b.hasContent() {
			subject = t.subjects.bare + n
		}
		var err error
		if newest, err = t.cfg.Log.Append(ctx, subject, b.encode(), store.AppendOptions{}); err != nil {
			return err
		}
		old = append(old, b.seq)
	}
	for _, subject := range []string{t.subjects.bare + n, t.subjects.restated + n} {
		err := t.cfg.Log.Read(ctx, store.ReadFrom{Subject: subject}, func(m store.Message) error {
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
		if err := t.cfg.Log.Delete(ctx, seq); err != nil {
			return err
		}
	}
	return nil
}
