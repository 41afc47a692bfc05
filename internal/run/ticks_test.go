package run_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caprouter/caprouter/internal/run"
)

func TestTicks_YieldsAtIntervalUntilContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		start := time.Now()
		var got []time.Duration
		for now := range run.Ticks(ctx, time.Minute) {
			if got = append(got, now.Sub(start)); len(got) == 3 {
				cancel()
			}
		}
		if want := []time.Duration{time.Minute, 2 * time.Minute, 3 * time.Minute}; !slices.Equal(got, want) {
			t.Errorf("got ticks after %v, want %v", got, want)
		}
	})
}

func TestTicks_EndsWithLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		count := 0
		for range run.Ticks(t.Context(), time.Minute) {
			count++
			break
		}
		if count != 1 {
			t.Errorf("got %d ticks, want 1", count)
		}
	})
}
