// Package gateway calls tools on MCP servers. There is one way to a tool, [Gateway.Invoke],
// for every transport and every caller:
//
//	Action ─▶ resolve ─▶ permissions ─▶ pins ─▶ rate limit ─▶ input schema ─▶ redact ─▶ record
//	                                                                                        │
//	ActionResult ◀─ record ◀─ redact ◀─ output schema ◀─ send ◀─ circuit breaker ◀──────────┘
//	                                                      └─ retry ─▶┘
//
// [Gateway.Request] sends the other requests of MCP, for prompts and resources, in the same way.
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
// Servers are added and removed one at a time ([Gateway.Register], [Gateway.Remove]) or with
// their file ([Gateway.Reload]). A server that was removed ends after its calls in flight.
//
// Agents bind capabilities ([Gateway.Bind]). When the server of a binding fails, or another
// one appears, subscribers receive an event ([Gateway.Subscribe]).
//
// A call is sent again only if the server has not received it, or if the tool is
// read-only or idempotent, or if the operator declared a retry for it. Otherwise the error
// is OUTCOME_UNKNOWN. A tool that reports an error is never called again.
package gateway
