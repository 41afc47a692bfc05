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

// A caller with a short deadline must not open the breaker for the others.
func TestClient_ShortTimeoutsDoNotOpenBreaker(t *testing.T) {
	const hurry = 150 * time.Millisecond
	for name, tc := range map[string]struct {
		fair     time.Duration
		purpose  contract.CallPurpose
		patience time.Duration
		opens    bool
	}{
		"a classification in a hurry":            {0, contract.PurposeClassify, hurry, false},
		"a classification":                       {0, contract.PurposeClassify, 2 * time.Second, true},
		"a repair with what is left":             {0, contract.PurposeRepair, hurry, false},
		"just fair":                              {0, contract.PurposeClassify, time.Second, true},
		"just fair, but for the way to the call": {0, contract.PurposeClassify, 950 * time.Millisecond, true},
		"a classifier with little time":          {hurry, contract.PurposeClassify, hurry, true},
		"an answer in a hurry":                   {0, contract.PurposeAnswer, hurry, false},
		"an answer in the time of a label":       {0, contract.PurposeAnswer, 2 * time.Second, false},
		"the same, whatever the classifier gets": {hurry, contract.PurposeAnswer, 2 * time.Second, false},
		"an answer":                              {0, contract.PurposeAnswer, 15 * time.Second, true},
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
					t.Errorf("the breaker is %s after 5 timeouts of %v, want %s", got, tc.patience, want)
				}
			})
		})
	}
}

// A trial with a short deadline does not count: the next call is the trial.
func TestClient_ShortTrialFreesThePermit(t *testing.T) {
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
		// The retry of the first request is the second failure, which opens the
		// breaker.
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
func TestClient_PanicFreesThePermit(t *testing.T) {
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
