package testkit

import (
	"testing"
	"time"
)

// Patience is the limit of Receive and Eventually. It is longer than any test needs on a busy
// machine with a slow disk, and shorter than the test binary's limit of ten minutes, so that the
// failure names the line that blocks.
const Patience = time.Minute

// Receive returns the next value of ch. It fails the test if no value arrives
// within Patience, or if ch is closed.
func Receive[T any](t testing.TB, ch <-chan T) T {
	t.Helper()
	timer := time.NewTimer(Patience)
	defer timer.Stop()
	select {
	case v, ok := <-ch:
		if !ok {
			t.Fatalf("got a closed channel, want a value of type %T", v)
		}
		return v
	case <-timer.C:
		t.Fatalf("got no value within %s", Patience)
		panic("unreachable")
	}
}

// WaitClosed returns when done is closed or has a value. It fails the test if
// neither happens within Patience.
func WaitClosed[T any](t testing.TB, done <-chan T) {
	t.Helper()
	timer := time.NewTimer(Patience)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		t.Fatalf("got no end within %s", Patience)
	}
}

// Eventually returns when condition is true. It fails the test if the condition is not true within
// Patience; what describes the condition in the failure text. Prefer Receive if the code under test
// can signal the event.
func Eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.NewTimer(Patience)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("condition not true after %s: %s", Patience, what)
		}
	}
}
