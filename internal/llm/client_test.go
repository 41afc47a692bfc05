package llm_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/resilience"
)

// script is a provider that executes steps in order, repeating the last.
type script struct {
	steps []step
	calls []time.Time
}

// step is a delay and a result.
type step struct {
	takes time.Duration
	reply *llm.Reply
	err   error
}

func (s *script) Generate(ctx context.Context, _ *llm.Request) (*llm.Reply, error) {
	do := s.steps[min(len(s.calls), len(s.steps)-1)]
	s.calls = append(s.calls, time.Now())
	timer := time.NewTimer(do.takes)
	defer timer.Stop()
	select {
	case <-timer.C:
		return do.reply, do.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

var (
	fine        = step{reply: &llm.Reply{Text: "fine", Tokens: contract.Tokens{Input: 5, Output: 2}}}
	limited     = step{err: &llm.Error{Reason: llm.ReasonRateLimited, Status: 429}}
	unavailable = step{err: &llm.Error{Reason: llm.ReasonUnavailable, Status: 503}}
	blocked     = step{err: &llm.Error{Reason: llm.ReasonBlocked, Status: 200}}
)

func failing(reason string, status int) step {
	return step{err: &llm.Error{Reason: reason, Status: status}}
}

func wait(d time.Duration) step {
	return step{err: &llm.Error{Reason: llm.ReasonRateLimited, Status: 429, RetryAfter: d}}
}

// never configures a breaker that does not open.
var never = resilience.BreakerConfig{Failures: 1 << 30}

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// generate sends one request with a time limit of two seconds. Its timer does not outlast it: in
// tests with a thousand requests, timers that expire later in a bubble can crash the race detector
// (golang.org/issue/78156).
func generate(t *testing.T, c *llm.Client) (*llm.Reply, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	return c.Generate(ctx, &llm.Request{})
}

func TestClient_Retry(t *testing.T) {
	for name, tc := range map[string]struct {
		steps  []step
		calls  int
		reason string
		least  time.Duration // between the two calls
	}{
		"no need":                       {[]step{fine}, 1, "", 0},
		"429, then fine":                {[]step{limited, fine}, 2, "", 50 * time.Millisecond},
		"503, then fine":                {[]step{unavailable, fine}, 2, "", 50 * time.Millisecond},
		"never a third":                 {[]step{limited, unavailable, fine}, 2, llm.ReasonUnavailable, 0},
		"after the delay of the server": {[]step{wait(time.Second), fine}, 2, "", time.Second},
		"delay too long":                {[]step{wait(3 * time.Second), fine}, 1, llm.ReasonRateLimited, 0},
		"not after a timeout":           {[]step{failing(llm.ReasonTimeout, 0), fine}, 1, llm.ReasonTimeout, 0},
		"not for a wrong key":           {[]step{failing(llm.ReasonUnauthorized, 401), fine}, 1, llm.ReasonUnauthorized, 0},
		"not for a wrong request":       {[]step{failing(llm.ReasonRejected, 400), fine}, 1, llm.ReasonRejected, 0},
		"not for a blocked reply":       {[]step{blocked, fine}, 1, llm.ReasonBlocked, 0},
		"not for an empty reply":        {[]step{failing(llm.ReasonEmpty, 200), fine}, 1, llm.ReasonEmpty, 0},
		"not for a bad response":        {[]step{failing(llm.ReasonBadResponse, 200), fine}, 1, llm.ReasonBadResponse, 0},
		"not for a foreign error":       {[]step{{err: errors.New("x")}, fine}, 1, llm.ReasonUnavailable, 0},
		"not after a slow call":         {[]step{{takes: 1950 * time.Millisecond, err: limited.err}, fine}, 1, llm.ReasonRateLimited, 0},
		"nor a nil for a reply":         {[]step{{}, fine}, 1, llm.ReasonEmpty, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &script{steps: tc.steps}
				_, err := llm.NewClient(llm.ClientConfig{Breaker: never}, p).Generate(within(t, 2*time.Second), &llm.Request{})
				if llm.ReasonOf(err) != tc.reason || len(p.calls) != tc.calls {
					t.Fatalf("got %v after %d calls, want %q after %d", err, len(p.calls), tc.reason, tc.calls)
				}
				if len(p.calls) == 2 {
					if gap := p.calls[1].Sub(p.calls[0]); gap < tc.least || gap > tc.least+100*time.Millisecond {
						t.Errorf("got a wait of %v, want about %v", gap, tc.least)
					}
				}
			})
		})
	}
}

// During a long failure, retries add at most a tenth to the calls.
func TestClient_RetryBudget(t *testing.T) {
	for _, requests := range []int{20, 21, 40, 100, 1000} {
		for name, do := range map[string]step{"429": limited, "503": unavailable, "429 with Retry-After": wait(time.Second)} {
			t.Run(fmt.Sprintf("%d requests, %s", requests, name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := &script{steps: []step{do}}
					c := llm.NewClient(llm.ClientConfig{Breaker: never}, p)
					for range requests {
						if _, err := generate(t, c); err == nil {
							t.Fatal("got a reply")
						}
					}
					if got, most := len(p.calls), requests+requests/10; got > most || got < requests+1 {
						t.Errorf("got %d calls, want more than %d and at most %d", got, requests, most)
					}
				})
			})
		}
	}
}

// The saved retry budget is bounded.
func TestClient_RetryBudgetIsCapped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &script{steps: []step{fine}}
		c := llm.NewClient(llm.ClientConfig{Breaker: never}, p)
		for range 1000 {
			if _, err := generate(t, c); err != nil {
				t.Fatal(err)
			}
		}
		p.steps, p.calls = []step{limited}, nil
		for range 15 {
			_, _ = generate(t, c)
		}
		if got := len(p.calls); got != 15+10 {
			t.Errorf("got %d calls for 15 requests, want 10 more", got)
		}
	})
}

// Cancelling during a call or a wait returns at once, and does not count for the breaker.
func TestClient_Cancel(t *testing.T) {
	for name, tc := range map[string]struct {
		do   step
		want error
	}{
		"while the model thinks": {step{takes: time.Minute, reply: fine.reply}, context.Canceled},
		"while a retry waits":    {wait(10 * time.Second), limited.err},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &script{steps: []step{tc.do}}
				c := llm.NewClient(llm.ClientConfig{Breaker: resilience.BreakerConfig{Failures: 2}}, p)
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				time.AfterFunc(time.Second, cancel)
				began := time.Now()
				_, err := c.Generate(ctx, &llm.Request{})
				if llm.ReasonOf(err) != llm.ReasonOf(tc.want) || time.Since(began) != time.Second {
					t.Errorf("got %v after %v, want %v after 1s", err, time.Since(began), tc.want)
				}
				if got := c.BreakerState(); got != resilience.Closed {
					t.Errorf("got breaker %s", got)
				}
			})
		})
	}
}

func TestClient_LimitsCallsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := gate{entered: make(chan struct{}), leave: make(chan struct{})}
		c := llm.NewClient(llm.ClientConfig{MaxInFlight: 2}, p)
		done := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := c.Generate(t.Context(), &llm.Request{})
				done <- err
			}()
			<-p.entered
		}
		for range 3 {
			if _, err := c.Generate(t.Context(), &llm.Request{}); llm.ReasonOf(err) != llm.ReasonOverloaded {
				t.Errorf("got %v, want %s", err, llm.ReasonOverloaded)
			}
		}
		close(p.leave)
		for range 2 {
			if err := <-done; err != nil {
				t.Errorf("got %v for a call that was let in", err)
			}
		}
		go func() { <-p.entered }()
		if _, err := c.Generate(t.Context(), &llm.Request{}); err != nil {
			t.Errorf("got %v once there is room again", err)
		}
	})
}

// gate blocks calls.
type gate struct{ entered, leave chan struct{} }

func (g gate) Generate(context.Context, *llm.Request) (*llm.Reply, error) {
	g.entered <- struct{}{}
	<-g.leave
	return fine.reply, nil
}

func TestClient_Observe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []llm.Call
		p := &script{steps: []step{limited, {takes: time.Second, reply: fine.reply}, {err: context.Canceled}, failing(llm.ReasonTimeout, 0)}}
		c := llm.NewClient(llm.ClientConfig{
			Breaker: resilience.BreakerConfig{Failures: 1 + 1}, Observe: func(call llm.Call) { got = append(got, call) },
		}, p)
		for _, purpose := range []contract.CallPurpose{contract.PurposeClassify, contract.PurposeRepair, contract.PurposeMoreTokens, contract.PurposeMoreTokens, contract.PurposeAnswer} {
			_, _ = c.Generate(within(t, 2*time.Second), &llm.Request{Purpose: purpose})
		}
		want := []llm.Call{
			{Purpose: contract.PurposeClassify, Outcome: llm.ReasonRateLimited},
			{Purpose: contract.PurposeClassify, Outcome: contract.OutcomeOK, Retry: true, Latency: time.Second, Tokens: fine.reply.Tokens},
			{Purpose: contract.PurposeRepair, Outcome: llm.OutcomeCancelled},
			{Purpose: contract.PurposeMoreTokens, Outcome: llm.ReasonTimeout},
			{Purpose: contract.PurposeMoreTokens, Outcome: llm.ReasonTimeout},
			{Purpose: contract.PurposeAnswer, Outcome: llm.ReasonBreakerOpen},
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

// An expired deadline is reported without a call, and does not count for the breaker.
func TestClient_NoTimeLeft(t *testing.T) {
	gone, leave := context.WithCancel(t.Context())
	leave()
	late, stop := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer stop()
	p := &script{steps: []step{fine}}
	c := llm.NewClient(llm.ClientConfig{Breaker: resilience.BreakerConfig{Failures: 1}}, p)
	if _, err := c.Generate(late, &llm.Request{}); llm.ReasonOf(err) != llm.ReasonTimeout {
		t.Errorf("after the deadline: got %v, want %s", err, llm.ReasonTimeout)
	}
	if _, err := c.Generate(gone, &llm.Request{}); !errors.Is(err, context.Canceled) {
		t.Errorf("after a cancel: got %v", err)
	}
	if len(p.calls) != 0 || c.BreakerState() != resilience.Closed {
		t.Errorf("got %d calls, a breaker that is %s; want none and closed", len(p.calls), c.BreakerState())
	}
}

// Every call has a deadline.
func TestClient_NoDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := llm.NewClient(llm.ClientConfig{}, &script{steps: []step{{takes: time.Hour}}}).Generate(t.Context(), &llm.Request{})
		if llm.ReasonOf(err) != llm.ReasonTimeout || time.Since(began) > time.Minute {
			t.Errorf("got %v after %v, want %s within a minute", err, time.Since(began), llm.ReasonTimeout)
		}
	})
}

// closer is a provider that can be closed.
type closer struct {
	script
	closed bool
}

func (c *closer) Close() error {
	c.closed = true
	return nil
}

func TestClient_NamesAndClose(t *testing.T) {
	p := &closer{script: script{steps: []step{fine}}}
	c := llm.NewClient(llm.ClientConfig{Provider: "genai", Model: "gemini-x"}, p)
	if c.Provider() != "genai" || c.Model() != "gemini-x" || c.BreakerState() != resilience.Closed {
		t.Errorf("got %s, %s, %s", c.Provider(), c.Model(), c.BreakerState())
	}
	if err := c.Close(); err != nil || !p.closed {
		t.Errorf("got the provider open (%v), want it closed", err)
	}
	if err := llm.NewClient(llm.ClientConfig{}, &p.script).Close(); err != nil {
		t.Errorf("provider without Close: %v", err)
	}
}
