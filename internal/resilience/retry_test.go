package resilience_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/internal/resilience"
)

var (
	errTransient = errors.New("transient")
	errPermanent = errors.New("permanent")
)

// busy is an error with a Retry-After.
type busy time.Duration

func (b busy) Error() string { return "busy for " + time.Duration(b).String() }

func retryAfterOf(err error) time.Duration {
	if b, ok := errors.AsType[busy](err); ok {
		return time.Duration(b)
	}
	return 0
}

func TestRetry_StopsByAttemptsAndError(t *testing.T) {
	cfg := resilience.RetryConfig{
		MaxAttempts: 3,
		Retryable:   func(err error) bool { return !errors.Is(err, errPermanent) },
	}
	for _, tc := range []struct {
		name     string
		cfg      resilience.RetryConfig
		errs     []error // result of fn for each attempt
		attempts int
		want     error
	}{
		{"success at once", cfg, []error{nil}, 1, nil},
		{"success after failures", cfg, []error{errTransient, errTransient, nil}, 3, nil},
		{"attempts used up", cfg, []error{errTransient, errTransient, busy(0)}, 3, busy(0)},
		{"not retryable", cfg, []error{errPermanent, nil}, 1, errPermanent},
		{"second error not retryable", cfg, []error{errTransient, errPermanent, nil}, 2, errPermanent},
		{"canceled is not retried", cfg, []error{fmt.Errorf("post: %w", context.Canceled), nil}, 1, context.Canceled},
		{"deadline of the attempt is retried", cfg, []error{context.DeadlineExceeded, nil}, 2, nil},
		{"zero config makes one attempt", resilience.RetryConfig{}, []error{errTransient, nil}, 1, errTransient},
		{"no predicate retries every error", resilience.RetryConfig{MaxAttempts: 2}, []error{errPermanent, nil}, 2, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var seen []int
			err := resilience.Retry(t.Context(), tc.cfg, func(_ context.Context, attempt int) error {
				seen = append(seen, attempt)
				return tc.errs[attempt-1]
			})
			if !errors.Is(err, tc.want) {
				t.Errorf("Retry() = %v, want %v", err, tc.want)
			}
			var want []int
			for i := range tc.attempts {
				want = append(want, i+1)
			}
			if diff := cmp.Diff(want, seen); diff != "" {
				t.Errorf("attempts (-want +got):\n%s", diff)
			}
		})
	}
}

// attemptTimes runs Retry with a fake clock and returns when each attempt started.
func attemptTimes(t *testing.T, cfg resilience.RetryConfig, deadline time.Duration, fail error) (at []time.Duration, err error) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		defer cancel()
		err = resilience.Retry(ctx, cfg, func(context.Context, int) error {
			at = append(at, time.Since(start))
			return fail
		})
	})
	return at, err
}

func TestRetry_DoublesBackoffUpToBound(t *testing.T) {
	at, _ := attemptTimes(t, resilience.RetryConfig{MaxAttempts: 5, Backoff: 100 * time.Millisecond, MaxBackoff: 250 * time.Millisecond}, time.Hour, errTransient)
	for i, want := range []time.Duration{100, 200, 250, 250} {
		want *= time.Millisecond
		if got := at[i+1] - at[i]; got < want/2 || got > want {
			t.Errorf("wait %d = %v, want between %v and %v", i+1, got, want/2, want)
		}
	}
}

func TestRetry_WaitsMinDelayOfPeer(t *testing.T) {
	cfg := resilience.RetryConfig{MaxAttempts: 2, Backoff: time.Second, MinDelay: retryAfterOf}
	at, _ := attemptTimes(t, cfg, time.Hour, busy(7*time.Second))
	if diff := cmp.Diff([]time.Duration{0, 7 * time.Second}, at); diff != "" {
		t.Errorf("start of attempts (-want +got):\n%s", diff)
	}
}

// If the delay exceeds the deadline, the error is returned at once.
func TestRetry_DoesNotWaitPastDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		attempts := 0
		err := resilience.Retry(ctx, resilience.RetryConfig{MaxAttempts: 2, MinDelay: retryAfterOf}, func(context.Context, int) error {
			attempts++
			return busy(6 * time.Second)
		})
		if got := time.Since(start); got != 0 || attempts != 1 || !errors.Is(err, busy(6*time.Second)) {
			t.Errorf("got %v after %d attempts and %v; want the peer's error after 1 attempt and no wait", err, attempts, got)
		}
	})
}

func TestRetry_StopsWhenContextEnds(t *testing.T) {
	t.Run("during the delay", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			attempts := 0
			err := resilience.Retry(ctx, resilience.RetryConfig{MaxAttempts: 9, Backoff: time.Hour}, func(context.Context, int) error {
				attempts++
				return errTransient
			})
			if attempts != 1 || !errors.Is(err, errTransient) {
				t.Errorf("got %v after %d attempts, want the error of the only attempt", err, attempts)
			}
		})
	})
	t.Run("while fn succeeds", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		err := resilience.Retry(ctx, resilience.RetryConfig{MaxAttempts: 2}, func(context.Context, int) error {
			cancel()
			return nil
		})
		if err != nil {
			t.Errorf("Retry() = %v, want nil: fn succeeded", err)
		}
	})
	t.Run("while fn fails", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		attempts := 0
		err := resilience.Retry(ctx, resilience.RetryConfig{MaxAttempts: 5}, func(context.Context, int) error {
			attempts++
			cancel()
			return errTransient
		})
		if attempts != 1 || !errors.Is(err, errTransient) {
			t.Errorf("got %v after %d attempts, want the error of the only attempt", err, attempts)
		}
	})
}

func TestRetry_MatchesModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		attempts := rapid.IntRange(0, 5).Draw(t, "attempts")
		errs := rapid.SliceOfN(rapid.SampledFrom([]error{nil, errTransient, errPermanent}), 6, 6).Draw(t, "errors")
		calls := 0
		err := resilience.Retry(t.Context(), resilience.RetryConfig{
			MaxAttempts: attempts,
			Retryable:   func(err error) bool { return !errors.Is(err, errPermanent) },
		}, func(_ context.Context, attempt int) error {
			calls++
			if attempt != calls {
				t.Fatalf("attempt = %d at call %d", attempt, calls)
			}
			return errs[attempt-1]
		})
		want := 1
		for want < max(attempts, 1) && errors.Is(errs[want-1], errTransient) {
			want++
		}
		if calls != want || !errors.Is(err, errs[want-1]) {
			t.Fatalf("%d calls and %v, want %d calls and %v", calls, err, want, errs[want-1])
		}
	})
}

func BenchmarkRetryNotNeeded(b *testing.B) {
	ctx := b.Context()
	cfg := resilience.RetryConfig{MaxAttempts: 2, Backoff: time.Millisecond, Retryable: func(error) bool { return true }}
	b.ReportAllocs()
	for b.Loop() {
		_ = resilience.Retry(ctx, cfg, func(context.Context, int) error { return nil })
	}
}

func TestAddJitter_KeepsHalf(t *testing.T) {
	for _, d := range []time.Duration{0, 1, 2, 3, time.Second, time.Hour} {
		for range 100 {
			if got := resilience.AddJitter(d); got < d/2 || got > d {
				t.Fatalf("AddJitter(%s) = %s, want between %s and %s", d, got, d/2, d)
			}
		}
	}
}

func TestBackoff_DoublesUpToMax(t *testing.T) {
	b := resilience.Backoff{Min: time.Second, Max: 5 * time.Second}
	var got []time.Duration
	for range 5 {
		got = append(got, b.Next())
	}
	b.Reset()
	got = append(got, b.Next(), b.Next())
	want := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second, time.Second, 2 * time.Second}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pauses (-want +got):\n%s", diff)
	}
}

func TestBackoff_SleepEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		b := resilience.Backoff{Min: time.Second, Max: time.Minute}
		if !b.Sleep(ctx) {
			t.Error("the first pause: got an ended context, want an active one")
		}
		if b.Sleep(ctx) {
			t.Error("the second pause: got an active context, want an ended one")
		}
	})
}

func TestSleep_EndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	if !resilience.Sleep(ctx, 0) {
		t.Error("no time at all: got false, want true")
	}
	cancel()
	if resilience.Sleep(ctx, time.Hour) {
		t.Error("after the end of the context: got true, want false")
	}
}
