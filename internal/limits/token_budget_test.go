package limits_test

import (
	"math"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/internal/limits"
)

func TestTokenBudget_CountsSixtyMinutes(t *testing.T) {
	b := limits.NewTokenBudget(100)
	at := func(minutes float64) time.Time { return begin.Add(time.Duration(minutes * float64(time.Minute))) }
	reserve := func(estimate int, minutes float64, want bool) func(int) {
		t.Helper()
		settle, ok := b.Reserve(estimate, at(minutes))
		if ok != want {
			t.Errorf("%d tokens at minute %v: got %v, want %v, with %d used", estimate, minutes, ok, want, b.Used())
		}
		return settle
	}
	first := reserve(60, 0.9, true)
	reserve(50, 1, false)(1000) // settling a rejected reservation has no effect
	second := reserve(40, 5, true)
	reserve(1, 5, false)
	second(10) // less than the estimate
	reserve(30, 5, true)(0)
	reserve(31, 5, false)
	first(80) // more
	first(0)  // has no effect
	reserve(11, 59, false)
	reserve(10, 59, true)
	reserve(1, 60.89, false) // the first is less than an hour old
	reserve(80, 62, true)
	reserve(1, 30, false) // the clock goes back: no minute expires
	if b.Used() != 100 {
		t.Errorf("got %d used, want 100", b.Used())
	}
	reserve(100, 1e6, true)
	second(50)
	if b.Used() != 100 {
		t.Errorf("after settling an expired reservation: got %d used, want 100", b.Used())
	}
}

func TestTokenBudget_WithoutLimit(t *testing.T) {
	for _, perHour := range []int{0, -1} {
		b := limits.NewTokenBudget(perHour)
		for range 3 {
			settle, ok := b.Reserve(math.MaxInt, begin)
			if settle(math.MaxInt); !ok {
				t.Errorf("%d per hour: rejected, want no limit", perHour)
			}
		}
	}
}

// TestTokenBudget_BoundsAbsurdCounts checks extreme counts, because they are external input.
func TestTokenBudget_BoundsAbsurdCounts(t *testing.T) {
	b := limits.NewTokenBudget(1000)
	if _, ok := b.Reserve(math.MaxInt, begin); ok {
		t.Error("reserved more than the budget")
	}
	var settles []func(int)
	for range 3 {
		settle, ok := b.Reserve(-5, begin)
		if !ok {
			t.Fatal("a negative estimate was rejected")
		}
		settles = append(settles, settle)
	}
	for i, actual := range []int{math.MaxInt, math.MaxInt, math.MinInt} {
		settles[i](actual)
	}
	if _, ok := b.Reserve(1, begin); ok || b.Used() != 2000 {
		t.Errorf("got %d used, want two full hours", b.Used())
	}
}

// TestTokenBudget_NeverExceedsHour checks that estimates in any 60 minutes stay within the
// budget, and that expired tokens become available again.
func TestTokenBudget_NeverExceedsHour(t *testing.T) {
	type use struct {
		at             time.Time
		estimate, took int
	}
	rapid.Check(t, func(t *rapid.T) {
		perHour := rapid.IntRange(1, 1000).Draw(t, "per hour")
		b := limits.NewTokenBudget(perHour)
		var uses []use
		now := begin
		for range rapid.IntRange(1, 100).Draw(t, "calls") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(20*time.Minute)).Draw(t, "pause")))
			estimate := rapid.IntRange(0, perHour).Draw(t, "estimate")
			used := func(within time.Duration) (estimated, taken int) {
				for _, u := range uses {
					if now.Sub(u.at) < within {
						estimated, taken = estimated+max(u.estimate, u.took), taken+u.took
					}
				}
				return estimated, taken
			}
			settle, ok := b.Reserve(estimate, now)
			_, hour := used(time.Hour)
			_, longer := used(61 * time.Minute)
			switch {
			case ok && hour+estimate > perHour:
				t.Fatalf("reserved %d with %d of %d used in the hour", estimate, hour, perHour)
			case !ok && longer+estimate <= perHour:
				t.Fatalf("rejected %d with %d of %d used in 61 minutes", estimate, longer, perHour)
			case ok:
				took := rapid.IntRange(0, perHour).Draw(t, "took")
				settle(took)
				uses = append(uses, use{now, estimate, took})
			}
		}
	})
}

// TestTokenBudget_ConcurrentReserve checks that concurrent reservations stay within the
// budget and that the sum of settled counts is correct.
func TestTokenBudget_ConcurrentReserve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		perHour := rapid.IntRange(1, 500).Draw(t, "per hour")
		calls := rapid.SliceOfN(rapid.IntRange(0, 100), 1, 64).Draw(t, "estimates")
		share := rapid.IntRange(0, 3).Draw(t, "thirds used")
		b := limits.NewTokenBudget(perHour)
		var (
			wg             sync.WaitGroup
			mu             sync.Mutex
			reserved, took int
			settles        []func()
		)
		for _, estimate := range calls {
			wg.Go(func() {
				settle, ok := b.Reserve(estimate, begin)
				if !ok {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				reserved += estimate
				actual := estimate * share / 3
				took += actual
				settles = append(settles, func() { settle(actual) })
			})
		}
		wg.Wait()
		if reserved > perHour || b.Used() != reserved {
			t.Fatalf("got %d reserved and %d counted, of %d", reserved, b.Used(), perHour)
		}
		for _, settle := range settles {
			for range 2 {
				wg.Go(settle)
			}
		}
		wg.Wait()
		if b.Used() != took {
			t.Fatalf("got %d counted, want %d", b.Used(), took)
		}
	})
}

func BenchmarkReserve(b *testing.B) {
	budget := limits.NewTokenBudget(1 << 40)
	b.ReportAllocs()
	for b.Loop() {
		settle, _ := budget.Reserve(1000, begin)
		settle(800)
	}
}
