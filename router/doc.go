// Package router owns the way of a request: classify, match, plan, dispatch,
// aggregate. It decides who gets a task and when another agent takes over;
// it does not know how agents are reached (dispatch), how text is understood
// (classifier) or what HTTP is (internal/httpapi).
//
//	contract.Request + Caller
//	        │  accept      refuse what is not valid or not offered
//	        │  Classify    intent, domains, subtasks, confidence: a proposal
//	        ▼
//	     makePlan         one match a part, ≤ topk distinct agents, standbys
//	        ├─ nobody ──▶ fallBack   policy B
//	        ├─ dry run ─▶ accepted   nothing is touched
//	        ▼
//	     deliver          one task a part, in parallel; failover to standbys
//	        ▼
//	     aggregate ──▶ contract.Response (decision inside) ──▶ record
//
// One View serves a request from start to end; SetView swaps it as one pointer,
// so a reload never shows a request two registries.
//
//	r, err := router.New(router.Config{}, classifier, dispatcher)
//	r.SetView(router.NewView(snapshot, dispatcher))
//	resp, err := r.Handle(ctx, &contract.Request{Content: contract.Content{Prompt: "review this python code"}}, caller)
package router
