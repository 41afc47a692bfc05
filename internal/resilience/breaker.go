package resilience

import (
	"context"
	"errors"
	"sync"
	"time"
)

// The states of a Breaker, as State returns them.
const (
	Closed   = "closed"
	Open     = "open"
	HalfOpen = "half_open"
)

// Defaults of a BreakerConfig.
const (
	DefaultFailures = 5
	DefaultOpenFor  = 10 * time.Second
)

// BreakerConfig specifies when a circuit breaker opens and for how long. The
// zero value works.
type BreakerConfig struct {
	Failures int              // consecutive failures that open it; 0 = DefaultFailures
	OpenFor  time.Duration    // before a trial is admitted; 0 = DefaultOpenFor
	Now      func() time.Time // nil = time.Now
}

// Breaker is a circuit breaker: it rejects calls to a peer after consecutive
// failures, and later admits one trial at a time to find out if the peer has
// recovered. It is safe for concurrent use.
type Breaker struct {
	cfg BreakerConfig

	mu        sync.Mutex
	failures  int       // consecutive, while closed
	tripped   bool      // open or half-open
	openUntil time.Time // of a tripped breaker
	trial     uint64    // number of the trial in flight; 0 = none
	trials    uint64    // number of the latest trial
}

// Permit admits one call. The zero value is the permit of a closed breaker.
type Permit struct {
	trial uint64 // 0 = an ordinary call
}

// IsTrial reports whether the outcome of the call decides if the breaker closes.
func (p Permit) IsTrial() bool { return p.trial != 0 }

// NewBreaker returns a closed breaker.
func NewBreaker(cfg BreakerConfig) *Breaker {
	if cfg.Failures <= 0 {
		cfg.Failures = DefaultFailures
	}
	if cfg.OpenFor <= 0 {
		cfg.OpenFor = DefaultOpenFor
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Breaker{cfg: cfg}
}

// Allow reports whether a call may be made now. Each permit needs exactly one
// RecordSuccess, RecordFailure, RecordError or Release. If the breaker has
// changed its state in the meantime, that record is ignored.
func (b *Breaker) Allow() (Permit, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case !b.tripped:
		return Permit{}, true
	case b.currentState() == Open || b.trial != 0:
		return Permit{}, false
	}
	b.trials++
	b.trial = b.trials
	return Permit{trial: b.trial}, true
}

// RecordSuccess records that the peer did its part, which closes the breaker.
func (b *Breaker) RecordSuccess(p Permit) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.consumePermit(p) {
		b.tripped, b.failures = false, 0
	}
}

// RecordFailure records that the peer failed.
func (b *Breaker) RecordFailure(p Permit) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.consumePermit(p) {
		return
	}
	if b.failures++; p.IsTrial() || b.failures >= b.cfg.Failures {
		b.tripped, b.openUntil = true, b.cfg.Now().Add(b.cfg.OpenFor)
	}
}

// Release returns the permit without a result, because the call was cancelled or
// its outcome does not depend on the peer. After a trial, the next call is a new
// one.
func (b *Breaker) Release(p Permit) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.consumePermit(p)
}

// RecordError records nil as a success, context.Canceled as a release, and any
// other error as a failure.
func (b *Breaker) RecordError(p Permit, err error) {
	switch {
	case err == nil:
		b.RecordSuccess(p)
	case errors.Is(err, context.Canceled):
		b.Release(p)
	default:
		b.RecordFailure(p)
	}
}

// consumePermit reports whether p counts in the present state, and ends the trial if
// p is its permit. The caller holds mu.
func (b *Breaker) consumePermit(p Permit) bool {
	if !p.IsTrial() {
		return !b.tripped
	}
	if p.trial != b.trial {
		return false
	}
	b.trial = 0
	return true
}

// State returns Closed, Open or HalfOpen. A breaker is half-open as soon as its
// time has passed, because the next call is the trial.
func (b *Breaker) State() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.currentState()
}

func (b *Breaker) currentState() string {
	switch {
	case !b.tripped:
		return Closed
	case b.trial == 0 && b.cfg.Now().Before(b.openUntil):
		return Open
	}
	return HalfOpen
}

// OpenUntil returns when the first trial is admitted, or the zero time if the
// breaker is not open.
func (b *Breaker) OpenUntil() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.currentState() == Open {
		return b.openUntil
	}
	return time.Time{}
}

// IsFresh reports whether the breaker is closed with no failure since the last
// success. It can then be replaced by a new one.
func (b *Breaker) IsFresh() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.tripped && b.failures == 0
}
