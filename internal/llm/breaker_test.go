package llm_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/resilience"
)

func TestClient_BreakerOpens(t *testing.T) {
	for name, tc := range map[string]struct {
		do    step
		opens bool
	}{
		"timeout":                        {failing(llm.ReasonTimeout, 0), true},
		"deadline exceeded":              {step{takes: time.Minute}, true},
		"429":                            {limited, true},
		"5xx":                            {unavailable, true},
		"no connection":                  {failing(llm.ReasonUnavailable, 0), true},
		"wrong key":                      {failing(llm.ReasonUnauthorized, 401), true},
		"unknown model":                  {failing(llm.ReasonRejected, 404), true},
		"redirect":                       {failing(llm.ReasonRejected, 307), true},
		"bad response":                   {failing(llm.ReasonBadResponse, 200), true},
		"unknown error":                  {step{err: errors.New("x")}, true},
		"rejected request":               {failing(llm.ReasonRejected, 400), false},
		"request too long":               {failing(llm.ReasonRejected, 413), false},
		"held back by filters":           {blocked, false},
		"empty reply":                    {failing(llm.ReasonEmpty, 200), false},
		"cut off":                        {step{reply: &llm.Reply{Truncated: true}}, false},
		"caller disconnected":            {step{err: context.Canceled}, false},
		"caller disconnected in between": {step{err: fmt.Errorf("x: %w", context.Canceled)}, false},
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
					t.Fatalf("got breaker %s after %d calls, want %s", got, len(p.calls), want)
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

// A caller with a short deadline must not open the breaker for the others.
func TestClient_ShortTimeoutsDoNotOpenBreaker(t *testing.T) {
	const hurry = 150 * time.Millisecond
	for name, tc := range map[string]struct {
		fair     time.Duration
		purpose  contract.CallPurpose
		patience time.Duration
		opens    bool
	}{
		"classification with a short deadline":        {0, contract.PurposeClassify, hurry, false},
		"classification":                              {0, contract.PurposeClassify, 2 * time.Second, true},
		"repair with the remaining time":              {0, contract.PurposeRepair, hurry, false},
		"just fair":                                   {0, contract.PurposeClassify, time.Second, true},
		"just fair, but for the way to the call":      {0, contract.PurposeClassify, 950 * time.Millisecond, true},
		"classifier with a short timeout":             {hurry, contract.PurposeClassify, hurry, true},
		"answer with a short deadline":                {0, contract.PurposeAnswer, hurry, false},
		"answer with the timeout of a classification": {0, contract.PurposeAnswer, 2 * time.Second, false},
		"answer with any timeout of the classifier":   {hurry, contract.PurposeAnswer, 2 * time.Second, false},
		"answer": {0, contract.PurposeAnswer, 15 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &script{steps: []step{{takes: time.Minute}}}
				c := llm.NewClient(llm.ClientConfig{MinBreakerTime: tc.fair}, p)
				for range 5 {
					if _, err := c.Generate(within(t, tc.patience), &llm.Request{Purpose: tc.purpose}); llm.ReasonOf(err) != llm.ReasonTimeout {
						t.Fatalf("got %v, want %s", err, llm.ReasonTimeout)
					}
				}
				want := resilience.Closed
				if tc.opens {
					want = resilience.Open
				}
				if got := c.BreakerState(); got != want {
					t.Errorf("got breaker %s after 5 timeouts of %v, want %s", got, tc.patience, want)
				}
			})
		})
	}
}

// A trial with a short deadline does not count: the next call is the trial.
func TestClient_ShortTrialReleasesPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &script{steps: []step{{takes: time.Minute}}}
		c := llm.NewClient(llm.ClientConfig{Breaker: resilience.BreakerConfig{Failures: 1, OpenFor: time.Second}}, p)
		_, _ = c.Generate(within(t, 2*time.Second), &llm.Request{})
		<-time.After(time.Second)
		_, _ = c.Generate(within(t, 100*time.Millisecond), &llm.Request{})
		p.steps = []step{fine}
		if _, err := c.Generate(within(t, 2*time.Second), &llm.Request{}); err != nil || c.BreakerState() != resilience.Closed {
			t.Errorf("got %v and a breaker that is %s, want a reply and closed", err, c.BreakerState())
		}
	})
}

func TestClient_BreakerCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &script{steps: []step{limited}}
		c := llm.NewClient(llm.ClientConfig{Breaker: resilience.BreakerConfig{Failures: 2, OpenFor: time.Second}}, p)
		// The retry of the first request is the second failure, which opens the breaker.
		if _, err := c.Generate(within(t, 2*time.Second), &llm.Request{}); llm.ReasonOf(err) != llm.ReasonRateLimited {
			t.Fatal(err)
		}
		<-time.After(time.Second)
		if got := c.BreakerState(); got != resilience.HalfOpen {
			t.Fatalf("got breaker %s, want half open", got)
		}
		p.steps = []step{blocked}
		if _, err := c.Generate(within(t, 2*time.Second), &llm.Request{}); llm.ReasonOf(err) != llm.ReasonBlocked {
			t.Fatal(err)
		}
		if got := c.BreakerState(); got != resilience.Closed {
			t.Errorf("got breaker %s after a successful call, want closed", got)
		}
	})
}

// If the breaker rejects the retry, the first error is returned.
func TestClient_ReportsFirstErrorWhenBreakerOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &script{steps: []step{limited}}
		c := llm.NewClient(llm.ClientConfig{Breaker: resilience.BreakerConfig{Failures: 1}}, p)
		_, err := c.Generate(within(t, 2*time.Second), &llm.Request{})
		if llm.ReasonOf(err) != llm.ReasonRateLimited || len(p.calls) != 1 {
			t.Errorf("got %v after %d calls, want %s after 1", err, len(p.calls), llm.ReasonRateLimited)
		}
	})
}

// panicker panics once.
type panicker struct{ calls int }

func (p *panicker) Generate(context.Context, *llm.Request) (*llm.Reply, error) {
	if p.calls++; p.calls == 2 {
		panic("boom")
	}
	return nil, limited.err
}

// A panic during a trial must not keep the breaker half open.
func TestClient_PanicReleasesPermit(t *testing.T) {
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
