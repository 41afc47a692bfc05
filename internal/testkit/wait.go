package testkit

import (
	"testing"
	"time"
)

// Patience bounds how long Receive and Eventually wait. It is far more than any
// test needs on a busy machine with a slow disk: it only has to end before the test
// binary's own limit of ten minutes, so that a regression names the line that hangs.
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

// Eventually returns when condition holds. It fails the test if the condition
// does not hold within Patience; what names the condition in the failure text.
// Prefer Receive where the code under test can signal the event.
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
			t.Fatalf("after %s: still not: %s", Patience, what)
		}
	}
}
