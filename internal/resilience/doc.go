// Package resilience contains a circuit breaker and a bounded retry for calls to
// other processes, and a backoff for loops that repeat something until it succeeds.
// The caller decides which outcome counts as a failure of the
// peer, and which failure may be retried. In both, context.Canceled is not a
// failure of the peer: it neither opens a breaker nor is it retried.
//
// The states of a [Breaker]:
//
//	         consecutive failures
//	closed ──────────────────────▶ open ◀──────────────┐
//	  ▲                              │ OpenFor passed   │ the trial failed
//	  │      the trial succeeded     ▼                  │
//	  └────────────────────────── half_open ────────────┘
//	                                 │  ▲ the trial was released without
//	                                 └──┘ a result: the next call is a trial
//
// Each admitted call holds a [Permit] and records one result on it:
//
//	permit, ok := breaker.Allow()
//	if !ok {
//		return errUnavailable
//	}
//	err := call(ctx)
//	breaker.RecordError(permit, err) // or RecordSuccess, RecordFailure, Release
package resilience
