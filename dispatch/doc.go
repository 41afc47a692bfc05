// Package dispatch sends tasks to agents. It admits a task if the agent can take
// one now: a semaphore bounds the tasks of all agents, each instance of an agent has
// a bound of its own, and an instance that fails has a circuit breaker. It does not
// choose agents (the matcher does, with the live state kept here), does not fail over to
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
// # Instances
//
// An agent that registers itself may have several instances, which share its tasks.
// Send chooses the active one that uses the smallest part of its limit; equal ones
// take turns. If an instance has certainly not executed the task, the next one gets
// it, each at most once. The task is recorded once, and checked before each send.
//
//	                    ┌─ i1  active    breaker open    4 of 8
//	agent, limit 8+8 ───┼─ i2  active    breaker closed  3 of 8  ◀─ the next task
//	                    └─ i3  draining                  2, which do not count
//
// For the matcher, the limit of an agent is that of its active instances together,
// and its circuit breaker is open only if those of all active instances are. The
// registry in force decides which instances are active, not the entry of the [Call].
// The tasks of an instance that drains or vanishes continue. An agent of the operator's
// file is its own only instance.
//
// # State
//
// State is kept by agent id and name of the instance, and survives reloads of the
// registry. An agent without tasks in flight and without failures costs one LiveState
// (32 bytes) and a row in a sorted list: the state of an instance exists while it has
// tasks in flight, and from its first failure to the next success.
package dispatch
