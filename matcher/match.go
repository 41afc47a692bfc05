package matcher

import "github.com/caprouter/caprouter/contract"

// Query is one classified request, or one subtask of it.
type Query struct {
	Intent string
	// Tied are further intents that the request may mean instead. If there are
	// any, the intent counts only for agents that declare all of them, at most
	// MaxTied.
	Tied []string
	// Domains are the domains of the request, including contract.Unknown.
	// Duplicates and domains after the first contract.MaxDomains distinct ones do
	// not count.
	Domains []string
	// PromptBytes is the size of the prompt, from which its tokens are estimated.
	PromptBytes int
	// Caller sent the request; nil may use no agent.
	Caller *contract.Caller
	// DataClasses are the kinds of data that were masked in the prompt and the
	// history. InputClasses are those of the inputs, which no requirement counts.
	DataClasses, InputClasses []string
	// Only is the id of the only possible candidate; "" means any agent.
	Only string

	Confidence    float64 // of the classification
	MinConfidence float64 // least confidence that suffices
	NowMS         int64   // Unix milliseconds
}

// MaxTied bounds the tied intents of a Query.
const MaxTied = 3

// callerOrNone returns the caller, or one without rights if there is none.
func (q *Query) callerOrNone() *contract.Caller {
	if q.Caller == nil {
		return new(contract.Caller)
	}
	return q.Caller
}

// MaxCandidates bounds the candidates of a Result.
const MaxCandidates = 20

// Result contains the candidates of one match. It is owned by one goroutine, which may
// reuse it: each match overwrites it.
type Result struct {
	// Candidates[:N] are the best candidates in final order. An ineligible
	// candidate never displaces an eligible one.
	Candidates [MaxCandidates]Candidate
	N          int

	Total  int // hits that the caller may use
	Hidden int // hits that the caller may not use

	eligibleCount   int // of Candidates, during the match
	ineligible      [MaxCandidates]Candidate
	ineligibleCount int // length of ineligible
	withheld        [MaxCandidates]Candidate
	withheldCount   int // length of withheld
}

// Best returns the candidates in final order. They share the Result's memory.
func (r *Result) Best() []Candidate { return r.Candidates[:r.N] }

// Withheld returns the best hits that the caller may not use, in final order. They are
// for the audit log, not for the caller, and share the Result's memory.
func (r *Result) Withheld() []Candidate { return r.withheld[:r.withheldCount] }

// Candidate is a hit.
type Candidate struct {
	Ordinal     int32   // of the agent in Index.Agents
	Score       int16   // hundredths
	Failed      GateSet // gates that the agent does not pass
	Matched     uint8   // domains of the query it matches, "*" included
	traits      traits
	unavailable unavailability
	violated    bool
}

// Eligible reports whether no gate failed.
func (c *Candidate) Eligible() bool { return c.Failed == 0 }

// rank orders candidates, the highest first. Ordinals decide between equal ranks.
func (c *Candidate) rank() int { return combineRank(int(c.Score), int(c.Matched)) }

func combineRank(score, matched int) int { return score<<8 | matched }

// Match finds the agents whose score before violations reaches the threshold. It does
// not allocate. If live is nil, all agents are active.
func (x *Index) Match(q *Query, live Live, res *Result) {
	x.search(q, live, x.threshold, res)
}

// Nearest finds the agents with a positive score before violations: the near misses of
// a request without an eligible agent. Its cost grows with the agents that declare the
// intent or one of the domains.
func (x *Index) Nearest(q *Query, live Live, res *Result) {
	x.search(q, live, 1, res)
}

// search finds the agents whose base score reaches minBase.
func (x *Index) search(q *Query, live Live, minBase int, res *Result) {
	res.clear()
	var w listMerge
	w.chooseLists(x, q, minBase)
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

// addCandidate adds an agent to the candidates if it is one of the best. If failed
// contains GateEntitlement, it adds the agent to the withheld ones instead.
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
