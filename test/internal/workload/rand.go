package workload

import (
	"math/rand/v2"
	"sync"
	"time"
)

// Rand is a source of random numbers for several goroutines. The same seed yields the
// same sequence, but the scheduler decides which goroutine gets which number.
type Rand struct {
	mu     sync.Mutex
	random *rand.Rand
}

// NewRand returns a source with the seed.
func NewRand(seed uint64) *Rand {
	return &Rand{random: rand.New(rand.NewPCG(seed, seed))} //nolint:gosec // not used for secrets
}

// IntN returns a number from 0 to n-1.
func (r *Rand) IntN(n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.random.IntN(n)
}

// OneIn reports true once in n times on average.
func (r *Rand) OneIn(n int) bool { return r.IntN(n) == 0 }

// DurationUpTo returns a duration from 0 to limit.
func (r *Rand) DurationUpTo(limit time.Duration) time.Duration {
	return time.Duration(r.IntN(int(limit) + 1))
}
