package matcher

func (r *Result) reset() {
	r.N, r.Total, r.Hidden, r.kept, r.eligible, r.failed = 0, 0, 0, 0, 0, 0
}

// settled reports that no agent still to come with the rank or a lower one can
// be among the candidates: ordinals ascend, so at an equal rank whoever came
// first stays, and with that many eligible there is no room for ineligible ones.
func (r *Result) settled(rank int) bool {
	return full(&r.Candidates, r.eligible, rank)
}

// full reports that list[:n], which is in order, has no room for an agent with the
// rank or a lower one, and the highest ordinal so far.
func full(list *[MaxCandidates]Candidate, n, rank int) bool {
	return n == MaxCandidates && list[MaxCandidates-1].rank() >= rank
}

// room makes room for a candidate among the eligible, the ineligible or the
// withheld ones, or returns nil when the best are better.
func (r *Result) room(failed GateSet, rank int) *Candidate {
	switch {
	case failed == 0:
		return insert(&r.Candidates, &r.eligible, rank)
	case failed.Has(GateEntitlement):
		return insert(&r.withheld, &r.kept, rank)
	}
	return insert(&r.ineligible, &r.failed, rank)
}

// insert makes room in list[:n], which is in order, for a candidate with the
// highest ordinal so far: it goes behind its equals.
func insert(list *[MaxCandidates]Candidate, n *int, rank int) *Candidate {
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

// merge fills the room the eligible candidates leave with the best ineligible
// ones, in final order: from the back, so that nothing is overwritten unread.
func (r *Result) merge() {
	e, f := r.eligible-1, min(r.failed, MaxCandidates-r.eligible)-1
	r.N = e + f + 2
	for i := r.N - 1; f >= 0; i-- {
		if e >= 0 && before(&r.ineligible[f], &r.Candidates[e]) {
			r.Candidates[i] = r.Candidates[e]
			e--
		} else {
			r.Candidates[i] = r.ineligible[f]
			f--
		}
	}
}

// before is the order of candidates.
func before(a, b *Candidate) bool {
	if a.rank() != b.rank() {
		return a.rank() > b.rank()
	}
	return a.Ordinal < b.Ordinal
}
