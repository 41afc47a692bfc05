package limits

import "hash/maphash"

// NewSmall is New that tells fewer principals apart.
func NewSmall(r Rate, most int) *Limiter { return newLimiter("small", r, most) }

// Kept is how much a Limiter holds: principals, and places in its queue.
func (l *Limiter) Kept() (principals, places int) { return len(l.known), len(l.queue) }

// Knows reports whether p has a bucket of its own.
func (l *Limiter) Knows(p Principal) bool { return l.known[maphash.Comparable(l.seed, p)] != nil }

// Used is what of the budget counts now.
func (b *TokenBudget) Used() int { return b.total }
