package matcher

import "github.com/caprouter/caprouter/contract"

// Query is one classified request, or one subtask of it.
type Query struct {
	Intent string
	// Domains are the request's, unknown included. Duplicates count once, and
	// of more than contract.MaxDomains distinct ones the first count.
	Domains []string
	// PromptBytes is the size of the prompt: what a max_tokens is held against.
	PromptBytes int
	// Caller is who asks; nil is entitled to nothing.
	Caller *contract.Caller
	// DataClasses are the kinds of data found in the request and masked.
	DataClasses []string
	// Only, when set, is the id of the one agent that may be a candidate.
	Only string

	Confidence    float64 // of the classification
	MinConfidence float64 // what it must reach
	NowMS         int64   // Unix milliseconds
}

// callerOrNone is who asks, in the shape of a caller.
func (q *Query) callerOrNone() *contract.Caller {
	if q.Caller == nil {
		return new(contract.Caller)
	}
	return q.Caller
}

// MaxCandidates bounds the candidates of a Result.
const MaxCandidates = 20

// Result is what a match found. It is reused: each match overwrites it.
type Result struct {
	// Candidates holds the N best in final order. Eligible ones are never
	// displaced by ineligible ones; what stands after N has no meaning.
	Candidates [MaxCandidates]Candidate
	N          int

	Total  int // agents that hit and the caller may use
	Hidden int // agents that hit and the caller may not use

	eligibleCount   int // how many of Candidates are, while the match runs
	ineligible      [MaxCandidates]Candidate
	ineligibleCount int // how many of ineligible there are
	withheld        [MaxCandidates]Candidate
	withheldCount   int // how many of withheld there are
}

// Best returns the candidates in final order. They share the Result's memory.
func (r *Result) Best() []Candidate { return r.Candidates[:r.N] }

// Withheld returns the best of the agents that hit and the caller may not use, in
// final order: for the record, not for the caller. They share the Result's memory.
func (r *Result) Withheld() []Candidate { return r.withheld[:r.withheldCount] }

// Candidate is one agent that hit.
type Candidate struct {
	Ordinal     int32   // of the agent in Index.Agents
	Score       int16   // hundredths
	Failed      GateSet // what keeps it from being eligible
	Matched     uint8   // domains of the query it matches, "*" included
	traits      traits
	unavailable unavailability
	violated    bool
}

// Eligible reports whether no gate failed.
func (c *Candidate) Eligible() bool { return c.Failed == 0 }

// rank orders candidates, higher first, up to their ordinals.
func (c *Candidate) rank() int { return combineRank(int(c.Score), int(c.Matched)) }

func combineRank(score, matched int) int { return score<<8 | matched }

// Match finds the agents whose score before violations reaches the threshold.
// It allocates nothing. A nil live is that of active agents.
func (x *Index) Match(q *Query, live Live, res *Result) {
	x.search(q, live, x.threshold, res)
}

// Nearest finds every agent with a positive score before violations: the near
// misses of a request nobody is eligible for. Its cost grows with the agents
// that declare the intent or one of the domains.
func (x *Index) Nearest(q *Query, live Live, res *Result) {
	x.search(q, live, 1, res)
}

// search finds the agents whose base score reaches hitAt.
func (x *Index) search(q *Query, live Live, hitAt int, res *Result) {
	res.clear()
	var w listMerge
	w.chooseLists(x, q, hitAt)
	all := q.Caller != nil && (q.Caller.AllAgents || q.Caller.AllScopes)
	for w.nextHit() {
		if !all && (q.Caller == nil || !q.Caller.MayUse(x.agents[w.ord].ID)) {
			res.Hidden++
			if !listIsFull(&res.withheld, res.withheldCount, combineRank(w.base, w.matched)) {
				x.addCandidate(&w.mergedAgent, GateEntitlement, q, live, res)
			}
			continue
		}
		res.Total++
		if !res.cannotImprove(combineRank(w.base, w.matched)) {
			x.addCandidate(&w.mergedAgent, 0, q, live, res)
		} else if all && res.cannotImprove(w.bestRank) {
			res.Total += w.skipRest()
		}
	}
	res.mergeIneligible()
}

// addCandidate puts the agent a walk met among the candidates or, when it fails the gate
// of entitlement already, among the withheld, if it is one of the best of them.
func (x *Index) addCandidate(m *mergedAgent, failed GateSet, q *Query, live Live, res *Result) {
	score := m.base
	violated := exceedsTokens(q.PromptBytes, int(x.profiles[m.ord].maxTokens))
	if violated {
		score -= x.weights.Violation
	}
	failed |= x.failedGates(m.ord, score, q)
	unfit := live.unavailability(m.ord, q.NowMS)
	if unfit != 0 {
		failed |= GateState
	}
	if c := res.insertCandidate(failed, combineRank(score, m.matched)); c != nil {
		*c = Candidate{
			Ordinal: m.ord, Score: int16(score), Failed: failed,
			Matched: uint8(m.matched), traits: m.traits, unavailable: unfit, violated: violated,
		}
	}
}
