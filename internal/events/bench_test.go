package events

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/caprouter/caprouter/contract"
)

func BenchmarkPublish(b *testing.B) {
	s, _ := startStream(b, openLog(b))
	ev := event("r-1", progress)
	b.ReportAllocs()
	for b.Loop() {
		if err := publishNow(b.Context(), s, ev); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFanOut measures the time of one event until the last of its readers has received it.
func BenchmarkFanOut(b *testing.B) {
	for _, readers := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint(readers), func(b *testing.B) {
			s, _ := startStream(b, openLog(b))
			publish(b, s, "r-1", decided)
			ctx, cancel := context.WithCancel(b.Context())
			var all, received sync.WaitGroup
			received.Add(readers)
			for range readers {
				all.Go(func() {
					_ = s.Read(ctx, "r-1", 0, func(uint64, *contract.Event) error {
						received.Done()
						return nil
					})
				})
			}
			received.Wait()
			b.ReportAllocs()
			for b.Loop() {
				received.Add(readers)
				publish(b, s, "r-1", progress)
				received.Wait()
			}
			cancel()
			all.Wait()
		})
	}
}

// BenchmarkRead measures a reader that starts after the final event.
func BenchmarkRead(b *testing.B) {
	s, _ := startStream(b, openLog(b))
	publish(b, s, "r-1", whole...)
	b.ReportAllocs()
	for b.Loop() {
		var h eventRecorder
		if err := s.Read(b.Context(), "r-1", 0, h.record); err != nil || len(h.seqs) != len(whole) {
			b.Fatal(err, h.types)
		}
	}
}
