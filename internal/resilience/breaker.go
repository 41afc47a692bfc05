package resilience

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"
)

// The states of a Breaker, as State names them.
const (
	Closed   = "closed"
	Open     = "open"
	HalfOpen = "half_open"
)

// What an absent field of a BreakerConfig means.
const (
	DefaultFailures = 5
	DefaultOpenFor  = 10 * time.Second
)

// BreakerConfig says when a breaker opens and for how long. The zero value
// works.
type BreakerConfig struct {
	Failures int              // in a row that open it; 0 = DefaultFailures
	OpenFor  time.Duration    // before a trial is let through; 0 = DefaultOpenFor
	Now      func() time.Time // nil = time.Now
}

// Breaker refuses calls to a peer that has failed several times in a row, and
// lets one trial at a time find out whether it is back. Its methods may be
// called from any goroutine.
//
// The library counts and keeps the state. Time and trials are kept here: its
// clock cannot be replaced, it has no way to give a trial back without a
// verdict, and it takes the late verdict of a call from before the breaker
// opened for the verdict of the trial.
type Breaker struct {
	openFor time.Duration
	now     func() time.Time

	mu        sync.Mutex
	inner     circuitbreaker.CircuitBreaker[any]
	openUntil time.Time
	trial     uint64 // number of the trial under way; 0 = none
	trials    uint64 // numbers given out
	spoiled   bool   // a failure has counted and no success since
}

// Permit is the leave to make one call. The zero value is that of a call let
// through by a closed breaker.
type Permit struct {
	trial uint64 // 0 = an ordinary call
}

// IsProbe reports whether the call decides if the breaker closes again.
func (p Permit) IsProbe() bool { return p.trial != 0 }

// NewBreaker returns a closed breaker.
func NewBreaker(cfg BreakerConfig) *Breaker {
	b := &Breaker{openFor: cfg.OpenFor, now: cfg.Now}
	if cfg.Failures <= 0 {
		cfg.Failures = DefaultFailures
	}
	if b.openFor <= 0 {
		b.openFor = DefaultOpenFor
	}
	if b.now == nil {
		b.now = time.Now
	}
	b.inner = circuitbreaker.NewBuilder[any]().
		WithFailureThreshold(uint(cfg.Failures)).
		WithSuccessThreshold(1).
		WithDelay(math.MaxInt64). // Allow says when it is over
		Build()
	return b
}

// Allow reports whether a call may be made now. Each permit must get exactly
// one verdict: Success, Failure, Ignore or Record. A verdict that comes after
// the breaker has changed its state no longer counts.
func (b *Breaker) Allow() (Permit, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.inner.IsClosed() {
		return Permit{}, true
	}
	if b.inner.IsOpen() {
		if b.now().Before(b.openUntil) {
			return Permit{}, false
		}
		b.inner.HalfOpen()
	}
	if !b.inner.TryAcquirePermit() {
		return Permit{}, false // another trial is under way
	}
	b.trials++
	b.trial = b.trials
	return Permit{trial: b.trial}, true
}

// RecordSuccess says that the peer did its part.
func (b *Breaker) RecordSuccess(p Permit) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.counts(p) {
		b.inner.RecordSuccess()
		b.spoiled = false
	}
}

// RecordFailure says that the peer did not do its part.
func (b *Breaker) RecordFailure(p Permit) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.counts(p) {
		return
	}
	b.inner.RecordFailure()
	b.spoiled = true
	if b.inner.IsOpen() {
		b.openUntil = b.now().Add(b.openFor)
	}
}

// Release gives the permit back without a verdict: the call was cancelled, or
// says nothing about the peer.
func (b *Breaker) Release(p Permit) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.counts(p) && p.IsProbe() {
		// Entering the state anew is the library's only way to get a trial
		// back. openUntil has passed and stays as it is.
		b.inner.Open()
		b.inner.HalfOpen()
	}
}

// RecordError gives the verdict an error stands for: nil is Success,
// context.Canceled is Ignore, anything else Failure.
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

// counts reports whether a verdict on p still matters, and takes the trial as
// decided if it is p. The caller holds mu.
func (b *Breaker) counts(p Permit) bool {
	if !p.IsProbe() {
		return b.inner.IsClosed()
	}
	if p.trial != b.trial {
		return false
	}
	b.trial = 0
	return true
}

// State returns Closed, Open or HalfOpen. An open breaker whose time is over
// is half open already: the next call is the trial.
func (b *Breaker) State() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.inner.IsClosed():
		return Closed
	case b.inner.IsOpen() && b.now().Before(b.openUntil):
		return Open
	}
	return HalfOpen
}

// OpenUntil returns when the first trial is let through; the zero time when
// the breaker is not open.
func (b *Breaker) OpenUntil() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.inner.IsOpen() && b.now().Before(b.openUntil) {
		return b.openUntil
	}
	return time.Time{}
}

// IsFresh reports whether the breaker is closed and no failure has come since the
// last success: it then knows nothing a new breaker would not.
func (b *Breaker) IsFresh() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.inner.IsClosed() && !b.spoiled
}
