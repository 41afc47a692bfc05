// Package agentkit turns a Go function into an agent to which caprouter can send
// tasks. You write the work; the package implements the rest of the contract:
//
//	work := func(ctx context.Context, t contract.Task) (contract.Result, error) {
//		n := len(strings.Fields(agentkit.Prompt(t)))
//		return agentkit.Answer(fmt.Sprintf("%d words", n)), nil
//	}
//	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
//	defer stop()
//	err := agentkit.Run(ctx, agentkit.Config{
//		AgentID:   "word_counter",
//		RouterURL: "https://router.example",
//		Token:     agentkit.TokenFile("word_counter.token"),
//		Registration: contract.Registration{
//			Match: contract.Match{Intent: []string{"count_words"}, Domains: []string{"text"}},
//		},
//	}, work)
//
// The operator of the router grants the intents and domains in the registry file, and
// issues the token with caprouter agents token word_counter:
//
//	grants:
//	  word_counter: { intents: [count_words], domains: [text] }
//
// # Registration
//
// [Run] serves tasks and keeps the agent registered:
//
//	start       serve · PUT /api/v1/agents/word_counter, with backoff until the router responds
//	running     a heartbeat at the interval of the lease · 404: register again
//	ctx ends    drain · close the listener · tasks in progress · DELETE
//
// It gives up only if the router rejects the first registration: the token, the grant
// or the declaration must then be corrected, and the error contains the router's
// reason. Everything else is logged once and tried again.
//
// An agent with a server of its own calls [Agent.KeepRegistered] or [Agent.Serve]. An
// agent that the registry file declares does not register: create it with [New], with
// only AgentID and JWKSURL, and serve it as an [http.Handler]. Its entry is
//
//	clients:
//	  word_counter:
//	    match: { intent: [count_words], domains: ["*"] }
//	    endpoint: { protocol: http, url: "http://127.0.0.1:9101/" }
//
// # Pulling tasks
//
// An agent that the router cannot reach pulls its tasks: set the protocol of the
// registration to pull, and [Run] serves nothing; or declare the agent with this protocol
// in the registry file, and call [Agent.PullTasks]. At most Registration.MaxInFlight tasks
// are in progress. While the work runs, the package renews the lease of the task; if the
// router does not need the result any more, it cancels the context of the work. An agent
// that is declared idempotent gets a task again if the lease of another worker expires.
//
// # What the package does
//
//	POST /                  executes a task and returns its result
//	POST /{task_id}/cancel  cancels a task
//	GET  /healthz           reports that the agent is up
//
// Only the router has access. Each request carries a token that the router signed
// for this agent and, unless tokens are reused, for this task. The package checks
// signature, audience, issuer, expiry, scope and task against the router's public
// keys, which it fetches from JWKSURL and caches. The router signs with EdDSA or ES256;
// the key determines which of them is accepted. [CallerIdentity] identifies the
// caller of the task. [Caller] is only the subject, which is not unique if several
// issuers or tenants are in use.
//
// A task is executed once. If the registry declares the agent idempotent, the
// router may send the same task_id again after a connection error. The package then
// waits for the execution in progress, or repeats the result of a finished one. It
// keeps the latest few thousand results, in bounded memory, until the process ends.
//
// The context of the work ends at the task's deadline and when the router cancels
// the task. It does not end with the connection: a second attempt after a
// connection error finds the work in progress, and without one the result is sent
// to the task's callback. Return soon after the context is done.
//
// # What the work returns
//
// [Answer] and [Failure] create the two common results; an empty Status means
// success. Data may contain any members that the callers of the agent understand;
// "answer", "text" or "summary" is shown to people.
//
// An error or a panic becomes a Result with status failure and a generic
// explanation. Its text is only logged, because it may contain internal details. To
// give the caller a reason, return Failure("the file is not valid CSV") and a nil
// error.
//
// # Asynchronous results
//
// The router waits on the connection, unless the work calls [AcceptAsync] or takes
// longer than Config.AsyncAfter. Then the package answers 202 Accepted, and sends
// the Result to the callback in the task. It retries with backoff until the router
// accepts the result or rejects it for good, or the deadline has passed.
//
//	received ─ the work returns ───────────────── 200 ─▶ done
//	  │ AcceptAsync, AsyncAfter, connection lost          ▲
//	  ▼                                                   │
//	accepted ─ the work returns ─ POST callback.url ──────┘
//	  │ deadline, cancel: the context ends
//	  ▼
//	failure at the deadline; no result for a cancelled task
//
// [Progress] reports progress in both modes. Results and progress are sent only to
// the origin of JWKSURL and to Config.CallbackHosts. A task without a callback is
// always answered on its connection.
//
// Accepted work is in memory only. For a graceful shutdown of a server of your own,
// call [Agent.Shutdown] after http.Server.Shutdown: it waits for the accepted work.
//
// # Errors
//
// Rejected requests get a problem document (RFC 9457): 400 if the body is not a
// task, 401 without a valid token, 403 if the token is for another task, 404 and
// 405 for an unknown path or method, 413 above 2 MiB, 415 if it is not JSON. For
// the router, each of them guarantees that the task was not begun, so that it may
// send the task to another agent.
package agentkit
