package events

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
)

// newBlockedLog returns a log whose appends block until release is closed.
func newBlockedLog(t *testing.T) (log *faultyLog, begun, release chan struct{}) {
	begun, release = make(chan struct{}, 1), make(chan struct{})
	return &faultyLog{eventLog: openLog(t), append: func() error {
		select {
		case begun <- struct{}{}:
		default:
		}
		<-release
		return nil
	}}, begun, release
}

// TestEnqueue_DoesNotWaitForLog fills the queue while an append blocks: every call returns
// although no event is appended.
func TestEnqueue_DoesNotWaitForLog(t *testing.T) {
	log, begun, release := newBlockedLog(t)
	s, _ := startStream(t, log)
	s.Enqueue(event("r-0", decided))
	testkit.Receive(t, begun)
	for i := range maxQueued + 10 {
		s.Enqueue(event(fmt.Sprintf("r-%d", i+1), decided))
	}
	close(release)
	testkit.Eventually(t, "the queued events are in the log", func() bool {
		s.queue.mu.Lock()
		defer s.queue.mu.Unlock()
		return len(s.queue.pending) == 0
	})
	if _, err := s.log.Last(t.Context(), prefix+"r-1"); err != nil {
		t.Errorf("queued event: got error %v, want it stored", err)
	}
	if _, err := s.log.Last(t.Context(), fmt.Sprint(prefix, "r-", maxQueued+5)); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("event after the queue was full: got %v, want it dropped", err)
	}
}

func TestEnqueue_BoundsBytes(t *testing.T) {
	s := newStream(testConfig(), openLog(t))
	long := event("r-1", final)
	long.Response = &contract.Response{Data: contract.ResponseData{Answer: strings.Repeat("x", maxEvent/2)}}
	for range 2 * maxQueuedBytes / (maxEvent / 2) {
		s.Enqueue(long)
	}
	if got := s.queue.bytes; got > maxQueuedBytes || got < maxQueuedBytes/2 {
		t.Errorf("got %d bytes queued, want up to %d", got, maxQueuedBytes)
	}
}

// TestDelete_RemovesQueuedEvents deletes the events of a request while one of them is being
// appended and others are queued.
func TestDelete_RemovesQueuedEvents(t *testing.T) {
	log, begun, release := newBlockedLog(t)
	s, _ := startStream(t, log)
	s.Enqueue(event("r-1", decided))
	testkit.Receive(t, begun)
	s.Enqueue(event("r-1", final))
	s.Enqueue(event("r-2", decided))
	deleted := make(chan error, 1)
	go func() { deleted <- s.Delete(context.WithoutCancel(t.Context()), "r-1") }()
	close(release)
	if err := testkit.Receive(t, deleted); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the other request's event is stored", func() bool {
		_, err := s.log.Last(t.Context(), prefix+"r-2")
		return err == nil
	})
	if _, err := s.log.Last(t.Context(), prefix+"r-1"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("got %v, want no event of the erased request", err)
	}
	if diff := cmp.Diff(0, s.queue.bytes); diff != "" {
		t.Errorf("bytes queued (-want +got):\n%s", diff)
	}
}
