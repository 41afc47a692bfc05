// Package requests stores asynchronous requests, and synchronous ones that wait for a
// callback: one record for each request, the table of its states and transitions, and
// the store of the records. The record is the only mutable truth about a request. It
// changes by pure transitions, each written by compare-and-set: if two processes write
// at the same time, one succeeds and the other decides again with the new record.
// Planning, choosing agents and deadlines belong to the router; the history of decisions
// to internal/audit.
//
// Transitions by state:
//
//	            accepted   planned   running        ended
//	Plan        planned    -         -              -
//	Start       -          running   -              -
//	Send        -          -         task sent      -
//	Resend      -          -         task sent      -
//	Wait        -          -         task waiting   -
//	Finish      -          -         task done      -
//	Deliver     -          -         task done      the same again
//	Lease       -          -         task waiting   -
//	Renew       -          -         task waiting   -
//	TakeOver    epoch+1    epoch+1   epoch+1        -
//	End         ended      ended     ended          -
//	AdoptEnd    -          -         -              epoch+1
//
// A dash is ErrTransition, or ErrEnded after the end. The life of a task:
//
//	Send ──▶ sent ──Wait──▶ waiting
//	       ▲  │ │              │
//	Resend └──┘ └──────┬───────┘
//	                   ▼ Finish, Deliver: the first outcome stays
//	                 done
//
// A task that its agent pulls is waiting from the start. Until it is done, any process may
// give it to the agent (Lease, Renew), see [Task.PhaseAt]:
//
//	offered ──Lease──▶ leased ──Renew──▶ leased ──the lease expires──▶ offered again, or given up
//
// A part of a request has one open task at a time. It gets no further task if an agent
// has delivered a result, or may have done the work (Uncertain).
//
// To resume the requests of a process that has ended, another one lists the open ones
// and takes each abandoned one over (IsAbandoned), which increments its epoch. A process
// that was believed dead fails CheckOwner from then on. A request that has ended is open
// until its end is recorded everywhere else; one process does that, its owner:
//
//	rec, err := store.Update(ctx, id, func(rec *requests.Record) error {
//		if err := rec.CheckOwner(owner, epoch); err != nil {
//			return err
//		}
//		return rec.Send(requests.Task{ID: taskID, AgentID: agentID, Part: 0, SentAt: now})
//	})
package requests
