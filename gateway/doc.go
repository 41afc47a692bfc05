// Package gateway calls tools on MCP servers. There is one way to a tool, [Gateway.Invoke],
// for every transport and every caller:
//
//	Action ─▶ resolve ─▶ input schema ─▶ circuit breaker ─▶ send ─▶ output schema ─▶ ActionResult
//	                                          ▲                │
//	                                          └──── retry ◀────┘
//
// Each server has a goroutine of its own, which connects, lists the tools, checks that the
// server answers, and connects again with backoff. A server that fails or hangs therefore
// delays neither the start nor the calls of the others:
//
//	disconnected ─▶ connecting ─▶ connected ─▶ connecting …
//	                    │             │ connection lost, or three probes failed
//	                    ▼             ▼
//	                  error ── backoff ──▶ connecting
//
// A call is sent again only if the server has not received it, or if the tool is
// read-only or idempotent, or if the operator declared a retry for it. Otherwise the error
// is OUTCOME_UNKNOWN. A tool that reports an error is never called again.
package gateway
