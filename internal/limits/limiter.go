package limits

import (
	"hash/maphash"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/caprouter/caprouter/contract"
)

// maxPrincipals is the number of principals with a bucket of their own.
const maxPrincipals = 10_000

// tenantShares is the number of equal parts of these buckets. The principals of one
// tenant can have one part.
const tenantShares = 8

// Rate is the rate of a limit. The zero value is no limit.
type Rate struct {
	PerSecond float64 // on average; 0 = no limit
	Burst     int     // at once; less than 1 counts as 1
}

// Principal is the identity that a limit applies to. Scopes do not distinguish
// principals. The same subject in two tenants is two principals, so that no
// tenant observes the activity of another.
type Principal struct{ Issuer, Tenant, Subject string }

// PrincipalOf returns the principal of a caller.
func PrincipalOf(c *contract.Caller) Principal {
	return Principal{Issuer: c.Issuer, Tenant: c.Tenant, Subject: c.Subject}
}

// Limiter is a rate limiter with a token bucket per principal: a bucket holds
// Burst tokens and refills at PerSecond. Principals do not affect each other.
//
// At most maxPrincipals have a bucket of their own. A full bucket is as good as a
// new one, so the bucket that is full first is evicted first. If no bucket is
// full, principals without a bucket share one. Therefore memory is bounded, and a
// flood of new names gets no more than one principal. The same holds within a tenant,
// whose principals can have a part of all buckets, so that the names of one tenant leave
// room for the principals of others.
//
// Its methods may be called from any goroutine.
type Limiter struct {
	policy        string
	rate          Rate
	window        time.Duration // time to refill an empty bucket
	maxPrincipals int           // with a bucket
	maxOfTenant   int
	seed          maphash.Seed

	mu      sync.Mutex
	start   time.Time // of the first Take
	latest  time.Time // latest time passed to Take
	buckets map[uint64]*bucket
	tenants map[uint64]*tenant // with buckets
	queue   refillQueue        // one entry per bucket
	shared  *bucket            // of principals without a bucket
}

// New returns the limiter of a policy.
func New(policy string, r Rate) *Limiter { return newLimiter(policy, r, maxPrincipals) }

func newLimiter(policy string, r Rate, maxPrincipals int) *Limiter {
	if !(r.PerSecond > 0) { // also if it is NaN
		return &Limiter{}
	}
	r.Burst = max(r.Burst, 1)
	l := &Limiter{
		policy: policy, rate: r, maxPrincipals: maxPrincipals, maxOfTenant: max(maxPrincipals/tenantShares, 1),
		seed: maphash.MakeSeed(), buckets: map[uint64]*bucket{}, tenants: map[uint64]*tenant{},
	}
	l.window = l.refillTime(float64(r.Burst))
	l.shared = l.newBucket()
	return l
}

func (l *Limiter) newBucket() *bucket {
	return &bucket{Limiter: rate.NewLimiter(rate.Limit(l.rate.PerSecond), l.rate.Burst)}
}

// Unlimited reports whether the limiter has no rate, so that Take always succeeds
// and returns a zero state.
func (l *Limiter) Unlimited() bool { return l.rate.PerSecond == 0 }

// Take takes one token of the principal, and reports whether there was one. It
// returns the state of the limit afterwards. If now is earlier than in a previous
// call, it counts as equal, so that a clock that goes back grants nothing.
func (l *Limiter) Take(p Principal, now time.Time) (contract.Limit, bool) {
	if l.Unlimited() {
		return contract.Limit{}, true
	}
	// Buckets are stored by a hash, so that a long name uses no more memory. The
	// seed is secret, so that no caller can choose a name with the hash of another.
	key := maphash.Comparable(l.seed, p)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.start.IsZero():
		l.start, l.latest = now, now
	case now.Before(l.latest):
		now = l.latest
	default:
		l.latest = now
	}
	b := l.buckets[key]
	if b == nil {
		b = l.addBucket(key, p.Tenant, now)
	}
	ok := b.AllowN(now, 1)
	return l.stateOf(b.TokensAt(now)), ok
}

// addBucket returns a bucket for a principal without one: its own if there is
// room, otherwise one that it shares with others.
func (l *Limiter) addBucket(key uint64, tenantName string, now time.Time) *bucket {
	t := l.tenantOf(tenantName)
	if t != nil && t.queue.Len() >= l.maxOfTenant && !l.evictFullBucket(&t.queue, now) {
		if t.rest == nil {
			t.rest = l.newBucket()
		}
		return t.rest
	}
	if len(l.buckets) >= l.maxPrincipals && !l.evictFullBucket(&l.queue, now) {
		return l.shared
	}
	b := l.newBucket()
	b.key, b.tenant, b.fullAt = key, t, l.sinceStart(now)+1 // evictFullBucket corrects the time
	// The principal may have taken tokens from a shared bucket a moment ago. Its own
	// starts with the tokens left there, so that it gets no more than its rate.
	left := l.shared.TokensAt(now)
	if t != nil {
		l.tenants[t.key] = t
		if t.rest != nil {
			left = min(left, t.rest.TokensAt(now))
		}
	}
	if left := int(max(left, 0)); left < l.rate.Burst {
		b.AllowN(now, l.rate.Burst-left)
	}
	l.add(b)
	return b
}

// tenantOf returns the tenant with the name, also if it has no bucket yet. A caller
// without a tenant has nil.
func (l *Limiter) tenantOf(name string) *tenant {
	if name == "" {
		return nil
	}
	key := maphash.String(l.seed, name)
	if t := l.tenants[key]; t != nil {
		return t
	}
	return &tenant{key: key, queue: refillQueue{kind: queueOfTenant}}
}

// evictFullBucket removes one full bucket of a queue, and reports whether there was
// one. The times in the queue are lower bounds; they are corrected here and not by each
// Take, so that a Take costs at most one correction.
func (l *Limiter) evictFullBucket(q *refillQueue, now time.Time) bool {
	at := l.sinceStart(now)
	for b := q.first(); b != nil && b.fullAt <= at; b = q.first() {
		missing := float64(l.rate.Burst) - b.TokensAt(now)
		if missing <= 0 {
			l.remove(b)
			return true
		}
		l.postpone(b, at+max(l.refillTime(missing), 1))
	}
	return false
}

func (l *Limiter) sinceStart(now time.Time) time.Duration { return now.Sub(l.start) }

// maxRefillTime bounds refillTime, so that adding it to a time does not overflow.
const maxRefillTime = 100 * 365 * 24 * time.Hour

// refillTime returns the time to refill the tokens, rounded up.
func (l *Limiter) refillTime(tokens float64) time.Duration {
	if d := math.Ceil(tokens / l.rate.PerSecond * float64(time.Second)); d < float64(maxRefillTime) {
		return time.Duration(d)
	}
	return maxRefillTime
}

func (l *Limiter) stateOf(tokens float64) contract.Limit {
	whole := math.Floor(max(tokens, 0))
	s := contract.Limit{Policy: l.policy, Quota: l.rate.Burst, Window: l.window, Remaining: int(whole)}
	if s.Remaining < s.Quota {
		s.Reset = l.refillTime(whole + 1 - tokens)
	}
	return s
}
