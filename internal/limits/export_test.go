package limits

import "hash/maphash"

// NewSmall is New with fewer buckets.
func NewSmall(r Rate, maxPrincipals int) *Limiter { return newLimiter("small", r, maxPrincipals) }

// Sizes returns the number of buckets and of entries in the queue.
func (l *Limiter) Sizes() (buckets, refills int) { return len(l.buckets), l.queue.Len() }

// HasBucket reports whether p has a bucket of its own.
func (l *Limiter) HasBucket(p Principal) bool {
	return l.buckets[maphash.Comparable(l.seed, p)] != nil
}

// Used returns the tokens that count now.
func (b *TokenBudget) Used() int { return b.total }
