package limits

import (
	"math"
	"sync"
	"time"
)

// windowMinutes is the number of minutes that a TokenBudget counts: the current
// one and the 60 before it. With 60 in total, the first seconds of an hour would
// expire too early. Tokens become available again up to a minute late.
const windowMinutes = 61

// TokenBudget bounds the tokens of the model that this process uses in any 60
// minutes. Its methods may be called from any goroutine.
type TokenBudget struct {
	perHour int

	mu     sync.Mutex
	start  time.Time          // of the first Reserve
	minute int64              // current minute since start; never decreases
	used   [windowMinutes]int // tokens by minute modulo windowMinutes
	total  int                // sum of used
}

// NewTokenBudget returns a budget of perHour tokens, or one without a limit if
// perHour is not positive.
func NewTokenBudget(perHour int) *TokenBudget {
	if perHour <= 0 {
		perHour = math.MaxInt
	}
	return &TokenBudget{perHour: perHour}
}

// Reserve reserves tokens for a call of the model, and reports false if they
// exceed the budget. Reserved tokens count as used, so that concurrent calls stay
// within the budget.
//
// settle replaces the estimate by the tokens that the call used, 0 if it was not
// made. Only its first call has an effect. Without it the estimate remains.
func (b *TokenBudget) Reserve(estimate int, now time.Time) (settle func(actual int), ok bool) {
	if b.perHour == math.MaxInt {
		return func(int) {}, true
	}
	estimate = max(estimate, 0)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advanceTo(now)
	if estimate > b.perHour-b.total {
		return func(int) {}, false
	}
	b.addTokens(b.minute, estimate)
	minute, settled := b.minute, false
	return func(actual int) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if settled {
			return
		}
		settled = true
		if b.minute-minute < windowMinutes { // otherwise it has expired
			// The count comes from the model's provider: bound it, so that a wrong
			// one cannot overflow the sum.
			b.addTokens(minute, min(max(actual, 0), b.perHour)-estimate)
		}
	}, true
}

func (b *TokenBudget) addTokens(minute int64, tokens int) {
	b.used[minute%windowMinutes] += tokens
	b.total += tokens
}

// advanceTo moves the window to now, and removes the minutes that have expired.
func (b *TokenBudget) advanceTo(now time.Time) {
	if b.start.IsZero() {
		b.start = now
	}
	minute := int64(now.Sub(b.start) / time.Minute)
	for n := 0; b.minute < minute && n < windowMinutes; n++ {
		b.minute++
		b.addTokens(b.minute, -b.used[b.minute%windowMinutes])
	}
	b.minute = max(b.minute, minute)
}
