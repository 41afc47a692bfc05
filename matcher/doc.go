// Package matcher decides which agents may serve a classified request: fixed
// integer arithmetic over the registry, a set of gates, one total order
// (003 §3). It takes values and returns values. No clock, no I/O, no
// randomness, no map order: the same input gives the same bytes.
//
// It does not classify, does not choose how many agents are used, dispatches
// nothing, and owns no agent's live state beyond the words it reads.
//
// # The arithmetic
//
// Scores are hundredths. With the default [Weights]:
//
//	  50   the agent declares the intent
//	+ 30   for each domain of the request the agent declares, at most 60;
//	       a declared "*" counts as one more domain when the agent leaves a
//	       domain of the request unmatched
//	= base
//	− 20   once, when the request violates one of the agent's constraints
//	= score                                                      (−20 … 110)
//
// The intent and the domain "unknown" match nothing; "unknown" is still a
// domain that a "*" can count. An agent hits when its base reaches the
// threshold, and is eligible when it hits and no gate failed; the threshold is
// also a gate on the score, so a violation can cost an agent its eligibility.
//
// The order of candidates, best first:
//
//	score desc · matched domains desc · specificity · priority desc · id asc
//
// where the agent that declares fewer intents and domains is more specific, and
// one that declares "*" is less specific than any that does not.
//
// # The index
//
// Agents are numbered in the static part of that order (specificity, priority,
// id): the ordinal is the tie-break, and the order is (score desc, matched
// desc, ordinal asc). Each intent, each domain and each (intent, domain) pair
// has the sorted list of the ordinals that declare it. One merge of at most six
// such lists meets every agent that can hit, in ordinal order, with everything
// it matches:
//
//	intent code_review, domains python, docs
//
//	(code_review, python)  0 ─── 3 ──────── 9 ──▶
//	(code_review, docs)    ───── 3 ── 7 ───────▶    3: intent, python, docs
//	(code_review, *)       ──────────── 8 ─────▶    8: intent, *
//
// Which lists must be walked follows from the weights and the threshold alone
// (see plan), so nothing is lost for any of them, and the cost grows with the
// agents that match, not with the registry. Match allocates nothing.
//
// An index takes 24 bytes for each agent and 4 for each of its intents, domains
// and (intent, domain) pairs, plus 8 for each distinct pair; an agent with more
// than 256 pairs is kept out of them (see maxPairs), so memory stays linear in
// what is declared. That is about 100 bytes for an agent with two or three of
// each. No label is ever concatenated with another one, so no content of a label
// can make two of them collide.
package matcher
