package audit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// chainVerifier selects the messages that form the chain. It walks back from the
// signed head: each batch contains the hash of the one before, so the walk reaches
// everything that was written, and nothing else. Behind a gap it continues with the
// remaining batches. One goroutine owns it.
type chainVerifier struct {
	*chainReader
	report     *Report
	head       *chainHead // nil = no trusted head
	chain      chainID
	valid      map[uint64][]*batchSummary // valid batches of the chain, by number
	unassigned []*batchSummary            // damaged, or of another chain; nil = explained
	selected   []*batchSummary            // one for each number, newest first
	announced  []announcement             // in other chains
	mismatched map[*batchSummary]bool     // selected, but not the predecessor that the next batch names
	gaps       []missingRange
}

// missingRange is a range of numbers without a valid batch.
type missingRange struct {
	from, to uint64
	next     *batchSummary // the batch behind it; nil at the end of the chain
}

// buildReport verifies the added messages of the only chain.
func (x *chainReader) buildReport(h *chainHead, how headStatus) *Report {
	return x.newVerifier(h, how).verify(nil)
}

// newVerifier selects the chain.
func (x *chainReader) newVerifier(h *chainHead, how headStatus) *chainVerifier {
	j := &chainVerifier{
		chainReader: x, report: &Report{Writer: x.writer, Notes: []string{}, Problems: []Problem{}},
		valid: map[uint64][]*batchSummary{}, mismatched: map[*batchSummary]bool{},
	}
	j.checkHead(h, how)
	j.groupMessages()
	j.selectChain()
	return j
}

// verify reports the problems of the chain. announced are records of other chains.
func (j *chainVerifier) verify(announced []announcement) *Report {
	j.announced = announced
	j.explainGaps()
	j.checkCopies()
	j.checkOrder()
	j.checkContents()
	j.checkUnsigned()
	j.countRecords()
	slices.SortStableFunc(j.report.Problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Batch, b.Batch), cmp.Compare(a.Record, b.Record))
	})
	return j.report
}

func (j *chainVerifier) addProblem(what string, e *batchSummary, record uint64, detail string) {
	j.report.Problems = append(j.report.Problems, Problem{
		Kind: what, Batch: e.number, Record: record, At: e.from, Detail: detail,
	})
}

func (j *chainVerifier) checkHead(h *chainHead, how headStatus) {
	if how == headTrusted && h.Writer != j.writer {
		how = headInvalid
	}
	j.chain = j.mainChain(nil)
	say := func(what, detail string) {
		j.report.Problems = append(j.report.Problems, Problem{Kind: what, Detail: detail})
	}
	switch how {
	case headAbsent:
		if len(j.messages) > 0 {
			say(ProblemHeadMissing, "there is no signed head: a missing end of the chain cannot be detected")
		}
	case headInvalid:
		say(ProblemForged, "the head of the chain has an invalid signature")
	case headUnknownKey:
		say(ProblemHeadUnknownKey, "the head is signed with an unknown key, so it proves nothing: verify the chain with the data directory of its writer")
	case headTrusted:
		j.head, j.chain = h, j.mainChain(h)
	}
}

// groupMessages separates the valid batches of the chain from other messages.
func (j *chainVerifier) groupMessages() {
	slices.SortFunc(j.messages, func(a, b *batchSummary) int { return cmp.Compare(a.seq, b.seq) })
	j.messages = slices.CompactFunc(j.messages, func(a, b *batchSummary) bool { return a.seq == b.seq }) // read twice
	for _, e := range j.messages {
		switch {
		case e.valid && e.chain == j.chain:
			j.valid[e.number] = append(j.valid[e.number], e)
		default:
			j.unassigned = append(j.unassigned, e)
		}
	}
}

// selectChain walks the chain from its end to its start.
func (j *chainVerifier) selectChain() {
	numbers := slices.SortedFunc(maps.Keys(j.valid), func(a, b uint64) int { return cmp.Compare(b, a) })
	var next *batchSummary
	want, known := digest{}, false
	if j.head != nil && (len(numbers) == 0 || numbers[0] < j.head.Batch) {
		lowest := uint64(1)
		if len(numbers) > 0 {
			lowest = numbers[0] + 1
		}
		j.gaps = append(j.gaps, missingRange{from: lowest, to: j.head.Batch})
	}
	for _, n := range numbers {
		if next != nil && next.number != n+1 {
			j.gaps = append(j.gaps, missingRange{from: n + 1, to: next.number - 1, next: next})
			known = false
		}
		if j.head != nil && n == j.head.Batch {
			signed := hexDigest(j.head.Hash)
			if known && want != signed && j.hasBatch(n, signed) {
				j.addProblem(ProblemAltered, next, next.first, "it does not connect to the signed head")
				j.mismatched[next] = true
			}
			want, known = signed, true
		}
		next = j.selectBatch(n, want, known)
		j.selected = append(j.selected, next)
		want, known = next.prev, true
	}
	if next == nil {
		return
	}
	if next.number > 1 {
		j.gaps = append(j.gaps, missingRange{from: 1, to: next.number - 1, next: next})
	} else if next.prev != (digest{}) || next.first != 1 {
		j.addProblem(ProblemForged, next, next.first, "it is not a valid first batch of a chain")
	}
}

func (j *chainVerifier) hasBatch(n uint64, hash digest) bool {
	return slices.ContainsFunc(j.valid[n], func(e *batchSummary) bool { return e.hash == hash })
}

func (j *chainVerifier) selectedBatch(n uint64) *batchSummary {
	i, ok := slices.BinarySearchFunc(j.selected, n, func(e *batchSummary, n uint64) int { return cmp.Compare(n, e.number) })
	if !ok {
		return nil
	}
	return j.selected[i]
}

// selectBatch returns the batch with the hash that the next batch names. Behind a
// gap this hash is not known: then it returns a batch that connects to the one
// before.
func (j *chainVerifier) selectBatch(n uint64, want digest, known bool) *batchSummary {
	candidates := j.valid[n]
	follows := func(e *batchSummary) bool { return n == 1 || j.hasBatch(n-1, e.prev) }
	if known {
		if i := slices.IndexFunc(candidates, func(e *batchSummary) bool { return e.hash == want }); i >= 0 {
			return candidates[i]
		}
	}
	e := candidates[0]
	if i := slices.IndexFunc(candidates, follows); i >= 0 {
		e = candidates[i]
	}
	if known {
		j.addProblem(ProblemAltered, e, e.first, "it, or a record before it, was rewritten: the next batch names another hash")
		j.mismatched[e] = true
	}
	return e
}

// checkCopies reports messages beside the selected ones: duplicates, and other
// batches with the same number.
func (j *chainVerifier) checkCopies() {
	evicted := max(j.newestPosition(EventEvict).Batch, j.newestPosition(EventCheckpoint).Batch)
	for i, e := range j.selected {
		originals := 0
		for _, c := range j.valid[e.number] {
			switch {
			case c.hash != e.hash:
				j.addProblem(ProblemForged, c, c.first, "another batch with this number belongs to the chain")
			case c.rewritten:
			case originals == 0:
				originals++
				j.selected[i] = c
			default:
				j.addProblem(ProblemDuplicated, c, c.first, "it is stored more than once")
				if j.isInOrder(i, c) && !j.isInOrder(i, j.selected[i]) {
					j.selected[i] = c
				}
			}
		}
		if originals == 0 && len(e.removed) == 0 && e.number > evicted {
			// The order of rewritten batches is not checked, so only a removed content
			// justifies one, or an announced eviction, which copies all older batches. The
			// rest of an interrupted trim may have lost its announcement.
			j.addProblem(ProblemReordered, e, e.first, fmt.Sprintf("message %d holds it as a rewritten batch, but nothing was removed from it", e.seq))
		}
		if j.mismatched[e] {
			j.mismatched[j.selected[i]] = true
		}
	}
}

// isInOrder reports whether the message is stored between its neighbours.
func (j *chainVerifier) isInOrder(i int, c *batchSummary) bool {
	after := i+1 == len(j.selected) || j.selected[i+1].rewritten || j.selected[i+1].seq < c.seq
	before := i == 0 || j.selected[i-1].rewritten || c.seq < j.selected[i-1].seq
	return after && before
}

// checkOrder reports the smallest set of messages that would have to move to restore
// the original order.
func (j *chainVerifier) checkOrder() {
	var originals []*batchSummary
	for _, e := range slices.Backward(j.selected) {
		if !e.rewritten {
			originals = append(originals, e)
		}
	}
	if slices.IsSortedFunc(originals, func(a, b *batchSummary) int { return cmp.Compare(a.seq, b.seq) }) {
		return
	}
	stay := longestIncreasing(originals)
	for _, e := range originals {
		if !stay[e] {
			j.addProblem(ProblemReordered, e, e.first, fmt.Sprintf("it is stored as message %d, out of order", e.seq))
		}
	}
}

// longestIncreasing returns a longest increasing subsequence by sequence number
// (patience sorting with back pointers).
func longestIncreasing(list []*batchSummary) map[*batchSummary]bool {
	var piles []int // piles[n] is the index of the smallest end of a run of length n+1
	back := make([]int, len(list))
	for i, e := range list {
		at, _ := slices.BinarySearchFunc(piles, e.seq, func(k int, seq uint64) int { return cmp.Compare(list[k].seq, seq) })
		back[i] = -1
		if at > 0 {
			back[i] = piles[at-1]
		}
		if at == len(piles) {
			piles = append(piles, i)
		} else {
			piles[at] = i
		}
	}
	stay := map[*batchSummary]bool{}
	for i := piles[len(piles)-1]; i >= 0; i = back[i] {
		stay[list[i]] = true
	}
	return stay
}
