package auth

import (
	"strings"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/caprouter/caprouter/contract"
)

// tokenCacheBytes is about what remembered tokens may take: some ten thousand.
const tokenCacheBytes = 16 << 20

// verifiedToken is what there is to know of a token that was verified.
type verifiedToken struct {
	caller   *contract.Caller
	validity tokenValidity
	keys     keySource
	key      *verifyKey
}

// tokenCache holds tokens that were verified, by their whole text: a signature costs
// more than the rest of many a request. What it holds was good once. Whoever
// recalls it asks whether it is good still, and so gets the answer he would get
// without a memory, no matter what became of the clock and the keys.
type tokenCache struct {
	entries *otter.Cache[string, *verifiedToken]
}

func newTokenCache(maxBytes uint64, clock *monotonicClock) (*tokenCache, error) {
	entries, err := otter.New(&otter.Options[string, *verifiedToken]{
		MaximumWeight: maxBytes,
		Weigher:       entryWeight,
		// This only keeps the memory free of what nobody will ask for again.
		ExpiryCalculator: otter.ExpiryWritingFunc(func(e otter.Entry[string, *verifiedToken]) time.Duration {
			return time.Unix(e.Value.validity.expires, 0).Sub(clock.readClock().latest)
		}),
		Clock: clock,
		// Housekeeping is short and has no callbacks: whoever gives cause for it
		// does it, and the memory starts no goroutine.
		Executor: func(work func()) { work() },
	})
	if err != nil {
		return nil, err
	}
	return &tokenCache{entries}, nil
}

// entryWeight is about what an entry takes: the token, no more than as much again for
// what was decoded from it, the headers of its scopes, and the fixed parts.
func entryWeight(token string, r *verifiedToken) uint32 {
	const fixed, stringHeader = 512, 16
	return uint32(fixed + 2*len(token) + stringHeader*len(r.caller.Scopes))
}

func (m *tokenCache) lookupToken(token string) (*verifiedToken, bool) {
	return m.entries.GetIfPresent(token)
}

func (m *tokenCache) removeToken(token string) { m.entries.Invalidate(token) }

// storeToken copies the token, which is a part of everything a request has in its
// header.
func (m *tokenCache) storeToken(token string, r *verifiedToken) {
	m.entries.Set(strings.Clone(token), r)
}

// clockReading is one reading of the clock.
type clockReading struct {
	wall   time.Time // what the clock shows
	latest time.Time // the same, or later when it was set back
}

// monotonicClock knows when the clock was set back: the time that has passed since
// the process started is counted by another one, which cannot be set. A token
// that has expired does not become good again, as long as the process lives.
type monotonicClock struct {
	now    func() time.Time
	start  time.Time
	passed func(now time.Time) time.Duration // since start; a field for tests
}

func newMonotonicClock(now func() time.Time) *monotonicClock {
	start := now()
	return &monotonicClock{now: now, start: start, passed: func(now time.Time) time.Duration { return now.Sub(start) }}
}

func (c *monotonicClock) readClock() clockReading {
	wall := c.now()
	// Without its monotonic reading, start is compared by what the clock showed.
	latest := c.start.Round(0).Add(c.passed(wall))
	if wall.After(latest) {
		latest = wall
	}
	return clockReading{wall, latest}
}

// NowNano is the time of the memory's own housekeeping.
func (c *monotonicClock) NowNano() int64 { return int64(c.passed(c.now())) }

// Tick returns the channel that never delivers: what has expired goes when the
// memory is next written to.
func (*monotonicClock) Tick(time.Duration) <-chan time.Time { return nil }
