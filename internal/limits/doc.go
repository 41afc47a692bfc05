// Package limits counts what may not be had without end: how often a principal
// asks for something ([Limiter]), and how much of the model all of them together
// use in an hour ([TokenBudget]). It says yes or no, and when to come back. What
// a no means is for who asked: the edge, the router, the client of the model.
//
//	classify := limits.New("classify", limits.Rate{PerSecond: 20, Burst: 40})
//	if state, ok := classify.Take(limits.PrincipalOf(caller), now); !ok {
//		return &contract.Error{Code: contract.CodeRateLimited, Limit: &state, …}
//	}
//
// Nothing here starts a goroutine, reads a clock or grows: memory is bounded
// whoever comes. What cannot be told apart any more is limited together, never
// let through.
package limits
