package audit

import (
	"fmt"
	"math"
	"time"
)

// notesOf calls fn for the admin records of batches that can be relied on,
// newest batch first.
func (j *judgement) notesOf(event Event, fn func(e *examined, rec *Record)) {
	for _, e := range j.chosen {
		if j.wrong[e] {
			continue
		}
		for i := range e.notes {
			if e.notes[i].Event == event {
				fn(e, &e.notes[i])
			}
		}
	}
}

// newestMark is the furthest mark of the admin records of an event.
func (j *judgement) newestMark(event Event) ChainPosition {
	var newest ChainPosition
	j.notesOf(event, func(_ *examined, rec *Record) {
		if rec.UpTo != nil && rec.UpTo.Batch > newest.Batch {
			newest = *rec.UpTo
		}
	})
	return newest
}

// explainGaps says of every gap what became of the batches: a checkpoint tells
// that they were trimmed, a damaged message that they were altered, the end of
// the chain that it was cut off, and otherwise they were deleted.
func (j *judgement) explainGaps() {
	trimmed := j.newestMark(EventCheckpoint)
	if trimmed.Batch > 0 {
		j.report.Notes = append(j.report.Notes, fmt.Sprintf("trimmed up to batch %d, record %d", trimmed.Batch, trimmed.Record))
		if e := j.chosenFor(trimmed.Batch + 1); e != nil && e.prev.String() != trimmed.Hash {
			j.problem(ProblemAltered, e, e.first, "it does not follow from the checkpoint")
		}
	}
	// Why a start found less than the head said, by the batch that tells it.
	lost := map[uint64]bool{}
	j.notesOf(EventMismatch, func(e *examined, _ *Record) { lost[e.number] = true })

	for _, g := range j.gaps {
		if g.to <= trimmed.Batch {
			continue
		}
		g.from = max(g.from, trimmed.Batch+1)
		what := ProblemDeleted
		if g.next == nil {
			what = ProblemTruncated
		} else if lost[g.next.number] {
			what = ProblemTruncated
			delete(lost, g.next.number)
		}
		j.explain(g, what)
	}
	for _, e := range j.strange {
		switch {
		case e == nil:
		case e.rewritten && !e.whole:
			j.problem(ProblemAltered, e, e.broken, "the copy without erased contents is damaged")
		default:
			j.nameStrange(e, ProblemForged, "and nothing is missing where it lies")
		}
	}
	j.notesOf(EventMismatch, func(e *examined, rec *Record) {
		if lost[e.number] {
			j.report.Problems = append(j.report.Problems, Problem{
				Kind: ProblemMismatch, Batch: e.number, Record: rec.Position, At: rec.At, Detail: rec.Note,
			})
		}
	})
	j.notesOf(EventRekey, func(e *examined, rec *Record) {
		j.report.Notes = append(j.report.Notes, fmt.Sprintf("the signing key changed before batch %d (%s)",
			e.number, rec.At.Format(time.RFC3339)))
	})
}

// explain names the batches of a gap. Damaged messages that lie in its place are
// what is left of them.
func (j *judgement) explain(g gap, missing string) {
	low, high := j.around(g)
	claimed := map[uint64]*examined{}
	var rest []*examined
	for i, e := range j.strange {
		if e == nil {
			continue
		}
		here := e.number >= g.from && e.number <= g.to && claimed[e.number] == nil
		switch {
		case e.rewritten && !here, !e.rewritten && (e.seq <= low || e.seq >= high):
			continue
		case here:
			claimed[e.number] = e
		default:
			rest = append(rest, e)
		}
		j.strange[i] = nil
	}
	start := g.from // of the batches of which nothing is left
	flush := func(end uint64) {
		if start <= end {
			j.absent(missing, start, end)
		}
		start = end + 2
	}
	for n := g.from; n <= g.to && len(claimed)+len(rest) > 0; n++ {
		e := claimed[n]
		if delete(claimed, n); e == nil && len(rest) > 0 {
			e, rest = rest[0], rest[1:]
		}
		if e == nil {
			continue
		}
		flush(n - 1)
		e.number = n
		j.nameStrange(e, ProblemAltered, "what it says is not what its hash was made of")
	}
	flush(g.to)
	for _, e := range rest {
		j.nameStrange(e, ProblemForged, "and more of them are there than are missing")
	}
}

// nameStrange names a message that is not a whole one of this chain.
func (j *judgement) nameStrange(e *examined, what, detail string) {
	if e.whole {
		j.problem(ProblemForged, e, e.first, fmt.Sprintf("message %d is of another chain", e.seq))
		return
	}
	if what == ProblemForged {
		detail = fmt.Sprintf("message %d is damaged, %s", e.seq, detail)
	}
	j.problem(what, e, e.broken, detail)
}

// absent names a run of batches that are not there.
func (j *judgement) absent(what string, from, to uint64) {
	p := Problem{Kind: what, Batch: from, Detail: "the batch is missing"}
	if from != to {
		p.Detail = fmt.Sprintf("batches %d to %d are missing", from, to)
	}
	if before := j.chosenFor(from - 1); before != nil {
		p.At, p.Record = before.to, before.last+1
	}
	j.report.Problems = append(j.report.Problems, p)
}

// around returns the messages a gap lies between. Rewritten batches lie
// elsewhere and say nothing of it.
func (j *judgement) around(g gap) (low, high uint64) {
	high = math.MaxUint64
	for _, e := range j.chosen { // newest first
		switch {
		case e.rewritten:
		case e.number > g.to:
			high = e.seq
		case e.number < g.from:
			return e.seq, high
		}
	}
	return 0, high
}

// judgeContents looks at the contents of the chain: of each batch, at the newest
// copy, since the ones before it are what an erasure has not reached yet.
func (j *judgement) judgeContents() {
	expired := j.newestMark(EventExpire).Batch
	erased := map[string]uint64{} // by request: position of the newest record of its erasure
	j.notesOf(EventErase, func(_ *examined, rec *Record) {
		erased[rec.RequestID] = max(erased[rec.RequestID], rec.Position)
	})
	for _, e := range j.chosen {
		newest := e
		for _, c := range j.byNum[e.number] {
			if c.hash != e.hash {
				continue
			}
			if c.seq > newest.seq && c.rewritten {
				newest = c
			}
			for _, pos := range c.altered {
				j.problem(ProblemAltered, c, pos, "its content is not what its hash was made of")
			}
		}
		j.report.Contents += newest.contents
		for _, m := range newest.gone {
			switch {
			case m.request != "" && erased[m.request] > m.pos:
				j.report.ErasedContents++
			case e.number <= expired:
				j.report.ExpiredContents++
			default:
				j.report.Problems = append(j.report.Problems, Problem{
					Kind: ProblemDeleted, Batch: e.number, Record: m.pos, At: m.at,
					Detail: "its content is missing, and nothing says that it was erased or expired",
				})
			}
		}
	}
}

// count fills in the figures.
func (j *judgement) count() {
	r := j.report
	r.Batches = uint64(len(j.chosen))
	for i, e := range j.chosen {
		r.Records += e.last - e.first + 1
		if i == 0 {
			r.Last, r.To = e.last, e.to
		}
		r.First, r.From = e.first, e.from
		if j.head != nil && e.number > j.head.Batch {
			r.Unsigned++
		}
	}
}
