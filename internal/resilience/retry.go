package resilience

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// RetryConfig specifies how often and after which delay a call is retried. The
// zero value makes one attempt.
type RetryConfig struct {
	MaxAttempts int           // including the first; less than 2 = no retry
	Backoff     time.Duration // before the second attempt, doubled for each further one
	MaxBackoff  time.Duration // bound of the doubling; 0 = Backoff

	// Retryable reports whether another attempt may succeed; nil = always. It is
	// not called for context.Canceled.
	Retryable func(error) bool
	// MinDelay returns the delay that the peer requests (Retry-After); nil = none.
	MinDelay func(error) time.Duration
}

// Retry calls fn with attempt = 1, 2, … until it returns nil, and returns the
// last error of fn. It stops if the attempts are used up, if the error is not
// retryable, if ctx ends, or if the delay before the next attempt would exceed
// the deadline of ctx, because waiting would only make the error late.
//
// Half of each backoff is fixed and half is random.
func Retry(ctx context.Context, cfg RetryConfig, fn func(ctx context.Context, attempt int) error) error {
	for attempt := 1; ; attempt++ {
		err := fn(ctx, attempt)
		if err == nil || attempt >= cfg.MaxAttempts || !cfg.shouldRetry(err) {
			return err
		}
		delay := cfg.nextDelay(err, attempt)
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= delay || !Sleep(ctx, delay) {
			return err
		}
	}
}

func (cfg *RetryConfig) shouldRetry(err error) bool {
	return !errors.Is(err, context.Canceled) && (cfg.Retryable == nil || cfg.Retryable(err))
}

// nextDelay returns the pause after the attempt that failed with err.
func (cfg *RetryConfig) nextDelay(err error, attempt int) time.Duration {
	d := cfg.Backoff
	for range attempt - 1 {
		d = min(2*d, max(cfg.Backoff, cfg.MaxBackoff))
	}
	d = AddJitter(d)
	if cfg.MinDelay != nil {
		d = max(d, cfg.MinDelay(err))
	}
	return d
}

// AddJitter returns a random duration between half of d and d, so that callers that
// failed at the same time do not retry at the same time.
func AddJitter(d time.Duration) time.Duration {
	half := d / 2
	if half <= 0 {
		return d
	}
	return half + rand.N(half+1) //nolint:gosec // need not be secret
}

// Backoff is an exponential backoff for a loop that repeats something until it succeeds or
// is stopped: the first pause is Min, and each further one is doubled, up to Max. One
// goroutine owns it.
type Backoff struct {
	Min, Max time.Duration

	next time.Duration // 0 = Min
}

// Next returns the pause before the next repetition.
func (b *Backoff) Next() time.Duration {
	pause := max(b.next, b.Min)
	b.next = min(2*pause, b.Max)
	return pause
}

// Reset makes Min the next pause again, after a success.
func (b *Backoff) Reset() { b.next = 0 }

// Sleep waits for the next pause and reports whether ctx is still active.
func (b *Backoff) Sleep(ctx context.Context) bool { return Sleep(ctx, b.Next()) }

// Sleep waits for d and reports whether ctx is still active.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
