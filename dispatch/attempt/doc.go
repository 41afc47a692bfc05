// Package attempt contains the rules for sending one task to one agent that are
// the same for every protocol: how much time an attempt gets, whether the work
// may have been done, whether to retry, and whether the outcome counts for or
// against the agent's circuit breaker. It does not know how an agent is reached:
// a dispatch.Target makes the attempts and reports each failure by one of the
// constructors of [Policy].
//
// # May the work have been done?
//
// From the first byte of a task on, until an answer shows otherwise, its outcome
// is unknown, and the task is never given to another agent. An agent that is
// declared idempotent can be sent a task twice, so for it no outcome is unknown.
//
//	event                           idempotent: false     idempotent: true        health
//	──────────────────────────────────────────────────────────────────────────────────
//	NotSent     by the router       agent_unavailable     agent_unavailable       unknown
//	Unreachable nothing was sent    agent_unavailable (r) agent_unavailable (r)   bad
//	Rejected    agent refuses       agent_unavailable     agent_unavailable       good
//	InvalidInput  input is missing  invalid_input         invalid_input           good
//	Busy        agent is overloaded agent_unavailable     agent_unavailable (r)   unknown
//	Unanswered  connection lost     outcome_unknown (!)   agent_unavailable (r)   bad
//	BadResult   reply is no Result  bad_result (!)        bad_result              bad
//	Ended       before it was sent  deadline_exceeded     deadline_exceeded       bad
//	            no reply in time    outcome_unknown (!)   deadline_exceeded (r)   bad
//	            cancelled           cancelled (!)         cancelled               unknown
//
//	NotPulled   not in its share    agent_unavailable     agent_unavailable       bad
//	LeasesExhausted                 -                     deadline_exceeded       bad
//
// The last two are of agents that pull their tasks; see package pulltarget.
//
// (r) is retried if the time allows. (!) is Outcome.MayHaveExecuted, if anything
// was sent. A timeout counts as bad only if the agent had a fair time to reply.
//
// # Deadline shares
//
// An attempt gets the time until the deadline divided by the attempts left,
// including those of agents on standby. An agent that is not idempotent and has
// been sent its task gets all that remains, because no other attempt can follow;
// only connecting is limited to the share.
package attempt
