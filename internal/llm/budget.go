package llm

import (
	"errors"
	"net/http"
	"sync"
)

// TokenBudget limits the tokens that calls use. Reserve reserves an estimate
// and reports whether it is available; adjust then replaces it with the actual
// number, 0 if the call was not made. Both are safe for concurrent use.
type TokenBudget interface {
	Reserve(estimate int) (adjust func(actual int), ok bool)
}

// noTokenBudget is the unlimited budget.
type noTokenBudget struct{}

// Reserve always succeeds.
func (noTokenBudget) Reserve(int) (func(int), bool) { return func(int) {}, true }

// bytesPerToken is the usual ratio in English. The actual count corrects the
// estimate.
const bytesPerToken = 4

// estimateTokens returns a rough upper bound of the tokens of a call.
func (r *Request) estimateTokens() int {
	return (len(r.System)+len(r.User)+bytesPerToken-1)/bytesPerToken + max(r.MaxOutputTokens, 0)
}

// actualTokens returns the tokens of a call: the provider's count or, without
// one, the estimate. Calls that were not sent or were rejected cost nothing.
func actualTokens(estimate int, reply *Reply, err error) int {
	if reply != nil {
		if said := reply.Tokens.Input + reply.Tokens.Output; said > 0 {
			return said
		}
		return estimate
	}
	if e, ok := errors.AsType[*Error](err); ok && (e.Unsent || e.Status >= http.StatusMultipleChoices) {
		return 0
	}
	return estimate
}

// The retry budget in units of 1/20 retry: initially one retry, each call adds
// one unit, at most ten retries are saved. n calls cause at most 1.05 n + 1
// exchanges, however often the model fails.
const (
	retryCost          = 20
	earnedPerCall      = 1
	initialRetryBudget = 1 * retryCost
	maxRetryBudget     = 10 * retryCost
)

// retryBudget limits retries, so that they do not multiply the load of a
// failing server.
type retryBudget struct {
	mu   sync.Mutex
	left int
}

// addCall credits a call.
func (b *retryBudget) addCall() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = min(b.left+earnedPerCall, maxRetryBudget)
}

// takeRetry takes a retry, if one is available.
func (b *retryBudget) takeRetry() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left < retryCost {
		return false
	}
	b.left -= retryCost
	return true
}
