package auth

import (
	"strings"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/caprouter/caprouter/contract"
)

// tokenCacheBytes bounds the cache: about ten thousand tokens.
const tokenCacheBytes = 16 << 20

// verifiedToken is the result of a successful verification.
type verifiedToken struct {
	caller   *contract.Caller
	validity tokenValidity
	keys     keySource
	key      *verifyKey
}

// tokenCache maps the text of verified tokens to their result, because a signature
// verification costs more than the rest of many requests. An entry was valid once;
// the verifier checks expiry and key again at every use, so that the result is the
// same as without the cache.
type tokenCache struct {
	entries *otter.Cache[string, *verifiedToken]
}

func newTokenCache(maxBytes uint64, clock *monotonicClock) (*tokenCache, error) {
	entries, err := otter.New(&otter.Options[string, *verifiedToken]{
		MaximumWeight: maxBytes,
		Weigher:       entryWeight,
		// The expiry only frees memory; it does not decide validity.
		ExpiryCalculator: otter.ExpiryWritingFunc(func(e otter.Entry[string, *verifiedToken]) time.Duration {
			return time.Unix(e.Value.validity.expires, 0).Sub(clock.readClock().latest)
		}),
		Clock: clock,
		// Run maintenance on the calling goroutine: it is short and has no
		// callbacks, so the cache starts no goroutine.
		Executor: func(work func()) { work() },
	})
	if err != nil {
		return nil, err
	}
	return &tokenCache{entries}, nil
}

// entryWeight estimates the bytes of an entry: the token, the values decoded from
// it, the headers of its scopes, and the fixed parts.
func entryWeight(token string, r *verifiedToken) uint32 {
	const fixed, stringHeader = 512, 16
	return uint32(fixed + 2*len(token) + stringHeader*len(r.caller.Scopes))
}

func (m *tokenCache) lookupToken(token string) (*verifiedToken, bool) {
	return m.entries.GetIfPresent(token)
}

func (m *tokenCache) removeToken(token string) { m.entries.Invalidate(token) }

// storeToken copies the token, because it is a substring of the whole request
// header.
func (m *tokenCache) storeToken(token string, r *verifiedToken) {
	m.entries.Set(strings.Clone(token), r)
}

// clockReading is one reading of a monotonicClock.
type clockReading struct {
	wall   time.Time // the wall clock
	latest time.Time // the wall clock, or a later time if it was set back
}

// monotonicClock detects that the wall clock was set back, with the monotonic time
// since the start of the process. An expired token therefore never becomes valid
// again in the same process.
type monotonicClock struct {
	now    func() time.Time
	start  time.Time
	passed func(now time.Time) time.Duration // time since start; a field for tests
}

func newMonotonicClock(now func() time.Time) *monotonicClock {
	start := now()
	return &monotonicClock{now: now, start: start, passed: func(now time.Time) time.Duration { return now.Sub(start) }}
}

func (c *monotonicClock) readClock() clockReading {
	wall := c.now()
	// Remove the monotonic reading, so that start is compared as wall time.
	latest := c.start.Round(0).Add(c.passed(wall))
	if wall.After(latest) {
		latest = wall
	}
	return clockReading{wall, latest}
}

// NowNano is the clock of the cache's maintenance.
func (c *monotonicClock) NowNano() int64 { return int64(c.passed(c.now())) }

// Tick returns nil: expired entries are removed at the next write.
func (*monotonicClock) Tick(time.Duration) <-chan time.Time { return nil }
