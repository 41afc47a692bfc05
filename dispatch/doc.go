// Package dispatch gives tasks to agents. It owns who may be given a task right
// now: one bound on all tasks in flight, one for each agent, and a breaker for
// each agent that fails. It does not choose agents (the matcher does, reading
// the live state kept here), does not try another agent (the router does), and
// does not know how an agent is reached: that is a [Target], one for each
// protocol.
//
//	router ── Send(ctx, Call) ─▶ Dispatcher ── Do(ctx, Call) ─▶ Target ─▶ agent
//	   ▲                             │
//	   └──────── Outcome ────────────┤ verdict on the breaker, live state
//	                                 ▼
//	                          matcher.LiveState
//
// A task that cannot be given out now fails at once and for certain, so that
// the router can go on to the next agent. The one exception is the bound on all
// tasks, which every agent shares: Send waits for a place, but only for a
// quarter of the time the task has left, because a task that waited longer
// would reach its agent without the time to be done.
//
// An agent may accept a task now and deliver its Result later. Such a task gives
// its place among all tasks back and keeps the one at its agent: while it waits
// it costs a goroutine, and slow agents do not keep tasks from the others. The
// breaker judges that the agent has accepted, not how long the work takes.
//
//	Send ─ admission ─ Commit ─ Do ─┬─ Result or Err ───────────────▶ Outcome
//	                                └─ Later ─ Await ─ Result or Err ─▶
//
// A process that stops leaves tasks to the next one by ending their context with
// [ErrHandedBack]: agents go on, and what was sent is Later.
//
// What is known about an agent is kept by its id and survives reloads of the
// registry. An agent with nothing in flight and no failure on its count costs
// one LiveState (32 bytes) and its entry in a sorted list, nothing else: a
// breaker is made at the first failure and dropped at the next success.
package dispatch
