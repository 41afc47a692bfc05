package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// dice is what is left to chance. The same seed rolls the same numbers; who gets
// which is up to the scheduler.
type dice struct {
	mu     sync.Mutex
	random *rand.Rand
}

func newDice(seed uint64) *dice {
	return &dice{random: rand.New(rand.NewPCG(seed, seed))} //nolint:gosec // chance, not a secret
}

// below returns a number from 0 to n-1.
func (d *dice) below(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.random.IntN(n)
}

// one reports true once in n times.
func (d *dice) one(n int) bool { return d.below(n) == 0 }

// upTo returns a time of at most longest.
func (d *dice) upTo(longest time.Duration) time.Duration {
	return time.Duration(d.below(int(longest) + 1))
}

// pause waits, and reports whether it was not cut short.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
