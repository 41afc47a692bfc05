// Package router is the core: it contains the order of the stages that a request
// goes through. Each stage is a package or one function.
//
//	contract.Request + Caller
//	        │  accept         validate, mask, session (internal/acceptance), idempotency key
//	        │                   ┌ Handle, Stream   synchronous: the caller waits
//	        ├───────────────────┤
//	        │                   └ Submit           asynchronous: stored, 202, then in the background (internal/asyncrun)
//	        │  classify       pinned by the caller or the session, else a proposal of the classifier
//	        │  plan           one match for each part, at most top-k agents, standbys (router/plan)
//	        ├─ ambiguous ───▶ clarify    the caller chooses a reading
//	        ├─ no agent ────▶ fall back  policy A, B or C (internal/fallbackpolicy)
//	        ├─ dry run ─────▶ return the plan
//	        │  record         the decision is durable before any task is sent; the tasks are made meanwhile
//	        │  execute        one task for each part in parallel, failover, callbacks (internal/execution)
//	        │  aggregate      results to one response (router/plan)
//	        ▼  conclude       one terminal state: audit log, session, internal/decisionlog ──▶ contract.Response
//
// A synchronous request ends with this process; after a restart the audit log
// records that it was interrupted. An asynchronous request is stored and changed by
// compare-and-set, so that the next process can resume it.
//
// Everything that is stored is complete. The response to a caller, also to its own
// request, passes the visibility filter (internal/visibility), which removes agents
// that the caller may not use, and labels that only these agents declare.
//
// One View serves a request from start to end. SetView swaps one pointer, so a
// reload never shows a request two registries.
//
//	r, err := router.New(router.Config{}, classifier, dispatcher)
//	r.SetView(router.NewView(snapshot, dispatcher))
//	resp, err := r.Handle(ctx, &contract.Request{Content: contract.Content{Prompt: "review this python code"}}, caller)
package router
