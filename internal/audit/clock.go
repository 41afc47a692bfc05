package audit

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/internal/store"
)

// clockStep is a place in the chain where the clock was set back. Searches by time
// assume that the times of the chain grow, which is only true between two steps.
type clockStep struct {
	Batch uint64    `json:"batch"` // the first one behind the step
	Seq   uint64    `json:"seq"`   // of its message
	From  time.Time `json:"from"`  // the newest time before
	To    time.Time `json:"to"`    // the time of the first record behind it
}

// maxClockSteps bounds the remembered steps: they are part of every head.
const maxClockSteps = 16

// noteTimes remembers the times of a batch that was written.
func (c *storedChain) noteTimes(seq, number uint64, list []indexedRecord) {
	first, last := list[0].at, list[0].at
	for i := range list {
		first, last = earlierOf(first, list[i].at), laterOf(last, list[i].at)
	}
	newest := c.newestTime()
	switch {
	case first.Before(newest.Add(-clockSlack)):
		c.clock.addStep(clockStep{Batch: number, Seq: seq, From: newest, To: first})
		c.newest.Store(&last)
	case last.After(newest):
		c.newest.Store(&last)
	}
}

// reaches reports whether the chain may contain records of this time or later.
func (c *storedChain) reaches(from time.Time) bool {
	for _, s := range c.clock.steps() {
		if !s.From.Before(from) {
			return true
		}
	}
	return !c.newestTime().Before(from)
}

// isOlder reports whether a batch was written before the cutoff. A batch of the future was written
// while the clock was ahead, so before the clock was set back for the next time.
func (c *storedChain) isOlder(b *batch, cutoff, now time.Time) bool {
	at := b.newestTime()
	if at.After(now.Add(clockSlack)) {
		for _, s := range c.clock.steps() {
			if b.number < s.Batch {
				at = s.To
				break
			}
		}
	}
	return at.Before(cutoff)
}

// clockHistory contains the steps of the clock, oldest first. The writer changes it.
type clockHistory struct{ list atomic.Pointer[[]clockStep] }

func (h *clockHistory) steps() []clockStep {
	if list := h.list.Load(); list != nil {
		return *list
	}
	return nil
}

func (h *clockHistory) addStep(s clockStep) {
	list := append(slices.Clone(h.steps()), s)
	list = list[max(0, len(list)-maxClockSteps):]
	h.list.Store(&list)
}

// timeSpan is a part of the chain without a step of the clock. The zero values of its
// ends are the ends of the chain.
type timeSpan struct {
	from, to     time.Time
	first, after uint64 // the first message, and the one behind the last
	afterBatch   uint64
}

// timeSpans returns the parts of the chain that may contain records of this time. If
// to is zero, it has no end.
func (h *clockHistory) timeSpans(from, to time.Time) []timeSpan {
	var spans []timeSpan
	next := timeSpan{first: 1}
	for _, s := range h.steps() {
		next.to, next.after, next.afterBatch = s.From, s.Seq, s.Batch
		spans = append(spans, next)
		next = timeSpan{from: s.To, first: s.Seq}
	}
	return slices.DeleteFunc(append(spans, next), func(s timeSpan) bool {
		return !to.IsZero() && s.from.After(to) || !s.to.IsZero() && s.to.Before(from)
	})
}

// findStart returns where to read the records of the span from this time on.
func (s timeSpan) findStart(ctx context.Context, c *storedChain, from time.Time) (store.ReadFrom, error) {
	if s.first == 1 && s.after == 0 {
		return store.ReadFrom{Since: from}, nil // the times of the stream grow
	}
	low, high := s.first, s.after
	if high == 0 {
		high = c.end.Load().seq + 1
	}
	for low < high {
		middle := low + (high-low)/2
		m, err := c.stream.Next(ctx, c.subjects.chain, middle)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return store.ReadFrom{}, err
		}
		if err != nil || m.Seq >= high {
			high = middle
			continue
		}
		if b, ok := tryDecode(m); ok && !b.newestTime().Before(from) {
			high = middle
		} else {
			low = m.Seq + 1
		}
	}
	return store.ReadFrom{Seq: low}, nil
}

// findSince returns where to read all records of the log from this time on, which may
// be mixed with older ones.
func (h *clockHistory) findSince(ctx context.Context, c *storedChain, since time.Time) (store.ReadFrom, error) {
	spans := h.timeSpans(since, time.Time{}) // the last one has no end
	return spans[0].findStart(ctx, c, since)
}
