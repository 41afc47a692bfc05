package matcher

func (r *Result) clear() {
	r.N, r.Total, r.Hidden, r.withheldCount, r.eligibleCount, r.ineligibleCount = 0, 0, 0, 0, 0, 0
}

// cannotImprove reports that no agent still to come with the rank or a lower one can
// be among the candidates: ordinals ascend, so at an equal rank whoever came
// first stays, and with that many eligible there is no room for ineligible ones.
func (r *Result) cannotImprove(rank int) bool {
	return listIsFull(&r.Candidates, r.eligibleCount, rank)
}

// listIsFull reports that list[:n], which is in order, has no room for an agent with the
// rank or a lower one, and the highest ordinal so far.
func listIsFull(list *[MaxCandidates]Candidate, n, rank int) bool {
	return n == MaxCandidates && list[MaxCandidates-1].rank() >= rank
}

// insertCandidate makes room for a candidate among the eligible, the ineligible or the
// withheld ones, or returns nil when the best are better.
func (r *Result) insertCandidate(failed GateSet, rank int) *Candidate {
	switch {
	case failed == 0:
		return insertRanked(&r.Candidates, &r.eligibleCount, rank)
	case failed.Has(GateEntitlement):
		return insertRanked(&r.withheld, &r.withheldCount, rank)
	}
	return insertRanked(&r.ineligible, &r.ineligibleCount, rank)
}

// insertRanked makes room in list[:n], which is in order, for a candidate with the
// highest ordinal so far: it goes behind its equals.
func insertRanked(list *[MaxCandidates]Candidate, n *int, rank int) *Candidate {
	i := *n
	if i < MaxCandidates {
		*n++
	} else if i--; list[i].rank() >= rank {
		return nil
	}
	for i > 0 && list[i-1].rank() < rank {
		list[i] = list[i-1]
		i--
	}
	return &list[i]
}

// mergeIneligible fills the room the eligible candidates leave with the best ineligible
// ones, in final order: from the back, so that nothing is overwritten unread.
func (r *Result) mergeIneligible() {
	e, f := r.eligibleCount-1, min(r.ineligibleCount, MaxCandidates-r.eligibleCount)-1
	r.N = e + f + 2
	for i := r.N - 1; f >= 0; i-- {
		if e >= 0 && rankedBefore(&r.ineligible[f], &r.Candidates[e]) {
			r.Candidates[i] = r.Candidates[e]
			e--
		} else {
			r.Candidates[i] = r.ineligible[f]
			f--
		}
	}
}

// rankedBefore is the order of candidates.
func rankedBefore(a, b *Candidate) bool {
	if a.rank() != b.rank() {
		return a.rank() > b.rank()
	}
	return a.Ordinal < b.Ordinal
}
