package audit

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/store"
)

// trimChain removes the start of a chain if it is too old or the log is too large, and
// reports whether there may be more to remove.
//
// Every replica trims its own chain because of its age. It trims those of others if their
// writers have not, because they are gone, and to make room: then the oldest records of all
// chains go first, whatever replica notices it.
func (r *retainer) trimChain(ctx context.Context) (more bool, err error) {
	l := r.log
	keep := l.cfg.Retention
	if keep.Chain <= 0 && keep.MaxBytes <= 0 {
		return false, nil
	}
	limits := trimLimits{now: l.cfg.Now(), end: l.end.Load().number}
	if limits.excess, err = r.excessBytes(ctx); err != nil || keep.Chain <= 0 && limits.excess <= 0 {
		return false, err
	}
	if keep.Chain > 0 {
		limits.cutoff = limits.now.Add(-keep.Chain)
	}
	if l.others == nil {
		return r.trim(ctx, l.storedChain, limits)
	}
	if key, ok := l.usage.oldestSegment(); ok && limits.excess > 0 && key.writer != l.writer {
		c, err := l.others.chain(ctx, key.writer)
		if err != nil {
			return false, err
		}
		limits.end = min(c.end.Load().number, key.firstBatch()+segmentBatches)
		return r.trim(ctx, c, limits)
	}
	if more, err = r.trim(ctx, l.storedChain, limits); err != nil {
		return false, err
	}
	again, err := r.trimOthers(ctx, limits.cutoff)
	return more || again, err
}

// trimOthers trims the chains of replicas that have not done so themselves. A chain without
// newer records is removed.
func (r *retainer) trimOthers(ctx context.Context, cutoff time.Time) (more bool, err error) {
	l := r.log
	if cutoff.IsZero() {
		return false, nil
	}
	cutoff = cutoff.Add(-takeoverDelay)
	for _, c := range l.others.all() {
		end := c.end.Load().number
		if end == 0 || !l.usage.hasBefore(c.writer, cutoff) {
			continue
		}
		limits := trimLimits{cutoff: cutoff, now: l.cfg.Now(), end: end}
		if c.newestTime().Before(cutoff) {
			limits.end = end + 1
		}
		again, err := r.trim(ctx, c, limits)
		if err != nil {
			return false, err
		}
		more = more || again
		if limits.end > end && !again {
			if err := l.others.drop(ctx, c); err != nil {
				return false, err
			}
		}
	}
	return more, nil
}

// excessBytes returns by how many bytes the log is to be reduced; 0 if it is small enough.
func (r *retainer) excessBytes(ctx context.Context) (int64, error) {
	l := r.log
	if l.cfg.Retention.MaxBytes <= 0 {
		return 0, nil
	}
	info, err := l.stream.Info(ctx)
	if err != nil {
		return 0, err
	}
	r.limiter.size.Store(int64(info.Bytes))
	if int64(info.Bytes) <= r.limiter.trimLimit() {
		return 0, nil
	}
	return int64(info.Bytes) - l.cfg.Retention.MaxBytes/10*9, nil // free 10 % at once, not a batch at a time
}

// trim removes the start of a chain, and reports whether there may be more to remove.
func (r *retainer) trim(ctx context.Context, c *storedChain, limits trimLimits) (more bool, err error) {
	l := r.log
	plan, err := c.planTrim(ctx, limits)
	if err != nil || plan.mark == nil {
		return false, err
	}
	rec := Record{Kind: KindAdmin, Event: EventCheckpoint, Chain: c.writer, UpTo: plan.mark}
	if plan.early > 0 {
		rec.Note = fmt.Sprintf("%d batches before their retention, to make room", plan.early)
	}
	if err := l.announce(ctx, &rec); err != nil {
		return false, err
	}
	c.trimmed.Store(plan.mark.Record)
	for _, step := range plan.steps {
		if err := r.remove(ctx, c, step); err != nil {
			return false, err
		}
	}
	l.usage.trim(c.writer, plan.mark.Batch)
	if plan.early > 0 {
		l.cfg.OnEvict(quota.Owner{}, plan.early)
	}
	return plan.batches == maxBatchesPerPass, nil
}

// remove removes the messages of one step of a trim.
func (r *retainer) remove(ctx context.Context, c *storedChain, step trimStep) error {
	switch {
	case step.before == 0:
		n := strconv.FormatUint(step.rewritten, 10)
		if err := eraseMessages(ctx, c.stream, c.subjects.rewritten+n); err != nil {
			return err
		}
		return c.stream.Purge(ctx, c.subjects.withoutContents+n)
	case r.log.others == nil: // all messages are of this chain
		return c.stream.Trim(ctx, step.before)
	}
	for _, subject := range []string{c.subjects.content, c.subjects.chain} {
		if err := c.stream.PurgeBefore(ctx, subject, step.before); err != nil {
			return err
		}
	}
	return nil
}

// eraseMessages overwrites the messages of a subject.
func eraseMessages(ctx context.Context, log *store.Log, subject string) error {
	return log.Read(ctx, store.ReadFrom{Subject: subject}, func(m store.Message) error {
		return log.Delete(ctx, m.Seq)
	})
}

// trimLimits bound a trim.
type trimLimits struct {
	excess int64     // bytes to remove, of any age
	cutoff time.Time // older batches are removed; zero = none
	now    time.Time
	end    uint64 // the first batch that stays
}

// trimPlan is the start of a chain that a trim removes, up to mark.
type trimPlan struct {
	mark    *ChainPosition
	batches int
	early   int // of these, before their retention
	// steps remove the batches in ascending order. What an interrupted trim leaves is the
	// end of the chain, without decisions whose outcomes are gone.
	steps []trimStep
}

// trimStep removes batches that follow each other: those before a message or, if before is
// 0, one that was rewritten and is stored behind the others.
type trimStep struct {
	before    uint64 // sequence
	rewritten uint64 // number
}

// addStep adds the removal of a batch to the steps.
func (p *trimPlan) addStep(b *batch) {
	last := len(p.steps) - 1
	switch {
	case b.rewritten:
		p.steps = append(p.steps, trimStep{rewritten: b.number})
	case last >= 0 && p.steps[last].before != 0:
		p.steps[last].before = b.seq + 1
	default:
		p.steps = append(p.steps, trimStep{before: b.seq + 1})
	}
}

func (c *storedChain) planTrim(ctx context.Context, limits trimLimits) (plan trimPlan, err error) {
	excess := limits.excess
	err = c.walkBatches(ctx, store.ReadFrom{}, func(*batch) bool { return true }, func(_ uint64, b *batch) error {
		tooOld := c.isOlder(b, limits.cutoff, limits.now)
		if b.number >= limits.end || plan.batches == maxBatchesPerPass || excess <= 0 && !tooOld {
			return store.ErrStop
		}
		if !tooOld {
			plan.early++
		}
		excess -= b.approximateSize()
		plan.mark = b.endPosition()
		plan.batches++
		plan.addStep(b)
		return nil
	})
	return plan, err
}

// approximateSize estimates the size of the batch in the stream.
func (b *batch) approximateSize() int64 {
	size := 0
	for i := range b.entries {
		size += b.entries[i].encodedSize() + len(b.entries[i].content.parts)*maxPart
	}
	return int64(size)
}
