// Package tickets owns policy C's memory (003 §5): requests that nobody may serve
// become tickets, and similar ones share one, so that a team sees which agent to
// build next. It does not decide that nobody serves a request (the router does),
// nor what the missing agent looks like (package fallback), nor who may see a
// ticket (the door).
//
//	            ┌──────── similar to an open ticket of the same tenant ─────────┐
//	            │                                                               ▼
//	Propose ────┤                                                   join: count, example, suggestion
//	            │                                                               │
//	            └── not similar ──▶ open ──▶ open ticket ◀──────────────────────┘
//	                                             │
//	                                           Close ──▶ closed: nothing joins it any more
//
// A [Desk] keeps every ticket in one key of a store's bucket; each change is a
// compare-and-set on its revision that reloads and decides again when it lost, so
// that no request is lost from a count. What it has in memory, the words of open
// tickets and the order of all, is derived, and rebuilt by [Open]. Texts are masked
// before they come here; callers are counted by a salted hash and not named.
//
// Where a [Webhook] is set, who listens is told that a ticket was opened, that it
// has grown to 10, 100, 1,000 … requests, and that it was closed: signed as
// Standard Webhooks says, at least once. What is still to be told lies in the
// ticket's own record, so that it survives the process.
//
//	desk, err := tickets.Open(ctx, tickets.Config{Bucket: bucket, NewID: router.NewID})
//	proposal, err := desk.Propose(ctx, &tickets.Demand{Unmet: unmet, RequestID: id})
//	group.Go("tickets", desk.Run)
package tickets
