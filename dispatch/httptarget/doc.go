// Package httptarget gives tasks to agents over HTTP: it is the dispatch.Target
// of endpoints with protocol http. It owns the connection, and with it
// everything about one: the token, the share of time each try gets, the retries
// (there are none anywhere else), what a reply must look like, and telling the
// agent to stop when nobody waits any more. It does not choose agents, does not
// go on to another one, and keeps no breaker.
//
//	POST {endpoint.url}
//	Authorization: Bearer <token for this agent and this task>
//	Idempotency-Key: <task_id>
//	traceparent: 00-<trace_id>-<new span>-01
//
//	{"task_id":…,"inputs":{…},"deadline":…,"attempt":1}   ─▶
//	                                    ◀─   200 {"status":"success","data":{…}}
//
// # Was it done?
//
// The one question after a failure is whether the agent may have done the work.
// An outcome is uncertain from the first byte of the request on, until an answer
// settles it; an agent declared idempotent may be asked twice, so for it no
// outcome is.
//
//	what happened                     idempotent: false      idempotent: true
//	─────────────────────────────────────────────────────────────────────────────
//	no connection, nothing sent       agent_unavailable, retried
//	  … and the deadline has passed   deadline_exceeded
//	4xx, a refusal                    agent_unavailable
//	429                               agent_unavailable      … and retried
//	408, 5xx, connection lost         outcome_unknown (!)    agent_unavailable, retried
//	no answer in time                 outcome_unknown (!)    deadline_exceeded, retried in time left
//	200 and no Result, 202, 3xx       bad_result (!)         bad_result
//	200 and half a reply              bad_result (!)         bad_result, retried
//	the caller left                   cancelled (!)          cancelled
//
// (!) uncertain, if anything was sent. "Sent" is counted on the connection
// itself, below TLS: net/http does not say.
//
// # Time
//
// A try may use what remains until the deadline divided by the tries that are
// left, those of agents that may still take over included. When an agent that
// is not idempotent has been sent its task, no other try can follow, so it gets
// all that remains and only connecting is bound to the share.
package httptarget
