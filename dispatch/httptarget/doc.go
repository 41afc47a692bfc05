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
//	                                    or   202, and the same Result later
//
// # Later
//
// A Call with an Await may be accepted with 202. Its task holds a callback: an
// address of the router (Config.PublicURL) and a token for this one task, with
// which the agent delivers the Result until the task is due. The deadline in it
// is the request's: an agent's own timeout_ms and the share of a try bound the
// time until it answers, not the work it has accepted. The body of a 202 is not
// looked at. Whoever accepts without a callback is told to stop.
//
// # Whose address it is
//
// An address in the operator's file is called wherever it leads. One with which
// an agent registered itself is called through connections of its own, behind
// Config.Guard: the task with its token, and the request to stop. A redirect is a
// bad result, so neither goes on to anybody else.
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
//	  … its address may not be called agent_unavailable
//	4xx, a refusal                    agent_unavailable
//	429                               agent_unavailable      … and retried
//	408, 5xx, connection lost         outcome_unknown (!)    agent_unavailable, retried
//	no answer in time                 outcome_unknown (!)    deadline_exceeded, retried in time left
//	202, with a callback              (later)                (later)
//	202 without, 3xx, no Result       bad_result (!)         bad_result
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
