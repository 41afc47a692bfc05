// Package events owns what happens to a request while it happens: a stream in
// memory that everybody who asks for a request can follow, late, twice, and from
// where they left off. It drives no work and may be lost; what a request has come
// to is its record's (internal/requests), and what was decided the audit trail's.
//
//	Publish ──▶ log (memory, 15 minutes) ──▶ one follower ──▶ queue ──▶ Read
//	             │                                            queue ──▶ Read
//	             └────────── what came before, what overflowed ──────────▲
//
// A reader runs on its caller's goroutine and costs a short queue. One that is slow
// fills its own queue only, and reads on from the log. What is lost (too old, too
// slow, the engine began anew) a reader is told with ErrGone; it then shows the
// state of the request instead, and goes on from there:
//
//	err := stream.Read(ctx, id, after, emit)
//	if errors.Is(err, events.ErrGone) {
//		from, err := stream.Position(ctx) // before the state: nothing falls between
//		…read the record, emit its state; ended: emit the answer and stop…
//		err = stream.Follow(ctx, id, from, emit)
//	}
//
// Sequences are the log's own. They go on growing when it begins anew, so that one
// of an earlier life is recognised.
package events
