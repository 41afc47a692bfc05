package run

import (
	"context"
	"iter"
	"time"
)

// Ticks yields the time at every interval until ctx ends. As with a time.Ticker, a tick
// is dropped while the loop is busy with the one before.
func Ticks(ctx context.Context, interval time.Duration) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-ticker.C:
				if !yield(now) {
					return
				}
			}
		}
	}
}
