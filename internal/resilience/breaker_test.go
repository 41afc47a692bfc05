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

// clock is a time that moves when it is told to.
type clock struct{ ns atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.ns.Store(time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC).UnixNano())
	return c
}
func (c *clock) Now() time.Time          { return time.Unix(0, c.ns.Load()) }
func (c *clock) Advance(d time.Duration) { c.ns.Add(int64(d)) }

// breaker opens after three failures for ten seconds.
func breaker() (*resilience.Breaker, *clock) {
	c := newClock()
	return resilience.NewBreaker(resilience.BreakerConfig{Failures: 3, OpenFor: 10 * time.Second, Now: c.Now}), c
}

func allow(t *testing.T, b *resilience.Breaker) resilience.Permit {
	t.Helper()
	p, ok := b.Allow()
	if !ok {
		t.Fatalf("Allow refused in state %s; want a permit", b.State())
	}
	return p
}

func refuse(t *testing.T, b *resilience.Breaker) {
	t.Helper()
	if _, ok := b.Allow(); ok {
		t.Fatalf("Allow let a call through (state now %s); want a refusal", b.State())
	}
}

func wantState(t *testing.T, b *resilience.Breaker, want string) {
	t.Helper()
	if got := b.State(); got != want {
		t.Fatalf("State() = %s, want %s", got, want)
	}
}

func fail(t *testing.T, b *resilience.Breaker, times int) {
	t.Helper()
	for range times {
		b.RecordFailure(allow(t, b))
	}
}

func TestBreakerOpensAfterFailuresInARow(t *testing.T) {
	b, c := breaker()
	fail(t, b, 2)
	wantState(t, b, resilience.Closed)
	if got := b.OpenUntil(); !got.IsZero() {
		t.Errorf("OpenUntil() of a closed breaker = %v, want zero", got)
	}
	fail(t, b, 1)
	wantState(t, b, resilience.Open)
	if got, want := b.OpenUntil(), c.Now().Add(10*time.Second); !got.Equal(want) {
		t.Errorf("OpenUntil() = %v, want %v", got, want)
	}
	refuse(t, b)
	c.Advance(10*time.Second - 1)
	refuse(t, b)
}

func TestBreakerCountsOnlyFailuresInARow(t *testing.T) {
	b, _ := breaker()
	for range 10 {
		fail(t, b, 2)
		b.RecordSuccess(allow(t, b))
	}
	wantState(t, b, resilience.Closed)
	fail(t, b, 2)
	b.Release(allow(t, b)) // says nothing, so it neither counts nor resets
	fail(t, b, 1)
	wantState(t, b, resilience.Open)
}

func TestBreakerTrial(t *testing.T) {
	for _, tc := range []struct {
		name    string
		verdict func(*resilience.Breaker, resilience.Permit)
		want    string
	}{
		{"success closes", (*resilience.Breaker).RecordSuccess, resilience.Closed},
		{"failure opens again", (*resilience.Breaker).RecordFailure, resilience.Open},
		{"no verdict leaves it half open", (*resilience.Breaker).Release, resilience.HalfOpen},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b, c := breaker()
			fail(t, b, 3)
			c.Advance(10 * time.Second)
			wantState(t, b, resilience.HalfOpen)
			if got := b.OpenUntil(); !got.IsZero() {
				t.Errorf("OpenUntil() of a half open breaker = %v, want zero", got)
			}
			p := allow(t, b)
			if !p.IsProbe() {
				t.Error("the permit of a half open breaker is no trial")
			}
			refuse(t, b) // one trial at a time
			tc.verdict(b, p)
			wantState(t, b, tc.want)

			tc.verdict(b, p) // a second verdict on one permit does nothing
			wantState(t, b, tc.want)
			switch tc.want {
			case resilience.Closed:
				fail(t, b, 2) // the count starts anew
				wantState(t, b, resilience.Closed)
			case resilience.Open:
				refuse(t, b)
				if got, want := b.OpenUntil(), c.Now().Add(10*time.Second); !got.Equal(want) {
					t.Errorf("OpenUntil() = %v, want a full period from now, %v", got, want)
				}
			case resilience.HalfOpen:
				b.RecordSuccess(allow(t, b))
				wantState(t, b, resilience.Closed)
			}
		})
	}
}

// A slow call from before the breaker opened must not speak for the trial.
func TestBreakerLateVerdicts(t *testing.T) {
	verdicts := map[string]func(*resilience.Breaker, resilience.Permit){
		"success": (*resilience.Breaker).RecordSuccess,
		"failure": (*resilience.Breaker).RecordFailure,
		"ignore":  (*resilience.Breaker).Release,
	}
	for name, late := range verdicts {
		t.Run(name, func(t *testing.T) {
			b, c := breaker()
			slow := allow(t, b)
			fail(t, b, 3)
			c.Advance(10 * time.Second)
			trial := allow(t, b)
			late(b, slow)
			wantState(t, b, resilience.HalfOpen)
			refuse(t, b) // the trial is still out
			b.RecordSuccess(trial)
			wantState(t, b, resilience.Closed)
		})
	}
	t.Run("an older trial", func(t *testing.T) {
		b, c := breaker()
		fail(t, b, 3)
		c.Advance(10 * time.Second)
		first := allow(t, b)
		b.Release(first)
		second := allow(t, b)
		b.RecordSuccess(first)
		wantState(t, b, resilience.HalfOpen)
		b.RecordFailure(second)
		wantState(t, b, resilience.Open)
	})
}

func TestBreakerRecord(t *testing.T) {
	for _, tc := range []struct {
		name string
		err  error
		want string
	}{
		{"nil", nil, resilience.Closed},
		{"an error", errors.New("refused"), resilience.Open},
		{"a deadline", context.DeadlineExceeded, resilience.Open},
		{"the caller left", fmt.Errorf("post: %w", context.Canceled), resilience.HalfOpen},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b, c := breaker()
			fail(t, b, 3)
			c.Advance(10 * time.Second)
			b.RecordError(allow(t, b), tc.err)
			wantState(t, b, tc.want)
		})
	}
}

func TestBreakerClean(t *testing.T) {
	b, c := breaker()
	want := func(when string, clean bool) {
		t.Helper()
		if got := b.IsFresh(); got != clean {
			t.Fatalf("Clean() = %v %s, want %v", got, when, clean)
		}
	}
	want("when new", true)
	b.RecordSuccess(allow(t, b))
	want("after a success", true)
	fail(t, b, 1)
	want("after a failure", false)
	b.RecordSuccess(allow(t, b))
	want("after a failure and a success", true)
	fail(t, b, 3)
	want("when open", false)
	c.Advance(10 * time.Second)
	p := allow(t, b)
	want("when half open", false)
	b.RecordSuccess(p)
	want("after the trial succeeded", true)
}

func TestBreakerDefaults(t *testing.T) {
	b := resilience.NewBreaker(resilience.BreakerConfig{})
	before := time.Now()
	fail(t, b, resilience.DefaultFailures-1)
	wantState(t, b, resilience.Closed)
	fail(t, b, 1)
	wantState(t, b, resilience.Open)
	if got, least := b.OpenUntil(), before.Add(resilience.DefaultOpenFor); got.Before(least) {
		t.Errorf("OpenUntil() = %v, want %v or later", got, least)
	}
}

// model is the breaker of the package comment, written down naively.
type model struct {
	failures  int
	open      bool
	openUntil time.Time
	trial     int // index of the permit on trial; -1 = none
}

type issued struct {
	permit resilience.Permit
	trial  bool
}

func TestBreakerIsItsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 4).Draw(t, "failures")
		c := newClock()
		b := resilience.NewBreaker(resilience.BreakerConfig{Failures: limit, OpenFor: 10 * time.Second, Now: c.Now})
		m := model{trial: -1}
		var out []issued // every permit, by index
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"allow", "allow", "verdict", "verdict", "wait"}).Draw(t, "step") {
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
			case "verdict":
				if len(out) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(out)-1).Draw(t, "permit")
				verdict := rapid.SampledFrom([]string{"success", "failure", "ignore"}).Draw(t, "verdict")
				m.verdict(i, out[i].trial, verdict, limit, c.Now())
				switch verdict {
				case "success":
					b.RecordSuccess(out[i].permit)
				case "failure":
					b.RecordFailure(out[i].permit)
				case "ignore":
					b.Release(out[i].permit)
				}
			case "wait":
				c.Advance(time.Duration(rapid.IntRange(1, 12).Draw(t, "seconds")) * time.Second)
			}
			if got, want := b.State(), m.state(c.Now()); got != want {
				t.Fatalf("State() = %s, want %s in %+v", got, want, m)
			}
			if got, want := b.IsFresh(), !m.open && m.failures == 0; got != want {
				t.Fatalf("Clean() = %v, want %v in %+v", got, want, m)
			}
		}
	})
}

func (m *model) verdict(permit int, trial bool, verdict string, limit int, now time.Time) {
	switch {
	case trial && m.trial != permit, !trial && m.open:
		return // too late
	}
	if trial {
		m.trial = -1
	}
	switch verdict {
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

// However many ask at once, a half open breaker lets one through.
func TestBreakerConcurrentTrial(t *testing.T) {
	b, c := breaker()
	for round := range 50 {
		fail(t, b, 3)
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
			t.Fatalf("round %d: %d calls were let through, want 1", round, got)
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
