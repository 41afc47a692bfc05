// Package limits counts what callers and the model may use: how often each
// principal may use an operation ([Limiter], a token bucket per principal), and
// how many tokens of the model the process may use in an hour ([TokenBudget]).
// Callers decide what happens if a limit is reached.
//
//	classify := limits.New("classify", limits.Rate{PerSecond: 20, Burst: 40})
//	if state, ok := classify.Take(limits.PrincipalOf(caller), now); !ok {
//		return &contract.Error{Code: contract.CodeRateLimited, Limit: &state, …}
//	}
//
// The package starts no goroutines, reads no clock and uses bounded memory. If
// there are too many principals to count each of them, the surplus shares one
// limit, so that a limit cannot be evaded by inventing principals.
package limits
