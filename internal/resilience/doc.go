// Package resilience keeps one failing peer from costing everybody: a circuit
// breaker that stops asking, and a bounded retry. It wraps failsafe-go and
// settles once what that library leaves to each use of it. What counts as a
// failure of a peer, and which failure may be repeated, is the caller's to say.
//
// A caller who leaves is nobody's failure: context.Canceled neither opens a
// breaker nor is it retried.
//
// The breaker:
//
//	         Failures in a row
//	closed ──────────────────────▶ open ◀──────────────┐
//	  ▲                              │ OpenFor passed   │ the trial failed
//	  │      the trial succeeded     ▼                  │
//	  └────────────────────────── half_open ────────────┘
//	                                 │  ▲ the trial was cancelled: no
//	                                 └──┘ verdict, the next call is the trial
//
// Each admitted call holds a [Permit] and ends with one verdict on it:
//
//	permit, ok := breaker.Allow()
//	if !ok {
//		return errUnavailable
//	}
//	err := call(ctx)
//	breaker.Record(permit, err) // or Success, Failure, Ignore
package resilience
