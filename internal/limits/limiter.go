package limits

import (
	"hash/maphash"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/caprouter/caprouter/contract"
)

// maxPrincipals is how many principals one Limiter tells apart at a time.
const maxPrincipals = 10_000

// Rate is how often something may be had. The zero value is no limit.
type Rate struct {
	PerSecond float64 // on average; 0 = no limit
	Burst     int     // at once; less than 1 counts as 1
}

// Principal is who is limited: whoever a token's issuer, tenant and subject name.
// The scopes do not make another one of it. Who is one subject in two tenants is
// two: neither learns what the other does.
type Principal struct{ Issuer, Tenant, Subject string }

// PrincipalOf returns who the caller is.
func PrincipalOf(c *contract.Caller) Principal {
	return Principal{Issuer: c.Issuer, Tenant: c.Tenant, Subject: c.Subject}
}

// Limiter gives every principal the same Rate: a bucket of Burst tokens that
// fills again at PerSecond. Nobody's use costs anybody else.
//
// It tells ten thousand principals apart. Who has not asked for so long that its
// bucket is full again is forgotten first, which changes nothing for it. When
// all have asked lately, those who come besides share one more bucket, until one
// of the others is full. So memory is bounded, and beyond ten thousand names a
// flood of more gets what one name does.
//
// Its methods may be called from any goroutine; nil is no limit.
type Limiter struct {
	policy string
	rate   Rate
	window time.Duration // an empty bucket is full after it
	most   int           // principals told apart
	seed   maphash.Seed

	mu     sync.Mutex
	start  time.Time // the first Take
	latest time.Time // time stands still for one who comes with an earlier one
	known  map[uint64]*rate.Limiter
	queue  queue         // of known, by when they are full
	rest   *rate.Limiter // of all who are not known
}

// New returns the limiter of a policy, nil where the rate is no limit.
func New(policy string, r Rate) *Limiter { return newLimiter(policy, r, maxPrincipals) }

func newLimiter(policy string, r Rate, most int) *Limiter {
	if !(r.PerSecond > 0) {
		return nil
	}
	r.Burst = max(r.Burst, 1)
	l := &Limiter{policy: policy, rate: r, most: most, seed: maphash.MakeSeed(), known: map[uint64]*rate.Limiter{}}
	l.window = l.wait(float64(r.Burst))
	l.rest = l.bucket()
	return l
}

func (l *Limiter) bucket() *rate.Limiter {
	return rate.NewLimiter(rate.Limit(l.rate.PerSecond), l.rate.Burst)
}

// Take takes one of what the principal may have, and reports whether there was
// one. The state is that afterwards; it is zero where there is no limit. A clock
// that goes back gives nothing: for the Limiter it stands still.
func (l *Limiter) Take(p Principal, now time.Time) (contract.Limit, bool) {
	if l == nil {
		return contract.Limit{}, true
	}
	// A hash for the name: what is kept of somebody does not grow with the name,
	// and nobody who does not know the seed finds two names that share a bucket.
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
	b := l.known[key]
	if b == nil {
		b = l.welcome(key, now)
	}
	ok := b.AllowN(now, 1)
	return l.state(b.TokensAt(now)), ok
}

// welcome returns the bucket of a principal who is not known: one of its own if
// there is room.
func (l *Limiter) welcome(key uint64, now time.Time) *rate.Limiter {
	var b *rate.Limiter
	if len(l.known) < l.most {
		b = l.bucket()
	} else if b = l.forget(now); b == nil {
		return l.rest
	}
	// It may have asked a moment ago and had its share of the common bucket. With
	// more than is left there it could have more than its due.
	if left := int(max(l.rest.TokensAt(now), 0)); left < l.rate.Burst {
		b.AllowN(now, l.rate.Burst-left)
	}
	l.known[key] = b
	l.queue.push(place{key: key, full: l.since(now) + 1}) // forget finds out when indeed
	return b
}

// forget drops one principal whose bucket is full, and returns the bucket, which
// is as good as new; nil where there is none. The queue says for each when that may be at the earliest. It is put right
// here and not with every Take, so that each Take costs one correction at most.
func (l *Limiter) forget(now time.Time) *rate.Limiter {
	for at := l.since(now); len(l.queue) > 0 && l.queue[0].full <= at; {
		first := &l.queue[0]
		b := l.known[first.key]
		lacks := float64(l.rate.Burst) - b.TokensAt(now)
		if lacks <= 0 {
			delete(l.known, first.key)
			l.queue.pop()
			return b
		}
		first.full = at + max(l.wait(lacks), 1)
		l.queue.sink()
	}
	return nil
}

// since is a time as the queue has it.
func (l *Limiter) since(now time.Time) time.Duration { return now.Sub(l.start) }

// longest bounds every wait, and leaves room to add it to a time.
const longest = 100 * 365 * 24 * time.Hour

// wait is how long so many tokens take to come, rounded up.
func (l *Limiter) wait(tokens float64) time.Duration {
	if d := math.Ceil(tokens / l.rate.PerSecond * float64(time.Second)); d < float64(longest) {
		return time.Duration(d)
	}
	return longest
}

func (l *Limiter) state(tokens float64) contract.Limit {
	whole := math.Floor(max(tokens, 0))
	s := contract.Limit{Policy: l.policy, Quota: l.rate.Burst, Window: l.window, Remaining: int(whole)}
	if s.Remaining < s.Quota {
		s.Reset = l.wait(whole + 1 - tokens)
	}
	return s
}
