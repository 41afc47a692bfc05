package testkit_test

import (
	"sync/atomic"
	"testing"

	"github.com/caprouter/caprouter/internal/testkit"
)

func TestReceive_ReturnsValue(t *testing.T) {
	ch := make(chan int, 1)
	ch <- 7
	if got := testkit.Receive(t, ch); got != 7 {
		t.Errorf("got %d, want 7", got)
	}
}

func TestWaitClosed_ReturnsOnClose(t *testing.T) {
	done := make(chan struct{})
	close(done)
	testkit.WaitClosed(t, done)
}

func TestEventually_PollsUntilConditionIsTrue(t *testing.T) {
	var calls atomic.Int64
	testkit.Eventually(t, "third call", func() bool { return calls.Add(1) == 3 })
	if got := calls.Load(); got != 3 {
		t.Errorf("got %d calls, want 3", got)
	}
}

// fatalRecorder records that a helper failed the test.
type fatalRecorder struct {
	testing.TB
	failed string
}

func (r *fatalRecorder) Helper() {}

func (r *fatalRecorder) Fatalf(format string, _ ...any) {
	r.failed = format
	panic(r)
}

func TestReceive_FailsOnClosedChannel(t *testing.T) {
	ch := make(chan int)
	close(ch)
	r := &fatalRecorder{TB: t}
	func() {
		defer func() { _ = recover() }()
		testkit.Receive(r, ch)
	}()
	if r.failed == "" {
		t.Error("got no failure, want one for a closed channel")
	}
}
