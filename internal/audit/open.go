package audit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/caprouter/caprouter/internal/store"
)

func (p *place) head(writer string, now time.Time) head {
	return head{
		Writer: writer, Chain: fmt.Sprintf("%x", p.chain), Batch: p.number, Record: p.last,
		Hash: p.hash.String(), Seq: p.seq, At: now.UTC(),
	}
}

// resume finds the end of the chain and what is to be said before its next
// batch. slot is where in the head file the next head goes.
func (t *Log) resume(ctx context.Context) (at place, preface []*pending, slot int64, err error) {
	h, slot, how, err := readHead(t.cfg.HeadFile, t.cfg.Signer)
	if err != nil {
		return place{}, nil, 0, err
	}
	tail, err := t.tail(ctx)
	if err != nil {
		return place{}, nil, 0, err
	}
	at, notes, err := t.judge(ctx, tail, h, how)
	if err != nil {
		return place{}, nil, 0, err
	}
	notes = append(notes, t.damaged(ctx)...)
	notes = append(notes, Record{Kind: KindAdmin, Event: EventStart})
	for _, note := range notes {
		p, err := t.pending(&note)
		if err != nil {
			return place{}, nil, 0, err
		}
		preface = append(preface, p)
	}
	if how != headAbsent {
		slot = (slot + 1) % slotCount
	}
	return at, preface, slot, nil
}

// tail is the last whole batch of the log; the zero place when there is none.
func (t *Log) tail(ctx context.Context) (place, error) {
	m, err := t.cfg.Log.Last(ctx, t.subjects.chain)
	if errors.Is(err, store.ErrNotFound) {
		return place{}, nil
	}
	if err != nil {
		return place{}, err
	}
	b, ok := readable(m)
	if !ok || b.broken() >= 0 || b.writer != t.cfg.Writer {
		// The next batch must still be expected behind this message, whatever it
		// is; the chain goes on from the head.
		return place{seq: m.Seq}, nil
	}
	return place{chain: b.chain, number: b.number, last: b.last(), hash: b.hash(), seq: m.Seq}, nil
}

// judge compares the log's end with its head, and says where to go on and what
// has to be said of it. The chain never goes back behind a head that was signed:
// what is missing up to there stays missing, for everyone to see.
func (t *Log) judge(ctx context.Context, tail place, h *head, how trust) (place, []Record, error) {
	if how == headAbsent || how == headForged || h.Writer != t.cfg.Writer {
		var notes []Record
		if tail.seq != 0 || how != headAbsent {
			notes = t.mismatch(ctx, "the signed head is missing or not genuine")
		}
		if tail.number == 0 {
			rand.Read(tail.chain[:])
		}
		return tail, notes, nil
	}
	var notes []Record
	if how == headForeign {
		notes = []Record{{Kind: KindAdmin, Event: EventRekey, Note: "the head before was signed with another key"}}
	}
	said, _ := h.place() // readHead has looked
	from := said
	said.seq = tail.seq
	switch {
	case tail.number < said.number:
		note := fmt.Sprintf("the chain ends with batch %d, its head says %d", tail.number, said.number)
		return said, append(notes, t.mismatch(ctx, note)...), nil
	case tail.chain != said.chain, tail.number == said.number && tail.hash != said.hash:
		note := "the last batch is not the one its head was signed for"
		return said.further(tail), append(notes, t.mismatch(ctx, note)...), nil
	}
	ok, err := t.follows(ctx, from, tail)
	if err == nil && !ok {
		notes = append(notes, t.mismatch(ctx, "the last batches do not follow from the signed head")...)
	}
	return tail, notes, err
}

// damaged is what the store cut out of the log's files before this process read
// them. It may be a batch, which is missing from now on, or a part of a content.
func (t *Log) damaged(ctx context.Context) []Record {
	var notes []Record
	for _, d := range t.cfg.Log.Damage() {
		notes = append(notes, t.mismatch(ctx, fmt.Sprintf(
			"files were damaged: of the messages %d to %d what could not be read was cut out, %d bytes", d.From, d.To, d.Bytes))...)
	}
	return notes
}

// mismatch says in the log, and returns for the chain, what does not fit.
func (t *Log) mismatch(ctx context.Context, note string) []Record {
	t.cfg.Logger.ErrorContext(ctx, "the audit trail is not what it was: run caprouter audit verify", "because", note)
	return []Record{{Kind: KindAdmin, Event: EventMismatch, Note: note}}
}

// further goes on from the signed end, and with a number that neither it nor the
// strange end has: so both stay visible.
func (p place) further(tail place) place {
	if tail.number > p.number {
		p.number, p.last = tail.number, max(p.last, tail.last)
	}
	return p
}

// follows reports whether the chain leads from the head to the tail: the few
// batches that were written after the last head.
func (t *Log) follows(ctx context.Context, from, to place) (bool, error) {
	if from.number == to.number {
		return true, nil
	}
	next := from
	err := t.walk(ctx, store.ReadFrom{Seq: from.seq + 1}, func(b *batch) bool { return b.number > from.number },
		func(_ uint64, b *batch) error {
			if b.chain != next.chain || b.number != next.number+1 || b.prev != next.hash || b.broken() >= 0 {
				return store.ErrStop
			}
			next.number, next.hash = b.number, b.hash()
			return nil
		})
	return next.hash == to.hash, err
}
