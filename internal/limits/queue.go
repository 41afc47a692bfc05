package limits

import "time"

// place is a principal in the queue.
type place struct {
	key  uint64
	full time.Duration // its bucket is not full before
}

// queue is a binary heap: whoever may be full first stands at its head.
type queue []place

func (q *queue) push(p place) {
	*q = append(*q, p)
	h := *q
	for i := len(h) - 1; i > 0; {
		parent := (i - 1) / 2
		if h[parent].full <= h[i].full {
			return
		}
		h[parent], h[i] = h[i], h[parent]
		i = parent
	}
}

// pop drops the head.
func (q *queue) pop() {
	h := *q
	h[0] = h[len(h)-1]
	*q = h[:len(h)-1]
	q.sink()
}

// sink moves the head to where it belongs.
func (q *queue) sink() {
	h := *q
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			if h[child].full < h[least].full {
				least = child
			}
		}
		if least == i {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}
