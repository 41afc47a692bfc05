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
	errOnce  = errors.New("worth another try")
	errFatal = errors.New("not worth another try")
)

// busy is an error with a Retry-After.
type busy time.Duration

func (b busy) Error() string { return "busy for " + time.Duration(b).String() }

func askedFor(err error) time.Duration {
	if b, ok := errors.AsType[busy](err); ok {
		return time.Duration(b)
	}
	return 0
}

func TestRetry(t *testing.T) {
	cfg := resilience.RetryConfig{
		MaxAttempts: 3,
		Retryable:   func(err error) bool { return !errors.Is(err, errFatal) },
	}
	for _, tc := range []struct {
		name  string
		cfg   resilience.RetryConfig
		errs  []error // what fn returns, try by try
		tries int
		want  error
	}{
		{"success at once", cfg, []error{nil}, 1, nil},
		{"success in the end", cfg, []error{errOnce, errOnce, nil}, 3, nil},
		{"tries used up", cfg, []error{errOnce, errOnce, busy(0)}, 3, busy(0)},
		{"not retryable", cfg, []error{errFatal, nil}, 1, errFatal},
		{"not retryable the second time", cfg, []error{errOnce, errFatal, nil}, 2, errFatal},
		{"cancelled is never retried", cfg, []error{fmt.Errorf("post: %w", context.Canceled), nil}, 1, context.Canceled},
		{"a deadline of its own is", cfg, []error{context.DeadlineExceeded, nil}, 2, nil},
		{"the zero value tries once", resilience.RetryConfig{}, []error{errOnce, nil}, 1, errOnce},
		{"without a predicate everything is retried", resilience.RetryConfig{MaxAttempts: 2}, []error{errFatal, nil}, 2, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var seen []int
			err := resilience.Retry(t.Context(), tc.cfg, func(_ context.Context, try int) error {
				seen = append(seen, try)
				return tc.errs[try-1]
			})
			if !errors.Is(err, tc.want) {
				t.Errorf("Retry() = %v, want %v", err, tc.want)
			}
			var want []int
			for i := range tc.tries {
				want = append(want, i+1)
			}
			if diff := cmp.Diff(want, seen); diff != "" {
				t.Errorf("tries (-want +got):\n%s", diff)
			}
		})
	}
}

// retryTimes runs Retry in a bubble whose clock jumps, and says when each try
// began.
func retryTimes(t *testing.T, cfg resilience.RetryConfig, deadline time.Duration, fail error) (at []time.Duration, err error) {
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

func TestRetryWaits(t *testing.T) {
	at, _ := retryTimes(t, resilience.RetryConfig{MaxAttempts: 5, Backoff: 100 * time.Millisecond, MaxBackoff: 250 * time.Millisecond}, time.Hour, errOnce)
	for i, want := range []time.Duration{100, 200, 250, 250} {
		want *= time.Millisecond
		if got := at[i+1] - at[i]; got < want/2 || got > want {
			t.Errorf("wait %d = %v, want between %v and %v", i+1, got, want/2, want)
		}
	}
}

func TestRetryHonoursThePeer(t *testing.T) {
	cfg := resilience.RetryConfig{MaxAttempts: 2, Backoff: time.Second, MinDelay: askedFor}
	at, _ := retryTimes(t, cfg, time.Hour, busy(7*time.Second))
	if diff := cmp.Diff([]time.Duration{0, 7 * time.Second}, at); diff != "" {
		t.Errorf("tries began (-want +got):\n%s", diff)
	}
}

// A wait that outlasts the deadline is not begun: the answer comes at once.
func TestRetryDoesNotWaitInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		tries := 0
		err := resilience.Retry(ctx, resilience.RetryConfig{MaxAttempts: 2, MinDelay: askedFor}, func(context.Context, int) error {
			tries++
			return busy(6 * time.Second)
		})
		if got := time.Since(start); got != 0 || tries != 1 || !errors.Is(err, busy(6*time.Second)) {
			t.Errorf("got %v after %d tries and %v; want the peer's error after 1 try and no wait", err, tries, got)
		}
	})
}

func TestRetryEndsWithItsContext(t *testing.T) {
	t.Run("in the wait", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			tries := 0
			err := resilience.Retry(ctx, resilience.RetryConfig{MaxAttempts: 9, Backoff: time.Hour}, func(context.Context, int) error {
				tries++
				return errOnce
			})
			if tries != 1 || !errors.Is(err, errOnce) {
				t.Errorf("got %v after %d tries, want the error of the one try", err, tries)
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
		tries := 0
		err := resilience.Retry(ctx, resilience.RetryConfig{MaxAttempts: 5}, func(context.Context, int) error {
			tries++
			cancel()
			return errOnce
		})
		if tries != 1 || !errors.Is(err, errOnce) {
			t.Errorf("got %v after %d tries, want the error of the one try", err, tries)
		}
	})
}

func TestRetryProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tries := rapid.IntRange(0, 5).Draw(t, "tries")
		errs := rapid.SliceOfN(rapid.SampledFrom([]error{nil, errOnce, errFatal}), 6, 6).Draw(t, "errors")
		calls := 0
		err := resilience.Retry(t.Context(), resilience.RetryConfig{
			MaxAttempts: tries,
			Retryable:   func(err error) bool { return !errors.Is(err, errFatal) },
		}, func(_ context.Context, try int) error {
			calls++
			if try != calls {
				t.Fatalf("try = %d at call %d", try, calls)
			}
			return errs[try-1]
		})
		want := 1
		for want < max(tries, 1) && errors.Is(errs[want-1], errOnce) {
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
