package resilience

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
)

// RetryConfig says how often and how patiently something is tried. The zero
// value tries once.
type RetryConfig struct {
	MaxAttempts int           // in all; less than 2 = no retry
	Backoff     time.Duration // before the second try, doubled before each further one
	MaxBackoff  time.Duration // bound of the doubling; 0 = Backoff

	// Retryable reports whether another try may help; nil = always. It is not
	// asked about context.Canceled.
	Retryable func(error) bool
	// AtLeast is how long the peer itself asked to be left alone (Retry-After);
	// nil = it does not say.
	MinDelay func(error) time.Duration
}

// Retry calls fn until it returns nil, with try counting from 1, and returns
// the last error of fn. It gives up when the tries are used up, when the error
// is not retryable, when ctx ends, and when the wait before the next try would
// outlast the deadline of ctx: that wait could only make a late answer later.
//
// Waits are jittered: half of each backoff is fixed, half is random.
func Retry(ctx context.Context, cfg RetryConfig, fn func(ctx context.Context, try int) error) error {
	var (
		last error
		try  int
	)
	attempt := func() error {
		try++
		last = fn(ctx, try)
		return last
	}
	// The first try is made before there is a policy: most need no second one.
	if err := attempt(); err == nil || cfg.MaxAttempts < 2 {
		return err
	}
	var wait time.Duration
	again := func(_ any, err error) bool {
		if err == nil || errors.Is(err, context.Canceled) || cfg.Retryable != nil && !cfg.Retryable(err) {
			return false
		}
		wait = cfg.wait(err, try)
		deadline, ok := ctx.Deadline()
		return !ok || time.Until(deadline) > wait
	}
	policy := retrypolicy.NewBuilder[any]().
		WithMaxAttempts(cfg.MaxAttempts).
		ReturnLastFailure().
		HandleIf(again).
		WithDelayFunc(func(failsafe.ExecutionAttempt[any]) time.Duration { return wait }).
		Build()
	// The library answers with the context's error where ctx ended during or
	// after fn. What fn itself said is worth more, and may be success.
	first := last
	_ = failsafe.With[any](policy).WithContext(ctx).Run(func() error {
		if err := first; err != nil {
			first = nil
			return err
		}
		return attempt()
	})
	return last
}

// wait is the pause after try failed with err.
func (cfg *RetryConfig) wait(err error, try int) time.Duration {
	d := cfg.Backoff
	for range try - 1 {
		d = min(2*d, max(cfg.Backoff, cfg.MaxBackoff))
	}
	if half := d / 2; half > 0 {
		d = half + rand.N(half+1) //nolint:gosec // jitter need not be secret
	}
	if cfg.MinDelay != nil {
		d = max(d, cfg.MinDelay(err))
	}
	return d
}
