// Package requests owns what a request that is answered later has come to: one
// record a request, the table of what may happen to it, and the book the records
// lie in. The record is the only truth; it is moved by pure transitions, each
// written by compare-and-set, so that of two who move it at once one wins and the
// other decides again. What is decided, who is asked and when a request is given
// up is the router's; what happened for the audit trail is internal/audit's.
//
// Which transition may happen in which state:
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
// A dash is ErrTransition, after the end ErrEnded. The life of a task:
//
//	Send ──▶ sent ──Wait──▶ waiting
//	       ▲  │ │              │
//	Resend └──┘ └──────┬───────┘
//	                   ▼ Finish, Deliver: the first outcome stays
//	                 done
//
// A part has one task at a time, and no further one once its task was delivered or
// may have been (Uncertain).
//
// Moving a request looks like this; fn may be called several times, each time with
// the record as it is by then:
//
//	rec, err := book.Change(ctx, id, func(rec *requests.Record) error {
//		if err := rec.Owned(owner, epoch); err != nil {
//			return err
//		}
//		return rec.Send(requests.Task{ID: taskID, AgentID: agentID, Part: 0, SentAt: now})
//	})
package requests
