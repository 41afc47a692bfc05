package events

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
)

// A slow reader delays no other reader, and misses no event.
func TestRead_SlowReaderMissesNothing(t *testing.T) {
	s, _ := startStream(t, openLog(t))
	const published = 5 * queueLength
	publish(t, s, "r-1", decided)
	standing, goOn := make(chan struct{}), make(chan struct{})
	var slow eventRecorder
	ended := make(chan error, 1)
	go func() {
		ended <- s.Read(t.Context(), "r-1", 0, func(seq uint64, ev *contract.Event) error {
			if ev.Type == decided {
				close(standing)
				<-goOn
			}
			return slow.record(seq, ev)
		})
	}()
	testkit.WaitClosed(t, standing)
	quick := read(t.Context(), s.Read, "r-1", 0)
	for range published {
		publish(t, s, "r-1", progress)
	}
	publish(t, s, "r-1", final)
	must(t, testkit.Receive(t, quick.err))
	s.mu.Lock()
	for _, r := range s.readers["r-1"] {
		r.mu.Lock()
		if n := len(r.queue); n > queueLength {
			t.Errorf("got %d events queued for the slow reader, want at most %d", n, queueLength)
		}
		r.mu.Unlock()
	}
	s.mu.Unlock()
	close(goOn)
	must(t, testkit.Receive(t, ended))
	if len(quick.seqs) != published+2 {
		t.Errorf("fast reader: got %d events, want %d", len(quick.seqs), published+2)
	}
	if diff := cmp.Diff(quick.seqs, slow.seqs); diff != "" {
		t.Errorf("slow reader (-quick +slow):\n%s", diff)
	}
}

// Readers stop and resume at their position while events are published: together they receive each
// event once and in order.
func TestRead_HasNoGapsAndNoDuplicates(t *testing.T) {
	s, _ := startStream(t, openLog(t))
	n := 0
	outer := t
	rapid.Check(t, func(t *rapid.T) {
		n++
		id := fmt.Sprint("r-", n)
		visits := rapid.SliceOfN(rapid.IntRange(1, 2*queueLength), 0, 6).Draw(t, "visits")
		count := rapid.IntRange(0, 3*queueLength).Draw(t, "events")
		if err := publishNow(t.Context(), s, event(id, decided)); err != nil {
			t.Fatal(err)
		}
		published := make(chan error, 1)
		go func() {
			var err error
			for range count {
				err = errors.Join(err, publishNow(t.Context(), s, event(id, progress)))
			}
			published <- errors.Join(err, publishNow(t.Context(), s, event(id, final)))
		}()
		var story eventRecorder
		var after uint64
		err := errEnough
		for i := 0; errors.Is(err, errEnough); i++ {
			visit := eventRecorder{}
			callback := visit.record
			if i < len(visits) {
				callback = visit.until(visits[i])
			}
			err = s.Read(t.Context(), id, after, callback)
			story.seqs, story.types = append(story.seqs, visit.seqs...), append(story.types, visit.types...)
			if len(story.seqs) > 0 {
				after = story.seqs[len(story.seqs)-1]
			}
		}
		if err := errors.Join(err, testkit.Receive(outer, published)); err != nil {
			t.Fatal(err)
		}
		if len(story.seqs) != count+2 || story.types[0] != decided || story.types[count+1] != final {
			t.Fatalf("got %d events, want %d", len(story.seqs), count+2)
		}
		for i := 1; i < len(story.seqs); i++ {
			if story.seqs[i] <= story.seqs[i-1] {
				t.Fatalf("event %d has sequence %d after %d", i, story.seqs[i], story.seqs[i-1])
			}
		}
	})
}

// Of ten thousand readers, half stop before the final event: no goroutine is started for them, and
// none of them stays registered.
func TestRead_RemovesItsQueue(t *testing.T) {
	const readers, requests = 10_000, 100
	s, _ := startStream(t, openLog(t))
	for i := range requests {
		publish(t, s, fmt.Sprint("r-", i), decided)
	}
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var there, all sync.WaitGroup
	errs := make([]error, readers)
	there.Add(readers)
	for i := range readers {
		all.Go(func() {
			mine := t.Context()
			if i%2 == 0 {
				mine = ctx
			}
			arrived := sync.OnceFunc(there.Done)
			defer arrived()
			errs[i] = s.Read(mine, fmt.Sprint("r-", i%requests), 0, func(uint64, *contract.Event) error {
				arrived()
				return nil
			})
		})
	}
	there.Wait()
	if n := runtime.NumGoroutine() - before; n > readers+10 {
		t.Errorf("got %d goroutines for %d readers, want only their own", n, readers)
	}
	cancel()
	for i := range requests {
		publish(t, s, fmt.Sprint("r-", i), final)
	}
	all.Wait()
	for i, err := range errs {
		if i%2 == 1 && err != nil || err != nil && !errors.Is(err, context.Canceled) {
			t.Fatalf("reader %d: got error %v, want none, except for cancelled readers", i, err)
		}
	}
	if n := len(s.readers); n != 0 {
		t.Errorf("got %d requests with readers, want none", n)
	}
	testkit.Eventually(t, "the goroutines of the readers have ended", func() bool {
		return runtime.NumGoroutine() <= before+readers/100
	})
}

func TestReader_QueueOverflows(t *testing.T) {
	item := func(seq uint64) queuedEvent { return queuedEvent{seq: seq, ev: event("r-1", progress)} }
	fill := func(r *reader) {
		for i := range queueLength {
			r.enqueue(item(uint64(i)))
		}
	}
	tests := []struct {
		name string
		do   func(*reader)
		want int // events to take
		err  error
	}{
		{"nothing", func(*reader) {}, 0, nil},
		{"some", func(r *reader) { r.enqueue(item(1)); r.enqueue(item(2)) }, 2, nil},
		{"full", fill, queueLength, nil},
		{"over", func(r *reader) { fill(r); r.enqueue(item(99)) }, 0, errOverflow},
		{"overflow twice", func(r *reader) { fill(r); fill(r); fill(r) }, 0, errOverflow},
		{"behind", func(r *reader) { r.enqueue(item(1)); r.markOverflow() }, 0, errOverflow},
		{"lost", func(r *reader) { r.enqueue(item(1)); r.markLost() }, 1, ErrGone},
		{"lost and overflow", func(r *reader) { fill(r); r.enqueue(item(99)); r.markLost() }, 0, ErrGone},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := &reader{wake: make(chan struct{}, 1)}
			tt.do(r)
			items, err := r.takeQueue()
			if len(items) != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("got %d events and error %v, want %d and %v", len(items), err, tt.want, tt.err)
			}
			if items, err := r.takeQueue(); len(items) > 0 || errors.Is(err, errOverflow) {
				t.Errorf("again: got %d events and error %v, want nothing left", len(items), err)
			}
		})
	}
}

// The process of a request may be killed before its final event is in the log, or the log may be
// unavailable: the reader of another process is then notified that the request has ended, after the
// events in the log.
func TestRead_EndsWithoutFinalEvent(t *testing.T) {
	log := &faultyLog{eventLog: openLog(t)}
	log.follow = func(store.Message) bool { return false } // misses the second event
	s := newStream(testConfig(), log)
	s.checkInterval = time.Millisecond
	var ended, checked atomic.Bool
	s.cfg.HasEnded = func(_ context.Context, id string) bool {
		checked.Store(true)
		return id == "r-1" && ended.Load()
	}
	runStream(t, s)
	publish(t, s, "r-1", decided)
	reader := read(t.Context(), s.Read, "r-1", 0)
	testkit.Receive(t, reader.received)
	testkit.Eventually(t, "the reader checks a request that has not ended", checked.Load)
	publish(t, s, "r-1", progress)
	ended.Store(true)
	if err := testkit.Receive(t, reader.err); !errors.Is(err, ErrGone) {
		t.Errorf("got %v, want %v", err, ErrGone)
	}
	if diff := cmp.Diff([]contract.EventType{decided, progress}, reader.types); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
