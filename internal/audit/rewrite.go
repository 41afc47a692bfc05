package audit

import (
	"context"
	"errors"
	"strconv"
	"sync"

	"github.com/caprouter/caprouter/internal/store"
)

// rewriter removes contents from batches that are written.
type rewriter struct {
	mu      sync.Mutex // held during an erasure or a pass of the retainer
	shared  bool       // other replicas may rewrite the same batch
	limiter *sizeLimiter
	usage   *usageIndex
}

// rewrite writes a batch again without the contents that drop selects, and then
// erases the messages that held them: older copies of the batch, and parts. Entries
// and hashes stay the same.
func (w *rewriter) rewrite(ctx context.Context, c *storedChain, b *batch, drop func(i int) bool) error {
	var old []uint64
	var newest uint64
	for {
		removed, parts := b.dropContents(drop)
		old = append(old, parts...)
		if newest = b.seq; len(removed) == 0 {
			break
		}
		seq, err := w.appendBatch(ctx, c, b, removed)
		old = append(old, b.seq)
		if err == nil {
			newest = seq
			break
		}
		if !w.shared || !errors.Is(err, store.ErrConflict) {
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

// appendBatch writes a batch again, without the contents that were removed from it. It
// returns store.ErrConflict if another replica was faster.
func (w *rewriter) appendBatch(ctx context.Context, c *storedChain, b *batch, removed []recordUsage) (seq uint64, err error) {
	subject := c.subjects.rewritten
	if !b.hasContent() {
		subject = c.subjects.withoutContents
	}
	n := strconv.FormatUint(b.number, 10)
	opts := store.AppendOptions{Origin: b.origin}
	if w.shared {
		opts.ExpectFor, opts.ExpectLast = c.subjects.chain+".*."+n, new(uint64(0))
		if b.rewritten {
			opts.ExpectLast = &b.seq
		}
	}
	data := b.encodeBatch()
	seq, err = c.stream.Append(ctx, subject+n, data, opts)
	if err == nil {
		w.limiter.size.Add(int64(len(data)) + messageOverhead) // until the original is purged
		for _, u := range removed {
			w.usage.dropContent(c.writer, b.number, u)
		}
	}
	return seq, err
}
