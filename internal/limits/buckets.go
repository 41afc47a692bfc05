package limits

import (
	"container/heap"
	"time"

	"golang.org/x/time/rate"
)

// bucket is the token bucket of a principal, or a shared one.
type bucket struct {
	*rate.Limiter
	key    uint64
	tenant *tenant // nil = none
	// fullAt is the time at which the bucket is full, or earlier; since the start of the
	// limiter.
	fullAt    time.Duration
	positions [2]int // in the queues
}

// tenant is a tenant with buckets.
type tenant struct {
	key   uint64
	queue refillQueue
	rest  *bucket // of its principals without a bucket; nil before there are any
}

// The queues that contain a bucket.
const (
	queueOfAll = iota
	queueOfTenant
)

// refillQueue is a heap with the earliest refill first.
type refillQueue struct {
	kind    int
	buckets []*bucket
}

func (q *refillQueue) Len() int           { return len(q.buckets) }
func (q *refillQueue) Less(i, j int) bool { return q.buckets[i].fullAt < q.buckets[j].fullAt }

func (q *refillQueue) Swap(i, j int) {
	q.buckets[i], q.buckets[j] = q.buckets[j], q.buckets[i]
	q.buckets[i].positions[q.kind], q.buckets[j].positions[q.kind] = i, j
}

func (q *refillQueue) Push(x any) {
	b := x.(*bucket)
	b.positions[q.kind] = len(q.buckets)
	q.buckets = append(q.buckets, b)
}

func (q *refillQueue) Pop() any {
	last := len(q.buckets) - 1
	b := q.buckets[last]
	q.buckets[last] = nil
	q.buckets = q.buckets[:last]
	return b
}

// first returns the bucket with the earliest refill, nil if there is none.
func (q *refillQueue) first() *bucket {
	if len(q.buckets) == 0 {
		return nil
	}
	return q.buckets[0]
}

// add stores a bucket.
func (l *Limiter) add(b *bucket) {
	l.buckets[b.key] = b
	heap.Push(&l.queue, b)
	if b.tenant != nil {
		heap.Push(&b.tenant.queue, b)
	}
}

// postpone sets a later time at which the bucket is full.
func (l *Limiter) postpone(b *bucket, fullAt time.Duration) {
	b.fullAt = fullAt
	heap.Fix(&l.queue, b.positions[queueOfAll])
	if b.tenant != nil {
		heap.Fix(&b.tenant.queue, b.positions[queueOfTenant])
	}
}

// remove removes a bucket, and a tenant with its last one.
func (l *Limiter) remove(b *bucket) {
	delete(l.buckets, b.key)
	heap.Remove(&l.queue, b.positions[queueOfAll])
	if t := b.tenant; t != nil {
		heap.Remove(&t.queue, b.positions[queueOfTenant])
		if t.queue.Len() == 0 {
			delete(l.tenants, t.key)
		}
	}
}
