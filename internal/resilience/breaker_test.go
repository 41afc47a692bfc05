package resilience_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/internal/resilience"
)

// clock is a manual clock.
type clock struct{ ns atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.ns.Store(time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC).UnixNano())
	return c
}
func (c *clock) Now() time.Time          { return time.Unix(0, c.ns.Load()) }
func (c *clock) Advance(d time.Duration) { c.ns.Add(int64(d)) }

// newTestBreaker returns a breaker that opens after three failures for ten seconds.
func newTestBreaker() (*resilience.Breaker, *clock) {
	c := newClock()
	return resilience.NewBreaker(resilience.BreakerConfig{Failures: 3, OpenFor: 10 * time.Second, Now: c.Now}), c
}

func mustAllow(t *testing.T, b *resilience.Breaker) resilience.Permit {
	t.Helper()
	p, ok := b.Allow()
	if !ok {
		t.Fatalf("Allow rejected the call in state %s, want a permit", b.State())
	}
	return p
}

func wantRejected(t *testing.T, b *resilience.Breaker) {
	t.Helper()
	if _, ok := b.Allow(); ok {
		t.Fatalf("Allow admitted the call in state %s, want a rejection", b.State())
	}
}

func wantState(t *testing.T, b *resilience.Breaker, want string) {
	t.Helper()
	if got := b.State(); got != want {
		t.Fatalf("State() = %s, want %s", got, want)
	}
}

func recordFailures(t *testing.T, b *resilience.Breaker, times int) {
	t.Helper()
	for range times {
		b.RecordFailure(mustAllow(t, b))
	}
}

func TestBreaker_OpensAfterConsecutiveFailures(t *testing.T) {
	b, c := newTestBreaker()
	recordFailures(t, b, 2)
	wantState(t, b, resilience.Closed)
	if got := b.OpenUntil(); !got.IsZero() {
		t.Errorf("OpenUntil() of a closed breaker = %v, want zero", got)
	}
	recordFailures(t, b, 1)
	wantState(t, b, resilience.Open)
	if got, want := b.OpenUntil(), c.Now().Add(10*time.Second); !got.Equal(want) {
		t.Errorf("OpenUntil() = %v, want %v", got, want)
	}
	wantRejected(t, b)
	c.Advance(10*time.Second - 1)
	wantRejected(t, b)
}

func TestBreaker_SuccessResetsFailureCount(t *testing.T) {
	b, _ := newTestBreaker()
	for range 10 {
		recordFailures(t, b, 2)
		b.RecordSuccess(mustAllow(t, b))
	}
	wantState(t, b, resilience.Closed)
	recordFailures(t, b, 2)
	b.Release(mustAllow(t, b)) // neither counts nor resets
	recordFailures(t, b, 1)
	wantState(t, b, resilience.Open)
}

func TestBreaker_TrialResultDecidesState(t *testing.T) {
	for _, tc := range []struct {
		name   string
		record func(*resilience.Breaker, resilience.Permit)
		want   string
	}{
		{"success closes", (*resilience.Breaker).RecordSuccess, resilience.Closed},
		{"failure opens again", (*resilience.Breaker).RecordFailure, resilience.Open},
		{"release stays half open", (*resilience.Breaker).Release, resilience.HalfOpen},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b, c := newTestBreaker()
			recordFailures(t, b, 3)
			c.Advance(10 * time.Second)
			wantState(t, b, resilience.HalfOpen)
			if got := b.OpenUntil(); !got.IsZero() {
				t.Errorf("OpenUntil() of a half-open breaker = %v, want zero", got)
			}
			p := mustAllow(t, b)
			if !p.IsTrial() {
				t.Error("got a permit of a half-open breaker that is not a trial, want a trial")
			}
			wantRejected(t, b) // one trial at a time
			tc.record(b, p)
			wantState(t, b, tc.want)

			tc.record(b, p) // a second result for one permit is ignored
			wantState(t, b, tc.want)
			switch tc.want {
			case resilience.Closed:
				recordFailures(t, b, 2) // the count restarts
				wantState(t, b, resilience.Closed)
			case resilience.Open:
				wantRejected(t, b)
				if got, want := b.OpenUntil(), c.Now().Add(10*time.Second); !got.Equal(want) {
					t.Errorf("OpenUntil() = %v, want a full period from now, %v", got, want)
				}
			case resilience.HalfOpen:
				b.RecordSuccess(mustAllow(t, b))
				wantState(t, b, resilience.Closed)
			}
		})
	}
}

// A slow call that started before the breaker opened must not affect the trial.
func TestBreaker_IgnoresResultsFromBeforeStateChange(t *testing.T) {
	records := map[string]func(*resilience.Breaker, resilience.Permit){
		"success": (*resilience.Breaker).RecordSuccess,
		"failure": (*resilience.Breaker).RecordFailure,
		"release": (*resilience.Breaker).Release,
	}
	for name, late := range records {
		t.Run(name, func(t *testing.T) {
			b, c := newTestBreaker()
			slow := mustAllow(t, b)
			recordFailures(t, b, 3)
			c.Advance(10 * time.Second)
			trial := mustAllow(t, b)
			late(b, slow)
			wantState(t, b, resilience.HalfOpen)
			wantRejected(t, b) // the trial is in flight
			b.RecordSuccess(trial)
			wantState(t, b, resilience.Closed)
		})
	}
	t.Run("an older trial", func(t *testing.T) {
		b, c := newTestBreaker()
		recordFailures(t, b, 3)
		c.Advance(10 * time.Second)
		first := mustAllow(t, b)
		b.Release(first)
		second := mustAllow(t, b)
		b.RecordSuccess(first)
		wantState(t, b, resilience.HalfOpen)
		b.RecordFailure(second)
		wantState(t, b, resilience.Open)
	})
}

func TestBreaker_RecordErrorMapsErrorToResult(t *testing.T) {
	for _, tc := range []struct {
		name string
		err  error
		want string
	}{
		{"nil", nil, resilience.Closed},
		{"error", errors.New("refused"), resilience.Open},
		{"a deadline", context.DeadlineExceeded, resilience.Open},
		{"canceled by the caller", fmt.Errorf("post: %w", context.Canceled), resilience.HalfOpen},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b, c := newTestBreaker()
			recordFailures(t, b, 3)
			c.Advance(10 * time.Second)
			b.RecordError(mustAllow(t, b), tc.err)
			wantState(t, b, tc.want)
		})
	}
}

func TestBreaker_IsFreshOnlyWithoutFailures(t *testing.T) {
	b, c := newTestBreaker()
	want := func(when string, fresh bool) {
		t.Helper()
		if got := b.IsFresh(); got != fresh {
			t.Fatalf("IsFresh() = %v %s, want %v", got, when, fresh)
		}
	}
	want("when new", true)
	b.RecordSuccess(mustAllow(t, b))
	want("after a success", true)
	recordFailures(t, b, 1)
	want("after a failure", false)
	b.RecordSuccess(mustAllow(t, b))
	want("after a failure and a success", true)
	recordFailures(t, b, 3)
	want("when open", false)
	c.Advance(10 * time.Second)
	p := mustAllow(t, b)
	want("when half-open", false)
	b.RecordSuccess(p)
	want("after the trial succeeded", true)
}

func TestBreaker_ZeroConfigUsesDefaults(t *testing.T) {
	b := resilience.NewBreaker(resilience.BreakerConfig{})
	before := time.Now()
	recordFailures(t, b, resilience.DefaultFailures-1)
	wantState(t, b, resilience.Closed)
	recordFailures(t, b, 1)
	wantState(t, b, resilience.Open)
	if got, least := b.OpenUntil(), before.Add(resilience.DefaultOpenFor); got.Before(least) {
		t.Errorf("OpenUntil() = %v, want %v or later", got, least)
	}
}

// model is a simple implementation of the state machine in the package comment.
type model struct {
	failures  int
	open      bool
	openUntil time.Time
	trial     int // index of the permit of the trial; -1 = none
}

type issued struct {
	permit resilience.Permit
	trial  bool
}

func TestBreaker_MatchesModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 4).Draw(t, "failures")
		c := newClock()
		b := resilience.NewBreaker(resilience.BreakerConfig{Failures: limit, OpenFor: 10 * time.Second, Now: c.Now})
		m := model{trial: -1}
		var out []issued // every permit, by index
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"allow", "allow", "record", "record", "wait"}).Draw(t, "step") {
			case "allow":
				want := !m.open || m.trial < 0 && !c.Now().Before(m.openUntil)
				p, ok := b.Allow()
				if ok != want {
					t.Fatalf("Allow() = %v, want %v in %+v", ok, want, m)
				}
				if ok {
					if m.open {
						m.trial = len(out)
					}
					out = append(out, issued{p, m.open})
				}
			case "record":
				if len(out) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(out)-1).Draw(t, "permit")
				result := rapid.SampledFrom([]string{"success", "failure", "release"}).Draw(t, "record")
				m.record(i, out[i].trial, result, limit, c.Now())
				switch result {
				case "success":
					b.RecordSuccess(out[i].permit)
				case "failure":
					b.RecordFailure(out[i].permit)
				case "release":
					b.Release(out[i].permit)
				}
			case "wait":
				c.Advance(time.Duration(rapid.IntRange(1, 12).Draw(t, "seconds")) * time.Second)
			}
			if got, want := b.State(), m.state(c.Now()); got != want {
				t.Fatalf("State() = %s, want %s in %+v", got, want, m)
			}
			if got, want := b.IsFresh(), !m.open && m.failures == 0; got != want {
				t.Fatalf("IsFresh() = %v, want %v in %+v", got, want, m)
			}
		}
	})
}

func (m *model) record(permit int, trial bool, result string, limit int, now time.Time) {
	switch {
	case trial && m.trial != permit, !trial && m.open:
		return // recorded too late
	}
	if trial {
		m.trial = -1
	}
	switch result {
	case "success":
		m.open, m.failures = false, 0
	case "failure":
		if m.failures++; trial || m.failures >= limit {
			m.open, m.openUntil = true, now.Add(10*time.Second)
		}
	}
}

func (m *model) state(now time.Time) string {
	switch {
	case !m.open:
		return resilience.Closed
	case m.trial < 0 && now.Before(m.openUntil):
		return resilience.Open
	}
	return resilience.HalfOpen
}

// A half-open breaker admits one of many concurrent calls.
func TestBreaker_AdmitsOneTrialUnderConcurrency(t *testing.T) {
	b, c := newTestBreaker()
	for round := range 50 {
		recordFailures(t, b, 3)
		c.Advance(10 * time.Second)
		var (
			admitted atomic.Int64
			trial    atomic.Pointer[resilience.Permit]
			wg       sync.WaitGroup
		)
		for range 16 {
			wg.Go(func() {
				if p, ok := b.Allow(); ok {
					admitted.Add(1)
					trial.Store(&p)
				}
				b.State()
				b.OpenUntil()
			})
		}
		wg.Wait()
		if got := admitted.Load(); got != 1 {
			t.Fatalf("round %d: admitted %d calls, want 1", round, got)
		}
		b.RecordSuccess(*trial.Load())
	}
}

func BenchmarkBreakerClosed(b *testing.B) {
	br := resilience.NewBreaker(resilience.BreakerConfig{})
	b.ReportAllocs()
	for b.Loop() {
		p, _ := br.Allow()
		br.RecordSuccess(p)
	}
}
