package audit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// judgement finds out which messages are the chain. It walks from the signed
// head backwards: each batch holds the hash of the one before it, so what the
// head was signed for leads to everything that was ever written, and to nothing
// else. Where the walk meets a hole it goes on behind it with what is there.
type judgement struct {
	*examiner
	report  *Report
	head    *head // nil = none that can be relied on
	chain   chainID
	byNum   map[uint64][]*examined // whole messages of the chain
	strange []*examined            // damaged, or of another chain; nil = explained
	chosen  []*examined            // one for each number, newest first
	wrong   map[*examined]bool     // chosen, and not what its successor follows
	gaps    []gap
}

// gap is a run of batches of which nothing whole is there.
type gap struct {
	from, to uint64
	next     *examined // nil at the end of the chain
}

// report judges what was added.
func (x *examiner) report(h *head, how trust) *Report {
	j := &judgement{
		examiner: x, report: &Report{Writer: x.writer, Notes: []string{}, Problems: []Problem{}},
		byNum: map[uint64][]*examined{}, wrong: map[*examined]bool{},
	}
	j.judgeHead(h, how)
	j.sort()
	j.choose()
	j.explainGaps()
	j.judgeCopies()
	j.judgeOrder()
	j.judgeContents()
	j.count()
	slices.SortStableFunc(j.report.Problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Batch, b.Batch), cmp.Compare(a.Record, b.Record))
	})
	return j.report
}

func (j *judgement) problem(what string, e *examined, record uint64, detail string) {
	j.report.Problems = append(j.report.Problems, Problem{
		Kind: what, Batch: e.number, Record: record, At: e.from, Detail: detail,
	})
}

func (j *judgement) judgeHead(h *head, how trust) {
	if how == headSigned && h.Writer != j.writer {
		how = headForged
	}
	j.chain = j.mainChain(nil)
	say := func(what, detail string) {
		j.report.Problems = append(j.report.Problems, Problem{Kind: what, Detail: detail})
	}
	switch how {
	case headAbsent:
		if len(j.messages) > 0 {
			say(ProblemHeadMissing, "there is no signed head: nobody can tell whether the end of the chain is there")
		}
	case headForged:
		say(ProblemForged, "the head of the chain is not genuine")
	case headForeign:
		say(ProblemHeadUnknownKey, "the head is signed with a key that is not known here: it proves nothing")
	case headSigned:
		j.head, j.chain = h, j.mainChain(h)
	}
}

// sort separates what can be of the chain from what cannot.
func (j *judgement) sort() {
	slices.SortFunc(j.messages, func(a, b *examined) int { return cmp.Compare(a.seq, b.seq) })
	for _, e := range j.messages {
		switch {
		case e.whole && e.chain == j.chain:
			j.byNum[e.number] = append(j.byNum[e.number], e)
		default:
			j.strange = append(j.strange, e)
		}
	}
}

// choose walks the chain from its end to its beginning.
func (j *judgement) choose() {
	numbers := slices.SortedFunc(maps.Keys(j.byNum), func(a, b uint64) int { return cmp.Compare(b, a) })
	var next *examined
	want, known := digest{}, false
	if j.head != nil && (len(numbers) == 0 || numbers[0] < j.head.Batch) {
		lowest := uint64(1)
		if len(numbers) > 0 {
			lowest = numbers[0] + 1
		}
		j.gaps = append(j.gaps, gap{from: lowest, to: j.head.Batch})
	}
	for _, n := range numbers {
		if next != nil && next.number != n+1 {
			j.gaps = append(j.gaps, gap{from: n + 1, to: next.number - 1, next: next})
			known = false
		}
		if j.head != nil && n == j.head.Batch {
			signed, _ := hexDigest(j.head.Hash)
			if known && want != signed && j.has(n, signed) {
				j.problem(ProblemAltered, next, next.first, "it does not follow from the signed head")
				j.wrong[next] = true
			}
			want, known = signed, true
		}
		next = j.pick(n, want, known)
		j.chosen = append(j.chosen, next)
		want, known = next.prev, true
	}
	if next == nil {
		return
	}
	if next.number > 1 {
		j.gaps = append(j.gaps, gap{from: 1, to: next.number - 1, next: next})
	} else if next.prev != (digest{}) || next.first != 1 {
		j.problem(ProblemForged, next, next.first, "a chain does not begin like this")
	}
}

func (j *judgement) has(n uint64, hash digest) bool {
	return slices.ContainsFunc(j.byNum[n], func(e *examined) bool { return e.hash == hash })
}

func (j *judgement) chosenFor(n uint64) *examined {
	i, ok := slices.BinarySearchFunc(j.chosen, n, func(e *examined, n uint64) int { return cmp.Compare(n, e.number) })
	if !ok {
		return nil
	}
	return j.chosen[i]
}

// pick takes the batch that has the hash its successor names. Behind a hole
// there is none: then the one that itself follows from what is before it.
func (j *judgement) pick(n uint64, want digest, known bool) *examined {
	candidates := j.byNum[n]
	follows := func(e *examined) bool { return n == 1 || j.has(n-1, e.prev) }
	if known {
		if i := slices.IndexFunc(candidates, func(e *examined) bool { return e.hash == want }); i >= 0 {
			return candidates[i]
		}
	}
	e := candidates[0]
	if i := slices.IndexFunc(candidates, follows); i >= 0 {
		e = candidates[i]
	}
	if known {
		j.problem(ProblemAltered, e, e.first, "it, or something before it, was written anew: what follows was made for something else")
		j.wrong[e] = true
	}
	return e
}

// judgeCopies names what is there beside the chosen messages: the same again, or
// something else under a number that is taken.
func (j *judgement) judgeCopies() {
	for i, e := range j.chosen {
		originals := 0
		for _, c := range j.byNum[e.number] {
			switch {
			case c.hash != e.hash:
				j.problem(ProblemForged, c, c.first, "another batch has this number and belongs to the chain")
			case c.rewritten:
			case originals == 0:
				originals++
				j.chosen[i] = c
			default:
				j.problem(ProblemDuplicated, c, c.first, "it is there more than once")
				if j.fits(i, c) && !j.fits(i, j.chosen[i]) {
					j.chosen[i] = c
				}
			}
		}
		if j.wrong[e] {
			j.wrong[j.chosen[i]] = true
		}
	}
}

// fits reports whether the message lies between those of its neighbours.
func (j *judgement) fits(i int, c *examined) bool {
	after := i+1 == len(j.chosen) || j.chosen[i+1].rewritten || j.chosen[i+1].seq < c.seq
	before := i == 0 || j.chosen[i-1].rewritten || c.seq < j.chosen[i-1].seq
	return after && before
}

// judgeOrder names the fewest messages that would have to move for all to lie in
// the order they were written in.
func (j *judgement) judgeOrder() {
	var originals []*examined
	for _, e := range slices.Backward(j.chosen) {
		if !e.rewritten {
			originals = append(originals, e)
		}
	}
	if slices.IsSortedFunc(originals, func(a, b *examined) int { return cmp.Compare(a.seq, b.seq) }) {
		return
	}
	stay := longestRising(originals)
	for _, e := range originals {
		if !stay[e] {
			j.problem(ProblemReordered, e, e.first, fmt.Sprintf("it lies at message %d, which is not its place", e.seq))
		}
	}
}

// longestRising returns a longest subsequence whose sequences rise: patience
// sorting, with the way back.
func longestRising(list []*examined) map[*examined]bool {
	var piles []int // index of the smallest end of a run, by its length
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
	stay := map[*examined]bool{}
	for i := piles[len(piles)-1]; i >= 0; i = back[i] {
		stay[list[i]] = true
	}
	return stay
}
