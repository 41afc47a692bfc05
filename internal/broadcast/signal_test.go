package broadcast_test

import (
	"testing"

	"github.com/caprouter/caprouter/internal/broadcast"
)

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestSignal_WakesAllThatWait(t *testing.T) {
	var s broadcast.Signal
	s.Broadcast() // no goroutine waits
	first, second := s.Next(), s.Next()
	if isClosed(first) || isClosed(second) {
		t.Error("got a closed channel before the change, want it open")
	}
	s.Broadcast()
	if !isClosed(first) || !isClosed(second) {
		t.Error("got an open channel after the change, want both closed")
	}
	if isClosed(s.Next()) {
		t.Error("got a closed channel for the change after that, want it open")
	}
}
