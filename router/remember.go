package router

import (
	"container/list"
	"sync"
	"time"
)

// remembered holds values for a while, in memory, a bounded number of them. A
// value that is written again starts its time anew, so the order of writing is
// the order of expiry.
type remembered[K comparable, V any] struct {
	ttl  time.Duration
	most int
	now  func() time.Time

	mu    sync.Mutex
	at    map[K]*list.Element
	order list.List // of *memory[K, V], the oldest in front
}

type memory[K comparable, V any] struct {
	key     K
	value   V
	expires time.Time
}

func newRemembered[K comparable, V any](most int, ttl time.Duration, now func() time.Time) *remembered[K, V] {
	return &remembered[K, V]{ttl: ttl, most: most, now: now, at: map[K]*list.Element{}}
}

// recall returns the value of the key, the zero value when there is none.
func (r *remembered[K, V]) recall(key K) (v V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expire()
	if e, ok := r.at[key]; ok {
		return e.Value.(*memory[K, V]).value
	}
	return v
}

// change replaces the value of the key by what becomes of it; one that is not
// there is the zero value. Changes come one after the other.
func (r *remembered[K, V]) change(key K, become func(V) V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expire()
	e, ok := r.at[key]
	if !ok {
		if r.order.Len() >= r.most {
			r.forget(r.order.Front())
		}
		e = r.order.PushBack(&memory[K, V]{key: key})
		r.at[key] = e
	}
	m := e.Value.(*memory[K, V])
	m.value, m.expires = become(m.value), r.now().Add(r.ttl)
	r.order.MoveToBack(e)
}

// expire forgets what is too old; the lock is held.
func (r *remembered[K, V]) expire() {
	now := r.now()
	for e := r.order.Front(); e != nil && !now.Before(e.Value.(*memory[K, V]).expires); e = r.order.Front() {
		r.forget(e)
	}
}

func (r *remembered[K, V]) forget(e *list.Element) {
	delete(r.at, e.Value.(*memory[K, V]).key)
	r.order.Remove(e)
}
