package fairqueue

import (
	"context"
	"errors"
	"sync"
)

// ErrClosed is returned by BatchQueue.Push after Close.
var ErrClosed = errors.New("the queue is closed")

// BatchQueue holds items of several owners until one consumer takes them in batches.
// Owners are served in turn, so that the items of one do not delay those of another by
// more than a batch. Delayed items do not make a batch by themselves, until the consumer
// ends the delay: they wait for others that do.
//
// Push may be called from any goroutine. The consumer waits for Filled, and then calls
// Take until it returns nothing. It starts a timer if StartDelay reports true, and calls
// EndDelay when the timer fires.
type BatchQueue[Owner, Item comparable] struct {
	space  *Semaphore[Owner]
	filled chan struct{} // capacity 1

	mu     sync.Mutex
	items  Queue[Owner, batchItem[Item]]
	urgent int  // items that are not delayed
	timed  bool // the consumer knows of delayed items, and will end the delay
	due    bool // delayed items have waited long enough
	closed bool
}

type batchItem[Item comparable] struct {
	item    Item
	delayed bool
}

// NewBatchQueue returns a queue with space for this many items.
func NewBatchQueue[Owner, Item comparable](capacity int) *BatchQueue[Owner, Item] {
	return &BatchQueue[Owner, Item]{space: New[Owner](capacity), filled: make(chan struct{}, 1)}
}

// Push adds an item when there is space for it. It returns the cause of ctx if ctx ends
// before, or ErrClosed.
func (q *BatchQueue[Owner, Item]) Push(ctx context.Context, owner Owner, item Item, delayed bool) error {
	if !q.space.Acquire(ctx, owner) {
		return context.Cause(ctx)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		q.space.Release()
		return ErrClosed
	}
	q.items.Push(owner, batchItem[Item]{item, delayed})
	if !delayed {
		q.urgent++
	} else if q.timed {
		return nil
	}
	select {
	case q.filled <- struct{}{}:
	default:
	}
	return nil
}

// Filled receives a value when there may be items to take, or a delay to start.
func (q *BatchQueue[Owner, Item]) Filled() <-chan struct{} { return q.filled }

// StartDelay reports whether there are delayed items for which no delay has begun, and
// begins it.
func (q *BatchQueue[Owner, Item]) StartDelay() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.timed || q.items.Len() == 0 {
		return false
	}
	q.timed = true
	return true
}

// EndDelay makes the delayed items due.
func (q *BatchQueue[Owner, Item]) EndDelay() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.timed, q.due = false, q.items.Len() > 0
}

// Take removes the items of the next batch, as long as more reports true; it is called
// before each item with those that were taken. If all items may still wait, there is no
// batch.
func (q *BatchQueue[Owner, Item]) Take(more func(batch []Item) bool) (batch []Item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.urgent == 0 && !q.due && !q.closed {
		return nil
	}
	for more(batch) {
		next, ok := q.items.Pop()
		if !ok {
			q.due = false
			break
		}
		q.space.Release()
		if !next.delayed {
			q.urgent--
		}
		batch = append(batch, next.item)
	}
	return batch
}

// Len returns the number of items.
func (q *BatchQueue[Owner, Item]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.items.Len()
}

// Close rejects all further items. Those in the queue can be taken at once.
func (q *BatchQueue[Owner, Item]) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
}
