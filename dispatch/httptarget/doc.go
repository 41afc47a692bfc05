// Package httptarget sends tasks to agents over HTTP: it is the dispatch.Target
// for endpoints with protocol http. It owns the connections, the agent's tokens,
// the format of requests and replies, and the cancel request. Time limits,
// retries and the meaning of a failure are those of package attempt. It does not
// choose agents, does not fail over, and has no circuit breaker.
//
//	POST {endpoint.url}
//	Authorization: Bearer <token for this agent and this task>
//	Idempotency-Key: <task_id>
//	traceparent: 00-<trace_id>-<new span>-01
//
//	{"task_id":…,"inputs":{…},"deadline":…,"attempt":1}   ─▶
//	                                    ◀─   200 {"status":"success","data":{…}}
//	                                    or   202, and the same Result later
//
// # Asynchronous results
//
// An agent may answer 202 to a Call with AwaitResult. The task contains a
// callback: a URL of the router (Config.PublicURL) and a token for this one task,
// with which the agent sends the Result until the task is due. The deadline of
// such a task is the request's, because the agent's timeout_ms and the share of an
// attempt limit the time until the agent answers, not the accepted work. The body
// of a 202 is ignored. An agent that answers 202 without a callback is cancelled.
//
// # Addresses
//
// An address in the operator's file may lead anywhere. The address of an agent
// that registered itself is called over separate connections behind Config.Guard,
// for tasks and cancel requests. Redirects are not followed: they are a bad
// result.
//
// # Early connections
//
// Prepare begins to open a connection if none is idle, because a task waits for its
// record before it may be sent. The dialer of net/http then returns this connection,
// unless the agent has closed it: a task that was sent over it would have an unknown
// outcome.
//
// # Replies
//
// Package attempt explains what each failure means:
//
//	reply                             failure
//	──────────────────────────────────────────────────
//	200 and a Result                  (none)
//	202, with a callback              (none: pending)
//	202 without, 2xx, 3xx, no Result  BadResult
//	200 and an incomplete body        BadResult, retried if idempotent
//	429                               Busy
//	other 4xx                         Rejected
//	408, 5xx, connection lost         Unanswered
//	none in time                      Ended
//
// Bytes sent are counted on the connection itself, below TLS, because net/http
// does not report whether any part of a failed request left.
package httptarget
