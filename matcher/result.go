package matcher

func (r *Result) clear() {
	r.N, r.Total, r.Hidden, r.withheldCount, r.eligibleCount, r.ineligibleCount = 0, 0, 0, 0, 0, 0
}

// cannotImprove reports whether no following agent with the rank or a lower one can
// become a candidate. Ordinals ascend, so at an equal rank the earlier agent remains;
// and if the list is full of eligible candidates, ineligible ones do not fit.
func (r *Result) cannotImprove(rank int) bool {
	return listIsFull(&r.Candidates, r.eligibleCount, rank)
}

// listIsFull reports whether the sorted list[:n] cannot take an agent with the rank or
// a lower one, and the highest ordinal so far.
func listIsFull(list *[MaxCandidates]Candidate, n, rank int) bool {
	return n == MaxCandidates && list[MaxCandidates-1].rank() >= rank
}

// insertCandidate returns the position for a candidate among the eligible, the
// ineligible or the withheld ones, or nil if all positions are taken by better ones.
func (r *Result) insertCandidate(failed GateSet, rank int) *Candidate {
	switch {
	case failed == 0:
		return insertRanked(&r.Candidates, &r.eligibleCount, rank)
	case failed.Has(GateEntitlement):
		return insertRanked(&r.withheld, &r.withheldCount, rank)
	}
	return insertRanked(&r.ineligible, &r.ineligibleCount, rank)
}

// insertRanked inserts a position into the sorted list[:n] for a candidate with the
// highest ordinal so far, which belongs after candidates of the same rank.
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

// mergeIneligible adds the best ineligible candidates to the eligible ones, in final
// order. It fills Candidates from the back, so that no candidate is overwritten before
// it is moved.
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

// rankedBefore reports whether a precedes b in the final order.
func rankedBefore(a, b *Candidate) bool {
	if a.rank() != b.rank() {
		return a.rank() > b.rank()
	}
	return a.Ordinal < b.Ordinal
}
