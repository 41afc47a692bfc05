package fakellm

import (
	"context"
	"sync"
	"testing"
)

// Script says what to do with a call. It is called in the goroutine of the
// request, so it may be asked by several at a time.
type Script func(r *Request) Behaviour

// Always does the same with every call.
func Always(b Behaviour) Script { return func(*Request) Behaviour { return b } }

// Sequence does the first with the first call, and so on; the last with all that
// follow.
func Sequence(bs ...Behaviour) Script {
	return func(r *Request) Behaviour { return bs[min(r.Call, len(bs)-1)] }
}

// Hold keeps replies back, so that a test says when a model answers. Its calls
// are safe for concurrent use.
//
//	h := fakellm.NewHold()
//	s := fakellm.Start(t, fakellm.Config{Script: fakellm.Always(fakellm.Text("…").Held(h))})
//	// … 50 callers start …
//	h.Await(t, 1)
//	h.Release()
type Hold struct {
	arrived  chan struct{}
	released chan struct{}
	once     sync.Once
}

// mostArrivals is how many a Hold remembers; more than any test holds back.
const mostArrivals = 4096

// NewHold returns a Hold that is not released.
func NewHold() *Hold {
	return &Hold{arrived: make(chan struct{}, mostArrivals), released: make(chan struct{})}
}

// Await waits until n more requests have arrived.
func (h *Hold) Await(t testing.TB, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for i := range n {
		select {
		case <-h.arrived:
		case <-ctx.Done():
			t.Fatalf("got %d requests at the hold, want %d", i, n)
		}
	}
}

// Release lets go what is held, and whatever comes later.
func (h *Hold) Release() { h.once.Do(func() { close(h.released) }) }

// wait notes an arrival and blocks until the release, or until one of the
// channels that end the call is closed; then it reports false.
func (h *Hold) wait(gone ...<-chan struct{}) bool {
	select {
	case h.arrived <- struct{}{}:
	default:
	}
	select {
	case <-h.released:
		return true
	case <-gone[0]:
	case <-gone[1]:
	}
	return false
}
