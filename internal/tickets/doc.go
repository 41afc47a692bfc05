// Package tickets groups requests without an eligible agent (fallback policy C) into
// tickets, so that a team sees which agent to build next. Similar requests share a
// ticket. The router decides that no agent is eligible, package fallback suggests the
// missing agent.
//
//	            ┌──────── similar to an open ticket of the same tenant ─────────┐
//	            │                                                               ▼
//	Propose ────┤                                                   join: count, example, suggestion
//	            │                                                               │
//	            └── not similar ──▶ open ──▶ open ticket ◀──────────────────────┘
//	                                             │
//	                                           Close ──▶ closed: no request joins it any more
//
// A [Service] stores every ticket as one row of a store.Table and changes it by
// compare-and-set, so that no request is missing in a count. Its memory, the words of
// open tickets and their order, is derived and rebuilt by [Open]. Texts are masked by
// the caller; callers are counted by a salted hash without their names.
//
// If a [Webhook] is set, it gets a notice when a ticket was opened, when it has grown to
// 10, 100, 1,000 … requests, and when it was closed: signed as in Standard Webhooks, at
// least once. Pending notices are part of the ticket's record (outbox), so that they
// survive the process.
//
// Replicas that share a bucket set [Replicas]. They send each other the ids of changed
// tickets, and read all tickets now and then, because such messages may be lost. Before
// a service opens a ticket it writes a row of the owner by compare-and-set, and searches
// again if another one has opened a ticket meanwhile, so that similar requests share a
// ticket wherever they arrive. The process that stores a notice delivers it; if it ends,
// another one takes its place, also by compare-and-set.
//
//	service, err := tickets.Open(ctx, tickets.Config{Bucket: bucket, NewID: router.NewID})
//	proposal, err := service.Propose(ctx, &tickets.Demand{Unmet: unmet, RequestID: id})
//	group.Go("tickets", service.Run)
package tickets
