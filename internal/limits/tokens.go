package limits

import (
	"sync"
	"time"
)

// slots are the minutes a TokenBudget remembers: the current one and the sixty
// before it. With sixty in all, the first seconds of an hour would be forgotten
// before it is over. So nothing is, and what was used comes back up to a minute
// late. Coarser slots would come back later and save half a kilobyte.
const slots = 61

// TokenBudget bounds the tokens of the model that this process uses in any
// sixty minutes. Its methods may be called from any goroutine; nil is no bound.
type TokenBudget struct {
	perHour int

	mu     sync.Mutex
	start  time.Time  // the first Reserve
	minute int64      // the current one, since start; it never goes back
	used   [slots]int // by minute modulo slots
	total  int        // of used
}

// NewTokenBudget returns a budget of so many tokens an hour, nil (no bound) for 0.
func NewTokenBudget(perHour int) *TokenBudget {
	if perHour <= 0 {
		return nil
	}
	return &TokenBudget{perHour: perHour}
}

// Reserve sets tokens aside for a call that is about to be made, and reports
// whether there were as many. They count from now on, so that calls under way
// together keep to the budget as well. settle says how many it took indeed, 0
// when the call was not made; its first call counts. What is never settled stays
// as it was estimated.
func (b *TokenBudget) Reserve(estimate int, now time.Time) (settle func(actual int), ok bool) {
	if b == nil {
		return func(int) {}, true
	}
	estimate = max(estimate, 0)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(now)
	if estimate > b.perHour-b.total {
		return func(int) {}, false
	}
	b.book(b.minute, estimate)
	minute, settled := b.minute, false
	return func(actual int) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if settled {
			return
		}
		settled = true
		if b.minute-minute < slots { // else it is forgotten already
			// Counts come from outside: one that is absurd fills the hour, and does
			// not overflow it.
			b.book(minute, min(max(actual, 0), b.perHour)-estimate)
		}
	}, true
}

func (b *TokenBudget) book(minute int64, tokens int) {
	b.used[minute%slots] += tokens
	b.total += tokens
}

// advance forgets the minutes that are over an hour old.
func (b *TokenBudget) advance(now time.Time) {
	if b.start.IsZero() {
		b.start = now
	}
	minute := int64(now.Sub(b.start) / time.Minute)
	for n := 0; b.minute < minute && n < slots; n++ {
		b.minute++
		b.book(b.minute, -b.used[b.minute%slots])
	}
	b.minute = max(b.minute, minute)
}
