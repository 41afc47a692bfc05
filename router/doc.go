// Package router owns the way of a request: mask, classify, match, plan,
// record, dispatch, aggregate. It decides who gets a task, when the caller is
// asked and when another agent takes over; it does not know how agents are reached
// (dispatch), how text is understood (classifier), how records are written
// (internal/audit, internal/requests) or what HTTP is (internal/rest).
//
//	contract.Request + Caller
//	        │  accept       refuse what is not valid or not offered; mask; recall the session
//	        │  reserveKey   an idempotency key that was sent before has its answer
//	        │                 ┌ Handle, Stream   somebody waits
//	        ├─────────────────┤
//	        │                 └ Submit           on record, 202; then in the background
//	        │  understand   settled by the caller or the session, else Classify: a proposal
//	        ▼
//	     makePlan          one match a part, ≤ topk distinct agents, standbys
//	        ├─ undecided ▶ clarify    the caller chooses a reading
//	        ├─ nobody ───▶ fallBack   policy A, B or C
//	        ├─ dry run ──▶ accepted   nothing is touched
//	        ▼
//	     commit            the decision is on record before anything is given out
//	        ▼
//	     deliver           one task a part, in parallel; failover; results by callback
//	        ▼
//	     aggregate ──▶ conclude: one terminal state, audit, session, log ──▶ contract.Response
//
// A request somebody waits for dies with this process, and the audit log says so
// at the next start (Recover). One that nobody waits for is a record that is moved
// by compare-and-set; another process goes on with it (Resume) and never gives out
// again what may have been done.
//
// What is on record holds everything; what a caller is shown of it, its own answer
// included, passes through package visibility, which leaves out the agents the
// caller may not use, and the labels that only these declare.
//
// One View serves a request from start to end; SetView swaps it as one pointer,
// so a reload never shows a request two registries.
//
//	r, err := router.New(router.Config{}, classifier, dispatcher)
//	r.SetView(router.NewView(snapshot, dispatcher))
//	resp, err := r.Handle(ctx, &contract.Request{Content: contract.Content{Prompt: "review this python code"}}, caller)
package router
