// Package agentkit turns a Go function into an agent caprouter can send tasks
// to. You write the work; the kit does the rest of the contract (003 §4):
//
//	work := func(ctx context.Context, t contract.Task) (contract.Result, error) {
//		n := len(strings.Fields(agentkit.Prompt(t)))
//		return agentkit.Answer(fmt.Sprintf("%d words", n)), nil
//	}
//	agent, err := agentkit.New(agentkit.Config{
//		AgentID: "word_counter",
//		JWKSURL: "https://router.example/.well-known/jwks.json",
//	}, work)
//	if err != nil {
//		log.Fatal(err)
//	}
//	log.Fatal(http.ListenAndServe("127.0.0.1:9101", agent))
//
// and in the router's registry:
//
//	clients:
//	  word_counter:
//	    match: { intent: [count_words], domains: ["*"] }
//	    endpoint: { protocol: http, url: "http://127.0.0.1:9101/" }
//
// # What the kit does
//
//	POST /                  a task in, a result out
//	POST /{task_id}/cancel  nobody waits for the task any more
//	GET  /healthz           the agent is up
//
// Nobody but the router gets in. Each call carries a token that the router
// signed for this one agent, and in general for this one task; the kit checks
// signature, audience, issuer, expiry, scope and task against the router's
// public keys, which it fetches from JWKSURL and keeps. [CallerIdentity] is whom
// the work is done for; [Caller] is their name alone, which others may share.
//
// A task is done once. The router may send the same task_id again when it could
// not tell whether the first try arrived (it does so where the registry says
// idempotent: true). The kit then waits for the work that is under way, or
// repeats the answer of work that is done; it remembers the latest few
// thousand tasks, in bounded memory, and forgets them when the process ends.
//
// The context of the work ends at the task's deadline and when the router
// cancels the task. It does not end with the connection: a second try after a
// broken line finds the work still going, and without one the Result goes to the
// task's callback. Return soon after the context is done.
//
// # What the work returns
//
// A [contract.Result] is a verdict with data. [Answer] and [Failure] make the
// two common ones; an empty Status means success. Data may hold whatever the
// agent's callers understand; its members "answer", "text" or "summary" are
// what a person gets to read.
//
// An error, like a panic, becomes a Result with status failure that says only
// that the agent could not do the task: the error's text goes to the log, never
// to the caller, since it may hold what is nobody else's business. To tell the
// caller why, return Failure("the file is not valid CSV") and a nil error.
//
// # Work that takes long
//
// The router waits on the connection, unless the work calls [Later] or takes
// longer than Config.AsyncAfter: then it is told 202, and the Result goes to the
// callback that the task holds, again and again until the router has taken it,
// says that it never will, or the deadline has passed.
//
//	sent ──── the work returns ───────────── 200 ─▶ done
//	  │ Later, AsyncAfter, a broken line             ▲
//	  ▼                                              │
//	accepted ─ the work returns ─ POST callback.url ─┘
//	  │ deadline, cancel: the context ends
//	  ▼
//	failure at the deadline; nothing for a cancelled task
//
// [Progress] tells how far the work is, with or without Later. What is said goes
// to the origin of JWKSURL and to Config.CallbackHosts, and nowhere else. A task
// without a callback is answered on its connection, always.
//
// Accepted work lives in this process only. [Agent.Shutdown] waits for it, behind
// http.Server.Shutdown.
//
// # How it refuses
//
// Refusals are problem documents (RFC 9457): 400 not a task, 401 no valid
// token, 403 the token is for something else, 404 and 405 no such place, 413
// more than 2 MiB, 415 not JSON. The router takes every one of them as a promise
// that the task was not begun, and may give it to another agent.
package agentkit
