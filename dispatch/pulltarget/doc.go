// Package pulltarget serves agents that pull their tasks, because the router cannot reach
// them. It implements a dispatch.Target, which offers a task, and the leases with which
// agents get the offered tasks.
//
//	owner of the request               any replica                        agent
//	Execute ─ Await ─ offer ─────────▶ Offers ◀─ Leases.Lease ◀────────── POST …/lease
//	            │                                   │ compare-and-set of the record
//	            │ reads the record                  └────────────────────▶ task, token
//	            │                                Leases.Renew ◀─────────── POST …/heartbeat, …/progress
//	            ◀──────────────── the result, as of any task ◀──────────── POST …/result
//
// The record of the request is the only truth about a task: who has it, how often, and
// until when (internal/requests). Offers are hints in memory about where to look; the
// owner of a request repeats them while it waits, and they can be lost. There is no
// queue.
//
// # When a task is given up
//
// The rules are those of package attempt, with the first lease in the place of sending:
//
//	event                            idempotent: false   idempotent: true     health
//	────────────────────────────────────────────────────────────────────────────────────
//	no lease in its share of time    agent_unavailable   agent_unavailable    bad
//	no instance left, not leased     agent_unavailable   agent_unavailable    not counted
//	a lease expires                  outcome_unknown     offered again        bad, after the last
//	the fifth lease expires          -                   deadline_exceeded    bad
//	the deadline passes              outcome_unknown     deadline_exceeded    bad
//
// A lease that is taken while the task is being given up is decided by the record: see
// requests.Record.Finish.
package pulltarget
