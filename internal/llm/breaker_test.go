package llm_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/resilience"
)

func TestBreaker(t *testing.T) {
	for name, tc := range map[string]struct {
		do    step
		opens bool
	}{
		"a timeout":                     {failing(llm.ReasonTimeout, 0), true},
		"the deadline itself":           {step{takes: time.Minute}, true},
		"429":                           {limited, true},
		"5xx":                           {unavailable, true},
		"no connection":                 {failing(llm.ReasonUnavailable, 0), true},
		"a wrong key":                   {failing(llm.ReasonUnauthorized, 401), true},
		"a model nobody has":            {failing(llm.ReasonRejected, 404), true},
		"a redirect":                    {failing(llm.ReasonRejected, 307), true},
		"a bad response":                {failing(llm.ReasonBadResponse, 200), true},
		"an error nobody knows":         {step{err: errors.New("x")}, true},
		"a request it does not take":    {failing(llm.ReasonRejected, 400), false},
		"one that is too long for it":   {failing(llm.ReasonRejected, 413), false},
		"held back by filters":          {blocked, false},
		"nothing said":                  {failing(llm.ReasonEmpty, 200), false},
		"cut off":                       {step{reply: &llm.Reply{Truncated: true}}, false},
		"a caller who left":             {step{err: context.Canceled}, false},
		"a caller who left, in between": {step{err: fmt.Errorf("x: %w", context.Canceled)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &script{steps: []step{tc.do}}
				c := llm.NewClient(llm.ClientConfig{Breaker: resilience.BreakerConfig{Failures: 3}}, p)
				for range 6 {
					_, _ = c.Generate(within(t, 2*time.Second), &llm.Request{})
				}
				want := resilience.Closed
				if tc.opens {
					want = resilience.Open
				}
				if got := c.BreakerState(); got != want {
					t.Fatalf("the breaker is %s after %d calls, want %s", got, len(p.calls), want)
				}
				if !tc.opens {
					return
				}
				before, began := len(p.calls), time.Now()
				_, err := c.Generate(within(t, 2*time.Second), &llm.Request{})
				if llm.ReasonOf(err) != llm.ReasonBreakerOpen || len(p.calls) != before || time.Since(began) != 0 {
					t.Errorf("got %v after %v and %d more calls, want %s at once", err, time.Since(began), len(p.calls)-before, llm.ReasonBreakerOpen)
				}
			})
		})
	}
}

func TestBreakerCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &script{steps: []step{limited}}
		c := llm.NewClient(llm.ClientConfig{Breaker: resilience.BreakerConfig{Failures: 2, OpenFor: time.Second}}, p)
		// The retry of the first request is the second failure: it opens.
		if _, err := c.Generate(within(t, 2*time.Second), &llm.Request{}); llm.ReasonOf(err) != llm.ReasonRateLimited {
			t.Fatal(err)
		}
		<-time.After(time.Second)
		if got := c.BreakerState(); got != resilience.HalfOpen {
			t.Fatalf("the breaker is %s, want half open", got)
		}
		p.steps = []step{blocked}
		if _, err := c.Generate(within(t, 2*time.Second), &llm.Request{}); llm.ReasonOf(err) != llm.ReasonBlocked {
			t.Fatal(err)
		}
		if got := c.BreakerState(); got != resilience.Closed {
			t.Errorf("the breaker is %s after the model did its part, want closed", got)
		}
	})
}

// A retry that the breaker refuses leaves the error that opened it.
func TestRetryAfterTheBreakerOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &script{steps: []step{limited}}
		c := llm.NewClient(llm.ClientConfig{Breaker: resilience.BreakerConfig{Failures: 1}}, p)
		_, err := c.Generate(within(t, 2*time.Second), &llm.Request{})
		if llm.ReasonOf(err) != llm.ReasonRateLimited || len(p.calls) != 1 {
			t.Errorf("got %v after %d calls, want %s after 1", err, len(p.calls), llm.ReasonRateLimited)
		}
	})
}

// panicker fails in a way no provider should, once.
type panicker struct{ calls int }

func (p *panicker) Generate(context.Context, *llm.Request) (*llm.Reply, error) {
	if p.calls++; p.calls == 2 {
		panic("boom")
	}
	return nil, limited.err
}

// A panic during the trial of a breaker must not keep it half open.
func TestPanicGivesTheTrialBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &panicker{}
		c := llm.NewClient(llm.ClientConfig{MaxInFlight: 1, Breaker: resilience.BreakerConfig{Failures: 1, OpenFor: time.Second}}, p)
		_, _ = c.Generate(within(t, 2*time.Second), &llm.Request{})
		<-time.After(time.Second)
		func() {
			defer func() { _ = recover() }()
			_, _ = c.Generate(within(t, 2*time.Second), &llm.Request{})
		}()
		if _, err := c.Generate(within(t, 2*time.Second), &llm.Request{}); llm.ReasonOf(err) != llm.ReasonRateLimited || p.calls != 3 {
			t.Errorf("got %v after %d calls, want the next call to be the trial", err, p.calls)
		}
	})
}
