package fakellm

import (
	"context"
	"sync"
	"testing"
)

// Script returns the behaviour for a call. It is called concurrently.
type Script func(r *Request) Behaviour

// Always returns the same behaviour for every call.
func Always(b Behaviour) Script { return func(*Request) Behaviour { return b } }

// Sequence returns the nth behaviour for the nth call, and the last one for all
// further calls.
func Sequence(bs ...Behaviour) Script {
	return func(r *Request) Behaviour { return bs[min(r.Call, len(bs)-1)] }
}

// Hold delays replies until the test releases them. Its methods are safe for
// concurrent use.
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

// maxArrivals is the number of counted arrivals, more than any test needs.
const maxArrivals = 4096

// NewHold returns a Hold.
func NewHold() *Hold {
	return &Hold{arrived: make(chan struct{}, maxArrivals), released: make(chan struct{})}
}

// Await waits until n more requests have arrived.
func (h *Hold) Await(t testing.TB, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), suiteTimeout)
	defer cancel()
	for i := range n {
		select {
		case <-h.arrived:
		case <-ctx.Done():
			t.Fatalf("got %d requests at the hold, want %d", i, n)
		}
	}
}

// Release releases all current and later calls.
func (h *Hold) Release() { h.once.Do(func() { close(h.released) }) }

// waitReleased counts an arrival and waits for the release. It returns false if
// the context ends first.
func (h *Hold) waitReleased(ctx context.Context) bool {
	select {
	case h.arrived <- struct{}{}:
	default:
	}
	select {
	case <-h.released:
		return true
	case <-ctx.Done():
		return false
	}
}
