// Package mcptarget sends tasks to tools of MCP servers: it is the dispatch.Target for
// endpoints with protocol mcp. It builds the arguments of the tool from the task, and the
// Result of the task from that of the tool. Time limits and the meaning of a failure are
// those of package attempt. The tool is called by an [Invoker], which owns connections,
// retries after a failed connection, and validation.
//
//	endpoint:
//	  protocol: mcp
//	  action: weather.query
//	  arguments:
//	    ubicacion: { from: prompt, match: '(?i)weather in ([\p{L}\p{M} ]+)', default: Madrid }
//
// # Results
//
// The data of a Result has the type of the tool's result, its content, and structured
// content if there is any. answer is its text. An error that the tool reports is a Result
// with the status failure, as of any other agent. Other errors:
//
//	error                                       failure
//	──────────────────────────────────────────────────────────────
//	SERVER_UNAVAILABLE                          Unreachable
//	TIMEOUT                                     deadline_exceeded
//	OUTCOME_UNKNOWN                             Unanswered
//	RATE_LIMITED                                Busy
//	BAD_RESULT                                  BadResult
//	AUDIT_UNAVAILABLE                           NotSent
//	INVALID_INPUT, if the request has no value  InvalidInput
//	for a required argument
//	INVALID_INPUT, FORBIDDEN and the others     Rejected
//	the context ended                           Ended
package mcptarget
