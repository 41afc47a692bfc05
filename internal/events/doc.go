// Package events is the stream of progress events of all requests: a log in memory
// that any caller of a request can follow, start late, read twice, and resume after a
// disconnect. It starts no work and may be lost: the state of a request is in its
// record (internal/requests), and decisions are in the audit log.
//
//	Enqueue ──▶ queue ──▶ log (memory, 15 minutes) ──▶ one follower ──▶ queue ──▶ Read
//	                       │                                            queue ──▶ Read
//	                       └────────── earlier events, after an overflow ──────────▲
//
// With an embedded store the log is in this process. With a shared store it is in the store,
// so that a reader need not be connected to the process that executes its request.
//
// A request never waits for its events: if the log is away, for example because the
// server of the store restarts, events are dropped. A reader runs on its caller's
// goroutine and costs a short queue. Backpressure does not reach the publisher: a slow
// reader overflows only its own queue, and continues from the log. If events are lost
// (too old, too slow, the engine restarted, the process of the request was killed), the
// reader gets ErrGone. It then reports the state of the request instead, and resumes
// from there:
//
//	err := stream.Read(ctx, id, after, emit)
//	if errors.Is(err, events.ErrGone) {
//		from, err := stream.Position(ctx) // before reading the state, so that no event is missed
//		…read the record, emit its state; if it has ended, emit the answer and stop…
//		err = stream.Follow(ctx, id, from, emit)
//	}
//
// Sequences are those of the log. They keep growing after the engine, or the process,
// restarts, so that a sequence of an earlier one is recognised.
package events
