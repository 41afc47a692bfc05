// Package dispatch sends tasks to agents. It admits a task if the agent can take
// one now: a semaphore bounds the tasks of all agents, each agent has a bound of
// its own, and an agent that fails has a circuit breaker. It does not choose
// agents (the matcher does, with the live state kept here), does not fail over to
// another agent (the caller does), and does not know how an agent is reached: each
// protocol has a [Target].
//
//	router ─ Send(ctx, Call) ─▶ Dispatcher ─ Execute(ctx, Call) ─▶ Target ─▶ agent
//	   ▲                            │
//	   └──────── Outcome ───────────┤ circuit breaker, live state
//	                                ▼
//	                         matcher.LiveState
//
// A task that cannot be sent now fails at once and has certainly not been
// executed, so that the router can fail over. The semaphore is the exception,
// because all agents share it: Send waits for it, but for at most a quarter of the
// task's remaining time, so that the agent has time for the work.
//
// An agent may accept a task and send its Result later. Such a task releases the
// semaphore and keeps its place in the bound of its agent, so that slow agents do
// not delay the tasks of others. For the circuit breaker, accepting is a success.
//
//	Send ─ admission ─ BeforeSend ─ Execute ─┬─ Result or Err ────────────────────▶ Outcome
//	                                         └─ Pending ─ AwaitResult ─ Result or Err ─▶
//
// A process that stops hands its tasks over to the next one by ending their
// context with [ErrHandedOver]: the agents continue, and a task that was sent is
// Pending.
//
// State is kept by agent id and survives reloads of the registry. An agent without
// tasks in flight and without failures costs one LiveState (32 bytes) and an
// entry in a sorted list: a breaker exists from the first failure to the next
// success.
package dispatch
