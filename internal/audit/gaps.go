package audit

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/caprouter/caprouter/internal/quota"
)

// adminRecords calls fn for the admin records of an event about the chain: first for those in
// its batches that connect to it, newest batch first, then for those in other chains.
func (j *chainVerifier) adminRecords(event Event, fn func(e *batchSummary, rec *Record)) {
	for _, e := range j.selected {
		if j.mismatched[e] {
			continue
		}
		for i := range e.notes {
			if e.notes[i].Event == event && e.notes[i].Chain == "" {
				fn(e, &e.notes[i])
			}
		}
	}
	for _, a := range j.announced {
		if a.rec.Event == event && a.rec.Chain == j.writer {
			fn(a.batch, a.rec)
		}
	}
}

// announcement is an admin record of another chain.
type announcement struct {
	writer string // of the chain that contains it
	batch  *batchSummary
	rec    *Record
}

// announcements returns the admin records about other chains, and the erasures, which
// are about all chains. They must be in the signed part of this chain: anyone who can
// write to the stream can append to a chain, behind its head.
func (j *chainVerifier) announcements() (list []announcement) {
	if j.head == nil {
		return nil
	}
	for _, e := range j.selected {
		if e.number > max(j.head.Batch, j.signedUpTo) || j.mismatched[e] {
			continue
		}
		for i := range e.notes {
			if rec := &e.notes[i]; rec.Event == EventErase || rec.Chain != "" {
				list = append(list, announcement{j.writer, e, rec})
			}
		}
	}
	return list
}

// newestPosition returns the last position that admin records of an event name.
func (j *chainVerifier) newestPosition(event Event) ChainPosition {
	var newest ChainPosition
	j.adminRecords(event, func(_ *batchSummary, rec *Record) {
		if rec.UpTo != nil && rec.UpTo.Batch > newest.Batch {
			newest = *rec.UpTo
		}
	})
	return newest
}

// explainGaps finds the cause of every gap. A checkpoint means that the batches were
// trimmed, a damaged message that they were altered, and the end of the chain that
// it was cut off. Otherwise they were deleted.
func (j *chainVerifier) explainGaps() {
	trimmed := j.newestPosition(EventCheckpoint)
	if trimmed.Batch > 0 {
		j.explainTrim(trimmed)
	}
	// The mismatches that a start has recorded, by batch.
	lost := map[uint64]bool{}
	j.adminRecords(EventMismatch, func(e *batchSummary, _ *Record) { lost[e.number] = true })

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
		j.explainGap(g, what)
	}
	j.explainUnassigned()
	j.reportMismatches(lost)
	j.noteRekeys()
}

// explainTrim notes up to which position the chain was trimmed, and checks that the rest
// continues it.
func (j *chainVerifier) explainTrim(trimmed ChainPosition) {
	note := fmt.Sprintf("trimmed up to batch %d, record %d", trimmed.Batch, trimmed.Record)
	early := ""
	j.adminRecords(EventCheckpoint, func(_ *batchSummary, rec *Record) {
		if early == "" && rec.Note != "" { // the newest
			early = fmt.Sprintf("; on %s, %s", rec.At.Format(time.RFC3339), rec.Note)
		}
	})
	note += early
	j.report.Notes = append(j.report.Notes, note)
	if e := j.selectedBatch(trimmed.Batch + 1); e != nil && e.prev.String() != trimmed.Hash {
		j.addProblem(ProblemAltered, e, e.first, "it does not connect to the checkpoint")
	}
}

// explainUnassigned reports the batches that fill no gap.
func (j *chainVerifier) explainUnassigned() {
	for _, e := range j.unassigned {
		switch {
		case e == nil:
		case e.rewritten && !e.valid:
			j.addProblem(ProblemAltered, e, e.firstInvalid, "the rewritten copy is damaged")
		default:
			j.reportUnassigned(e, ProblemForged, "and no batch is missing at its place")
		}
	}
}

// reportMismatches reports the recorded mismatches of the batches that no gap explains.
func (j *chainVerifier) reportMismatches(batches map[uint64]bool) {
	j.adminRecords(EventMismatch, func(e *batchSummary, rec *Record) {
		if batches[e.number] {
			j.report.Problems = append(j.report.Problems, Problem{
				Kind: ProblemMismatch, Batch: e.number, Record: rec.Position, At: rec.At, Detail: rec.Note,
			})
		}
	})
}

// noteRekeys notes the changes of the signing key.
func (j *chainVerifier) noteRekeys() {
	j.adminRecords(EventRekey, func(e *batchSummary, rec *Record) {
		j.report.Notes = append(j.report.Notes, fmt.Sprintf("the signing key changed before batch %d (%s)",
			e.number, rec.At.Format(time.RFC3339)))
	})
}

// explainGap reports the batches of a gap. Damaged messages at its place are taken
// for their remains.
func (j *chainVerifier) explainGap(g missingRange, missing string) {
	low, high := j.neighbourSeqs(g)
	claimed := map[uint64]*batchSummary{}
	var rest []*batchSummary
	for i, e := range j.unassigned {
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
		j.unassigned[i] = nil
	}
	start := g.from // first batch without remains
	flush := func(end uint64) {
		if start <= end {
			j.reportMissing(missing, start, end)
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
		j.reportUnassigned(e, ProblemAltered, "its hash does not match")
	}
	flush(g.to)
	for _, e := range rest {
		j.reportUnassigned(e, ProblemForged, "and there are more of them than missing batches")
	}
}

// reportUnassigned reports a message that is not a valid batch of this chain.
func (j *chainVerifier) reportUnassigned(e *batchSummary, what, detail string) {
	if e.valid {
		j.addProblem(ProblemForged, e, e.first, fmt.Sprintf("message %d is of another chain", e.seq))
		return
	}
	if what == ProblemForged {
		detail = fmt.Sprintf("message %d is damaged, %s", e.seq, detail)
	}
	j.addProblem(what, e, e.firstInvalid, detail)
}

// reportMissing reports a range of missing batches.
func (j *chainVerifier) reportMissing(what string, from, to uint64) {
	p := Problem{Kind: what, Batch: from, Detail: "the batch is missing"}
	if from != to {
		p.Detail = fmt.Sprintf("batches %d to %d are missing", from, to)
	}
	if before := j.selectedBatch(from - 1); before != nil {
		p.At, p.Record = before.to, before.last+1
	}
	j.report.Problems = append(j.report.Problems, p)
}

// neighbourSeqs returns the messages on both sides of a gap. Rewritten batches are
// ignored, because they are stored elsewhere.
func (j *chainVerifier) neighbourSeqs(g missingRange) (low, high uint64) {
	high = math.MaxUint64
	for _, e := range j.selected { // newest first
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

// checkContents checks the contents of the chain, in the newest copy of each batch:
// older copies are those that an erasure has not reached yet.
func (j *chainVerifier) checkContents() {
	expired, trimmed := j.newestPosition(EventExpire).Batch, j.newestPosition(EventCheckpoint).Batch
	evicted := j.evictedContents()
	erased := map[string]uint64{} // by request: position of the newest erase record
	j.adminRecords(EventErase, func(_ *batchSummary, rec *Record) {
		erased[rec.RequestID] = max(erased[rec.RequestID], rec.Position)
	})
	erasedElsewhere := map[string]time.Time{} // by request: time of the newest erase record in another chain
	for _, a := range j.announced {
		if a.rec.Event == EventErase {
			erasedElsewhere[a.rec.RequestID] = laterOf(erasedElsewhere[a.rec.RequestID], a.rec.At)
		}
	}
	for _, e := range j.selected {
		newest := e
		for _, c := range j.valid[e.number] {
			if c.hash != e.hash {
				continue
			}
			if c.seq > newest.seq && c.rewritten {
				newest = c
			}
			for _, pos := range c.altered {
				j.addProblem(ProblemAltered, c, pos, "its content does not match its hash")
			}
		}
		j.report.Contents += newest.contents
		for _, m := range newest.removed {
			switch {
			case m.request != "" && (erased[m.request] > m.pos || erasedElsewhere[m.request].After(m.at.Add(-clockSlack))):
				j.report.ErasedContents++
			case e.number <= expired:
				j.report.ExpiredContents++
			case e.number <= evicted[m.owner]:
				j.report.EvictedContents++
			case e.number <= trimmed: // the rest of an interrupted trim, which has removed the announcement
			default:
				j.report.Problems = append(j.report.Problems, Problem{
					Kind: ProblemDeleted, Batch: e.number, Record: m.pos, At: m.at,
					Detail: "its content is missing, and no record announces an erasure or expiry",
				})
			}
		}
	}
}

// maxUnsigned is the time that the batches behind the newest head may span: a head is
// written at most 50 ms after its batch.
const maxUnsigned = time.Second

// checkUnsigned reports batches behind the signed head that a head must cover: those
// before a clean stop, which signs the end, and those that are too old. An older head
// would otherwise permit to rewrite everything behind it.
func (j *chainVerifier) checkUnsigned() {
	if j.head == nil {
		return
	}
	var oldest, newest *batchSummary
	stopped := false
	for _, e := range j.selected { // newest first
		if e.number <= max(j.head.Batch, j.signedUpTo) {
			break
		}
		if oldest = e; newest == nil {
			newest = e
		}
		stopped = stopped || slices.ContainsFunc(e.notes, func(r Record) bool { return r.Event == EventStop })
	}
	if oldest == nil || !stopped && newest.to.Sub(oldest.to) <= j.maxUnsigned {
		return
	}
	detail := fmt.Sprintf("batches up to %d are behind the signed head, which is older than it can be", newest.number)
	if stopped {
		detail = fmt.Sprintf("batches up to %d are behind the signed head, although a clean stop signs the end", newest.number)
	}
	j.addProblem(ProblemUnsigned, oldest, oldest.first, detail)
}

// evictedContents returns the last batch up to which the contents of each owner were
// evicted, and adds a note for each.
func (j *chainVerifier) evictedContents() map[quota.Owner]uint64 {
	evicted := map[quota.Owner]uint64{}
	j.adminRecords(EventEvict, func(_ *batchSummary, rec *Record) {
		owner := quota.Owner{Tenant: rec.Tenant, Principal: rec.Principal}
		if rec.UpTo != nil && rec.UpTo.Batch > evicted[owner] {
			evicted[owner] = rec.UpTo.Batch
		}
	})
	for _, owner := range slices.SortedFunc(maps.Keys(evicted), func(a, b quota.Owner) int { return cmp.Compare(a.String(), b.String()) }) {
		j.report.Notes = append(j.report.Notes, fmt.Sprintf("contents of %s up to batch %d were removed before their retention, to make room",
			owner, evicted[owner]))
	}
	return evicted
}

// countRecords sets the counts of the report.
func (j *chainVerifier) countRecords() {
	r := j.report
	r.Batches = uint64(len(j.selected))
	for i, e := range j.selected {
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
