package llm_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/resilience"
)

// fakeBudget is a budget that grants a number of calls and records their tokens.
type fakeBudget struct {
	calls   int
	asked   []int // estimates
	settled []int
}

func (l *fakeBudget) Reserve(estimate int) (func(int), bool) {
	l.asked = append(l.asked, estimate)
	if l.calls == 0 {
		return func(int) { panic("a refused reservation is settled") }, false
	}
	l.calls--
	return func(actual int) { l.settled = append(l.settled, actual) }, true
}

// long returns a request with 101 bytes, estimated as 26 + 50 tokens.
var long = &llm.Request{System: strings.Repeat("s", 40), User: strings.Repeat("u", 61), MaxOutputTokens: 50}

// TestClient_CountsTokensOfCall checks that each call is counted exactly once, with the known
// tokens.
func TestClient_CountsTokensOfCall(t *testing.T) {
	const estimate = 76
	replied := func(tokens contract.Tokens) step { return step{reply: &llm.Reply{Text: "x", Tokens: tokens}} }
	for name, tc := range map[string]struct {
		do   step
		want int
	}{
		"counted by the provider":  {replied(contract.Tokens{Input: 30, Output: 20, Thinking: 15}), 50},
		"more than was estimated":  {replied(contract.Tokens{Input: 300, Output: 20}), 320},
		"cut off":                  {step{reply: &llm.Reply{Truncated: true, Tokens: contract.Tokens{Input: 1}}}, 1},
		"no usage":                 {replied(contract.Tokens{}), estimate},
		"less than nothing":        {replied(contract.Tokens{Input: -100, Output: 20}), estimate},
		"more than can be counted": {replied(contract.Tokens{Input: math.MaxInt, Output: math.MaxInt}), estimate},
		"no reply":                 {step{}, estimate},
		"timeout":                  {step{takes: time.Hour}, estimate},
		"filters":                  {blocked, estimate},
		"unusable reply":           {failing(llm.ReasonBadResponse, 200), estimate},
		"connection lost":          {failing(llm.ReasonUnavailable, 0), estimate},
		"error without a reason":   {step{err: errors.New("x")}, estimate},
		"call not made":            {step{err: &llm.Error{Reason: llm.ReasonUnavailable, Unsent: true}}, 0},
		"wrong key":                {failing(llm.ReasonUnauthorized, 401), 0},
		"server overloaded":        {wait(time.Hour), 0},
		"server error":             {step{err: &llm.Error{Reason: llm.ReasonUnavailable, Status: 500, RetryAfter: time.Hour}}, 0},
		"redirect":                 {failing(llm.ReasonRejected, 308), 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if tc.do.err != nil {
					tc.do.takes = 1900 * time.Millisecond // no time is left for a retry
				}
				l := &fakeBudget{calls: 1}
				c := llm.NewClient(llm.ClientConfig{Budget: l}, &script{steps: []step{tc.do}})
				_, _ = c.Generate(within(t, 2*time.Second), long)
				if diff := cmp.Diff([]int{estimate}, l.asked); diff != "" {
					t.Errorf("estimates (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff([]int{tc.want}, l.settled); diff != "" {
					t.Errorf("settled (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A call that panics counts as sent.
func TestClient_CountsTokensOfPanic(t *testing.T) {
	l := &fakeBudget{calls: 1}
	c := llm.NewClient(llm.ClientConfig{Budget: l}, panics{})
	func() {
		defer func() { _ = recover() }()
		_, _ = c.Generate(t.Context(), long)
	}()
	if diff := cmp.Diff([]int{76}, l.settled); diff != "" {
		t.Errorf("settled (-want +got):\n%s", diff)
	}
}

type panics struct{}

func (panics) Generate(context.Context, *llm.Request) (*llm.Reply, error) { panic("an SDK's") }

// TestClient_TokenBudgetExhausted checks that no call is made, no failure recorded, and no call
// retried.
func TestClient_TokenBudgetExhausted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []llm.Call
		p, l := &script{steps: []step{fine}}, &fakeBudget{}
		c := llm.NewClient(llm.ClientConfig{
			Budget: l, Breaker: resilience.BreakerConfig{Failures: 1}, Observe: func(call llm.Call) { seen = append(seen, call) },
		}, p)
		began := time.Now()
		_, err := c.Generate(within(t, 2*time.Second), &llm.Request{Purpose: contract.PurposeAnswer})
		if e, ok := errors.AsType[*llm.Error](err); !ok || e.Reason != llm.ReasonBudget || !strings.Contains(e.Detail, "limits.llm_tokens_per_hour") {
			t.Errorf("got %v, want %s with the setting to change", err, llm.ReasonBudget)
		}
		if len(p.calls) != 0 || len(l.asked) != 1 || time.Since(began) != 0 || c.BreakerState() != resilience.Closed {
			t.Errorf("got %d calls, %d reservations, %v, a breaker that is %s; want none, one, at once, closed", len(p.calls), len(l.asked), time.Since(began), c.BreakerState())
		}
		if diff := cmp.Diff([]llm.Call{{Purpose: contract.PurposeAnswer, Outcome: llm.ReasonBudget}}, seen); diff != "" {
			t.Errorf("observed (-want +got):\n%s", diff)
		}
		l.calls = 1
		if _, err := c.Generate(within(t, 2*time.Second), &llm.Request{}); err != nil {
			t.Errorf("with tokens again: got %v", err)
		}
	})
}

// Without tokens for a retry, the first error is returned.
func TestClient_NoTokensForRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &script{steps: []step{limited, fine}}
		c := llm.NewClient(llm.ClientConfig{Budget: &fakeBudget{calls: 1}}, p)
		if _, err := c.Generate(within(t, 2*time.Second), &llm.Request{}); llm.ReasonOf(err) != llm.ReasonRateLimited || len(p.calls) != 1 {
			t.Errorf("got %v after %d calls, want %s after one", err, len(p.calls), llm.ReasonRateLimited)
		}
	})
}

// Calls rejected for other reasons reserve no tokens, and a trial without tokens does not count.
func TestClient_TokenBudgetAndBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, l := &script{steps: []step{failing(llm.ReasonUnauthorized, 401)}}, &fakeBudget{calls: 1}
		c := llm.NewClient(llm.ClientConfig{Budget: l, Breaker: resilience.BreakerConfig{Failures: 1, OpenFor: time.Second}}, p)
		generate := func() string {
			_, err := c.Generate(within(t, 500*time.Millisecond), &llm.Request{})
			return llm.ReasonOf(err)
		}
		got := []string{generate(), generate()}
		<-time.After(time.Second)
		got = append(got, generate(), generate())
		l.calls, p.steps = 1, []step{fine}
		got = append(got, generate())
		want := []string{llm.ReasonUnauthorized, llm.ReasonBreakerOpen, llm.ReasonBudget, llm.ReasonBudget, ""}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("reasons (-want +got):\n%s", diff)
		}
		if len(l.asked) != 4 || c.BreakerState() != resilience.Closed {
			t.Errorf("got %d reservations and a breaker that is %s, want 4 and closed", len(l.asked), c.BreakerState())
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		if _, _ = c.Generate(gone, &llm.Request{}); len(l.asked) != 4 {
			t.Error("got tokens reserved for a disconnected caller")
		}
	})
}
