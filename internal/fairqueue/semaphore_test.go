package fairqueue

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

func TestSemaphore_ServesOwnersInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New[string](1)
		s.Acquire(t.Context(), "loud")
		var mu sync.Mutex
		var got []string
		for _, owner := range []string{"loud", "loud", "loud", "quiet", "other", "quiet"} {
			go func() {
				s.Acquire(t.Context(), owner)
				mu.Lock()
				got = append(got, owner)
				mu.Unlock()
				s.Release()
			}()
			synctest.Wait() // waiting in the queue
		}
		s.Release()
		synctest.Wait()
		want := []string{"loud", "quiet", "other", "loud", "quiet", "loud"}
		if !slices.Equal(got, want) {
			t.Errorf("got turns %v, want %v", got, want)
		}
		if held := s.CountHeld(); held != 0 || s.free != 1 || s.waiters.Len() != 0 {
			t.Errorf("got %d permits held, %d free, %d waiting; want 0, 1 and none", held, s.free, s.waiters.Len())
		}
	})
}

func TestSemaphore_SkipsCancelledWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New[string](1)
		s.Acquire(t.Context(), "loud")
		ctx, cancel := context.WithCancel(t.Context())
		results := make(chan bool, 2)
		go func() { results <- s.Acquire(ctx, "quiet") }()
		synctest.Wait()
		cancel()
		synctest.Wait()
		if acquired := <-results; acquired {
			t.Error("got a permit after the context ended, want none")
		}
		go func() { results <- s.Acquire(t.Context(), "other") }()
		synctest.Wait()
		s.Release()
		synctest.Wait()
		if acquired := <-results; !acquired {
			t.Error("got no permit for the next owner, want one")
		}
		if held := s.CountHeld(); held != 1 || s.waiters.Len() != 0 {
			t.Errorf("got %d permits held, %d waiting; want 1 and none", held, s.waiters.Len())
		}
	})
}

func TestSemaphore_AcquiresFreePermitAfterContextEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if s := New[string](1); !s.Acquire(ctx, "quiet") {
		t.Error("got no permit, want the free one")
	}
}
