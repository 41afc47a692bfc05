package quota

import (
	"container/heap"
	"time"
)

// enqueue makes a value of the account removable. Deleted values stay in the queue until
// they come first, or are the majority.
func (a *account) enqueue(e *entry) {
	if e.queued {
		return
	}
	e.queued = true
	if len(a.queue) > 2*a.count+64 { // mostly deleted values: rebuild
		kept := a.queue[:0]
		for _, q := range a.queue {
			if q.entry.account != nil {
				kept = append(kept, q)
			}
		}
		clear(a.queue[len(kept):])
		a.queue = kept
		heap.Init(&a.queue)
	}
	heap.Push(&a.queue, queuedEntry{e, e.written})
}

// oldest returns the removable value whose last write is the earliest, or nil if there is
// none. The times in the queue are lower bounds, which are corrected here.
func (a *account) oldest() *entry {
	for len(a.queue) > 0 {
		switch q := &a.queue[0]; {
		case q.entry.account == nil: // deleted
			heap.Pop(&a.queue)
		case q.written < q.entry.written:
			q.written = q.entry.written
			heap.Fix(&a.queue, 0)
		default:
			return q.entry
		}
	}
	return nil
}

// queuedEntry is a removable value with the time of its last write, or an earlier one.
type queuedEntry struct {
	entry   *entry
	written time.Duration
}

// entryQueue is a heap with the earliest write first.
type entryQueue []queuedEntry

func (q entryQueue) Len() int           { return len(q) }
func (q entryQueue) Less(i, j int) bool { return q[i].written < q[j].written }
func (q entryQueue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }

// Push implements heap.Interface.
func (q *entryQueue) Push(x any) { *q = append(*q, x.(queuedEntry)) }

// Pop implements heap.Interface.
func (q *entryQueue) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	(*q)[last] = queuedEntry{}
	*q = (*q)[:last]
	return x
}
