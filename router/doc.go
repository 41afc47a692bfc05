// Package router owns the way of a request: mask, classify, match, plan,
// dispatch, aggregate. It decides who gets a task, when the caller is asked and
// when another agent takes over; it does not know how agents are reached
// (dispatch), how text is understood (classifier) or what HTTP is
// (internal/httpapi).
//
//	contract.Request + Caller
//	        │  accept       refuse what is not valid or not offered; mask; recall the session
//	        │  understand   settled by the caller or the session, else Classify: a proposal
//	        ▼
//	     makePlan          one match a part, ≤ topk distinct agents, standbys
//	        ├─ undecided ▶ clarify    the caller chooses a reading
//	        ├─ nobody ───▶ fallBack   policy A or B
//	        ├─ dry run ──▶ accepted   nothing is touched
//	        ▼
//	     deliver           one task a part, in parallel; failover to standbys
//	        ▼
//	     aggregate ──▶ contract.Response (decision inside) ──▶ remember, record
//
// One View serves a request from start to end; SetView swaps it as one pointer,
// so a reload never shows a request two registries. Sessions and open questions
// are in memory, bounded in number and time, each its caller's own.
//
//	r, err := router.New(router.Config{}, classifier, dispatcher)
//	r.SetView(router.NewView(snapshot, dispatcher))
//	resp, err := r.Handle(ctx, &contract.Request{Content: contract.Content{Prompt: "review this python code"}}, caller)
package router
