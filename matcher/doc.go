// Package matcher decides which agents may serve a classified request, with
// integer arithmetic over the catalogue, a set of gates and one total order. It
// is pure: no clock, no I/O, no randomness, no map order. The same input has the
// same result.
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
// If a request means one of several intents (Query.Tied), the intent counts only
// for agents that declare all of them, because any other agent may be the wrong one.
//
// The intent and the domain "unknown" match nothing, but a "*" can count "unknown"
// as a domain. An agent is a hit if its base reaches the threshold, and is eligible
// if it is a hit and passes all gates. The threshold is also a gate on the score, so
// an agent can be ineligible because of a violation.
//
// The order of candidates, best first:
//
//	score desc · matched domains desc · specificity · priority desc · id asc
//
// An agent that declares fewer intents and domains is more specific. An agent that
// declares "*" is less specific than all agents that do not.
//
// # The index
//
// Agents are numbered in the static part of that order (specificity, priority,
// id): the ordinal is the tie-break, and the order is (score desc, matched
// desc, ordinal asc). Each intent, each domain and each (intent, domain) pair
// has a posting list: the sorted ordinals of the agents that declare it. One merge
// of at most six posting lists visits every possible hit in ordinal order, with
// everything that the agent matches:
//
//	intent code_review, domains python, docs
//
//	(code_review, python)  0 ─── 3 ──────── 9 ──▶
//	(code_review, docs)    ───── 3 ── 7 ───────▶    3: intent, python, docs
//	(code_review, *)       ──────────── 8 ─────▶    8: intent, *
//
// The weights and the threshold determine which lists are merged (see chooseLists).
// The cost grows with the matching agents, not with the registry. Match does not
// allocate.
//
// An index takes 24 bytes for each agent and 4 for each of its intents, domains
// and (intent, domain) pairs, plus 8 for each distinct pair. An agent with more
// than 256 pairs has no pairs (see maxPairs), so that memory is linear in the number
// of declarations: about 100 bytes for an agent with two or three of each. Labels
// are never concatenated, so two pairs cannot collide.
package matcher
