package llm

import "sync"

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
