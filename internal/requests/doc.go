// Package requests stores asynchronous requests: one record for each request, the
// table of its states and transitions, and the store of the records. The record is the only mutable truth about a request. It changes by pure transitions,
// each written by compare-and-set: if two processes write at the same time, one
// succeeds and the other decides again with the new record. Planning, choosing agents
// and deadlines belong to the router; the history of decisions to internal/audit.
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
//	TakeOver    epoch+1    epoch+1   epoch+1        -
//	End         ended      ended     ended          -
//
// A dash is ErrTransition, or ErrEnded after the end. The life of a task:
//
//	Send ──▶ sent ──Wait──▶ waiting
//	       ▲  │ │              │
//	Resend └──┘ └──────┬───────┘
//	                   ▼ Finish, Deliver: the first outcome stays
//	                 done
//
// A part of a request has one open task at a time. It gets no further task if an agent
// has delivered a result, or may have done the work (Uncertain).
//
// To resume requests after a restart, a process lists the open ones and takes each of
// them over, which increments its epoch. A process that was believed dead fails
// CheckOwner from then on:
//
//	rec, err := store.Update(ctx, id, func(rec *requests.Record) error {
//		if err := rec.CheckOwner(owner, epoch); err != nil {
//			return err
//		}
//		return rec.Send(requests.Task{ID: taskID, AgentID: agentID, Part: 0, SentAt: now})
//	})
package requests
