package llm

import (
	"errors"
	"net/http"
	"sync"
)

// TokenBudget says whether there are tokens left for a call. Reserve sets an estimate
// aside and reports whether there was as much; settle then says how many it took,
// 0 when the call was not made. Both may be called from any goroutine.
type TokenBudget interface {
	Reserve(estimate int) (settle func(actual int), ok bool)
}

// unbounded is the Budget of a client without one.
type unbounded struct{}

// Reserve returns yes.
func (unbounded) Reserve(int) (func(int), bool) { return func(int) {}, true }

// bytesPerToken is what makers say of English; where a text has fewer, what the
// provider counts puts it right afterwards.
const bytesPerToken = 4

// estimate is how many tokens a call takes at most, roughly.
func (r *Request) estimate() int {
	return (len(r.System)+len(r.User)+bytesPerToken-1)/bytesPerToken + max(r.MaxOutputTokens, 0)
}

// tookOf is how many tokens a call took that was estimated at so many: what the
// provider says, or the estimate where it says nothing. What never reached the
// model and what its server refused took none.
func tookOf(estimate int, reply *Reply, err error) int {
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

// The retry budget, in twentieths of a retry: it starts with one, each call adds
// a twentieth, and no more than ten are saved. However often a model fails, n
// calls become at most 1.05 n + 1 exchanges.
const (
	aRetry      = 20
	perCall     = 1
	firstBudget = 1 * aRetry
	mostBudget  = 10 * aRetry
)

// budget keeps retries from multiplying the load of a server that is failing
// under it.
type budget struct {
	mu   sync.Mutex
	left int
}

// earn adds what a call brings.
func (b *budget) earn() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = min(b.left+perCall, mostBudget)
}

// spend takes one retry, if there is one.
func (b *budget) spend() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left < aRetry {
		return false
	}
	b.left -= aRetry
	return true
}
