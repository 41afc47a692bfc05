package fakellm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/resilience"
)

// suiteTimeout bounds replies that arrive at once, in case a provider blocks.
const suiteTimeout = 30 * time.Second

// shortDeadline is the deadline of calls whose response does not end.
const shortDeadline = 50 * time.Millisecond

// Request of the suite.
const (
	systemText = "You classify requests. SYSTEM-ONLY"
	userText   = "USER-ONLY review this\npython \"code\" <for> me & c\u0327a \u2028 \U0001f642"
	maxOutput  = 300
)

// Open returns the provider under test for the server's URL, Key and Model,
// with temperature 0 and default thinking.
type Open func(t *testing.T, s *Server) llm.Provider

// Suite is the test suite for implementations of llm.Provider: one HTTP
// exchange per call, the correct reason, text without thoughts, and the key
// only in its header.
func Suite(t *testing.T, wire Protocol, open Open) {
	t.Run("replies", func(t *testing.T) { suiteReplies(t, wire, open) })
	t.Run("failures", func(t *testing.T) { suiteFailures(t, wire, open) })
	t.Run("retry after", func(t *testing.T) { suiteRetryAfter(t, wire, open) })
	t.Run("deadline", func(t *testing.T) { suiteDeadline(t, wire, open) })
	t.Run("cancel", func(t *testing.T) { suiteCancel(t, wire, open) })
	t.Run("request", func(t *testing.T) { suiteRequest(t, wire, open) })
	t.Run("secrets", func(t *testing.T) { suiteSecrets(t, wire, open) })
	t.Run("redirect", func(t *testing.T) { suiteRedirect(t, wire, open) })
	t.Run("concurrent", func(t *testing.T) { suiteConcurrent(t, wire, open) })
}

func suiteReplies(t *testing.T, wire Protocol, open Open) {
	plain := contract.Tokens{Input: InputTokens, Output: TextTokens}
	thought := contract.Tokens{Input: InputTokens, Output: TextTokens + ThinkingTokens, Thinking: ThinkingTokens}
	long := strings.Repeat("long ", 100<<10)
	tests := []struct {
		name string
		does Behaviour
		want llm.Reply
	}{
		{"text", Text(ValidReply()), llm.Reply{Text: ValidReply(), Tokens: plain}},
		{"unchanged text and white space", Text("\n a\u0000\ufeff\u202e \"\\ "), llm.Reply{Text: "\n a\u0000\ufeff\u202e \"\\ ", Tokens: plain}},
		{"text in parts", Parts(`{"intent":`, `"code_review"}`), llm.Reply{Text: `{"intent":"code_review"}`, Tokens: plain}},
		{"thoughts", Thoughts("SECRET-THOUGHT {\"intent\":", ValidReply()), llm.Reply{Text: ValidReply(), Tokens: thought}},
		{"long text", Text(long), llm.Reply{Text: long, Tokens: plain}},
		{"truncated", CutOff(`{"intent":"co`), llm.Reply{Text: `{"intent":"co`, Truncated: true, Tokens: plain}},
		{
			"truncated while thinking", CutOffWhileThinking(),
			llm.Reply{Truncated: true, Tokens: contract.Tokens{Input: InputTokens, Output: ThinkingTokens, Thinking: ThinkingTokens}},
		},
		{"truncated before the text", CutOff(""), llm.Reply{Truncated: true, Tokens: contract.Tokens{Input: InputTokens}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := Start(t, Config{Protocol: wire, Script: Always(tt.does)})
			got, err := generate(t, open(t, s), suiteQuestion())
			if err != nil {
				t.Fatalf("got error %v, want a reply", err)
			}
			if diff := cmp.Diff(&tt.want, got); diff != "" {
				t.Errorf("reply (-want +got):\n%s", diff)
			}
			checkOneRequest(t, s)
		})
	}
}

func suiteFailures(t *testing.T, wire Protocol, open Open) {
	for _, tt := range providerFailures() {
		t.Run(tt.name, func(t *testing.T) {
			s := Start(t, Config{Protocol: wire, Script: Always(tt.does)})
			got, err := generate(t, open(t, s), suiteQuestion())
			if err == nil {
				t.Fatalf("got reply %.80q, want an error for %v", got.Text, tt.want)
			}
			if reason := llm.ReasonOf(err); !slices.Contains(tt.want, reason) {
				t.Errorf("got reason %q (%v), want one of %q", reason, err, tt.want)
			}
			e := checkError(t, err)
			if tt.status != 0 && e != nil && e.Status != tt.status {
				t.Errorf("got status %d, want %d", e.Status, tt.status)
			}
			checkNoSecrets(t, err)
			checkOneRequest(t, s)
		})
	}
}

func suiteRetryAfter(t *testing.T, wire Protocol, open Open) {
	tests := []struct {
		name        string
		does        Behaviour
		least, most time.Duration
	}{
		{"seconds", RateLimited("7"), 7 * time.Second, 7 * time.Second},
		{"a date", RateLimited(time.Now().Add(time.Hour).UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT")), time.Minute, time.Hour},
		{"retry delay of the protocol", QuotaExceeded(53 * time.Second), 53 * time.Second, 53 * time.Second},
		{"no delay", RateLimited(""), 0, 0},
		{"date in the past", RateLimited("Wed, 21 Oct 2015 07:28:00 GMT"), 0, 0},
		{"neither number nor date", RateLimited("soon"), 0, 0},
		{"negative", RateLimited("-5"), 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := Start(t, Config{Protocol: wire, Script: Always(tt.does)})
			_, err := generate(t, open(t, s), suiteQuestion())
			e := checkError(t, err)
			if e == nil || e.Reason != llm.ReasonRateLimited || e.RetryAfter < tt.least || e.RetryAfter > tt.most {
				t.Errorf("got %#v, want %s after %v to %v", e, llm.ReasonRateLimited, tt.least, tt.most)
			}
			checkOneRequest(t, s)
		})
	}
}

// suiteDeadline tests that an endless response ends with the deadline.
func suiteDeadline(t *testing.T, wire Protocol, open Open) {
	for _, tt := range endlessReplies() {
		t.Run(tt.name, func(t *testing.T) {
			s := Start(t, Config{Protocol: wire, Script: Always(tt.does)})
			p := open(t, s)
			ctx, cancel := context.WithTimeout(t.Context(), shortDeadline)
			defer cancel()
			_, err := p.Generate(ctx, suiteQuestion())
			if got := llm.ReasonOf(err); !slices.Contains(tt.want, got) {
				t.Errorf("got reason %q (%v), want one of %q", got, err, tt.want)
			}
			checkNoSecrets(t, err)
		})
	}
}

// suiteCancel tests that cancelling the context returns its error.
func suiteCancel(t *testing.T, wire Protocol, open Open) {
	for _, tt := range endlessReplies() {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), suiteTimeout)
			defer cancel()
			s := Start(t, Config{Protocol: wire, Script: func(*Request) Behaviour {
				cancel()
				return tt.does
			}})
			_, err := open(t, s).Generate(ctx, suiteQuestion())
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got error %v, want context.Canceled", err)
			}
			checkNoSecrets(t, err)
			checkOneRequest(t, s)
		})
	}
}

// suiteConcurrent tests concurrent calls.
func suiteConcurrent(t *testing.T, wire Protocol, open Open) {
	s := Start(t, Config{Protocol: wire, Script: func(r *Request) Behaviour { return Text("to " + r.User) }})
	p := open(t, s)
	t.Run("calls", func(t *testing.T) {
		for i := range 16 {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				req := suiteQuestion()
				req.User = fmt.Sprintf("caller %d", i)
				got, err := generate(t, p, req)
				if want := "to " + req.User; err != nil || got.Text != want {
					t.Errorf("got %+v, error %v, want text %q", got, err, want)
				}
			})
		}
	})
	if got := s.Calls(); got != 16 {
		t.Errorf("got %d calls, want 16", got)
	}
}

func generate(t *testing.T, p llm.Provider, req *llm.Request) (*llm.Reply, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), suiteTimeout)
	defer cancel()
	return p.Generate(ctx, req)
}

// checkError checks that the error is a valid *llm.Error, and returns it.
func checkError(t *testing.T, err error) *llm.Error {
	t.Helper()
	e, ok := errors.AsType[*llm.Error](err)
	if !ok {
		t.Errorf("got error %T %v, want *llm.Error", err, err)
		return nil
	}
	if !slices.Contains(llm.Reasons(), e.Reason) {
		t.Errorf("got reason %q, want one of llm.Reasons", e.Reason)
	}
	if len(e.Detail) > 512 || strings.ContainsAny(e.Detail, "\n\r\x00\x1b") {
		t.Errorf("got detail %q, want a short line", e.Detail)
	}
	return e
}

// checkNoSecrets checks that no format of an error or its causes contains the
// key or the prompt.
func checkNoSecrets(t *testing.T, err error) {
	t.Helper()
	for e := err; e != nil; e = errors.Unwrap(e) {
		text := fmt.Sprintf("%v\n%+v\n%#v\n%s\n%q", e, e, e, e, e)
		for _, secret := range []string{APIKey, "USER-ONLY", "SYSTEM-ONLY"} {
			if strings.Contains(text, secret) {
				t.Errorf("%T: got %q in it: %.400s", e, secret, text)
			}
		}
	}
}

func checkOneRequest(t *testing.T, s *Server) {
	t.Helper()
	got := s.Requests()
	if len(got) != 1 {
		t.Errorf("got %d HTTP requests, want 1", len(got))
	}
	for _, r := range got {
		if r.Rejected != "" {
			t.Errorf("got %s %s rejected: %s\n%s", r.Method, r.URL, r.Rejected, r.Body)
		}
	}
}

// diffSchemas compares schemas with sorted properties.
func diffSchemas(want, got *llm.Schema) string { return cmp.Diff(want, got, cmpopts.EquateEmpty()) }

// ClientSuite tests a provider below an llm.Client, which is the only layer
// that retries.
func ClientSuite(t *testing.T, wire Protocol, open Open) {
	t.Run("calls under failure", func(t *testing.T) { suiteCallsUnderFailure(t, wire, open) })
	t.Run("recovery after one failure", func(t *testing.T) { suiteRecovery(t, wire, open) })
}

// suiteCallsUnderFailure tests that no other layer multiplies calls to a failing
// server.
func suiteCallsUnderFailure(t *testing.T, wire Protocol, open Open) {
	for name, does := range map[string]Behaviour{
		"429": Status(429), "503": Status(503), "reset": Reset(),
		"429 with a delay of a minute": QuotaExceeded(time.Minute),
	} {
		t.Run(name, func(t *testing.T) {
			s := Start(t, Config{Protocol: wire, Script: Always(does)})
			c := llm.NewClient(llm.ClientConfig{Breaker: resilience.BreakerConfig{Failures: 1 << 30}}, open(t, s))
			const requests = 40
			for range requests {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				_, err := c.Generate(ctx, &llm.Request{User: "hello"})
				cancel()
				if err == nil {
					t.Fatal("got a reply, want an error")
				}
			}
			if got, most := s.Calls(), requests+requests/10; got < requests || got > most {
				t.Errorf("got %d calls for %d requests, want at most %d", got, requests, most)
			}
		})
	}
}

// suiteRecovery tests that after one 503 there is exactly one more
// call and no error.
func suiteRecovery(t *testing.T, wire Protocol, open Open) {
	s := Start(t, Config{Protocol: wire, Script: Sequence(Status(503), Text("fine"))})
	c := llm.NewClient(llm.ClientConfig{}, open(t, s))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	got, err := c.Generate(ctx, &llm.Request{User: "hello"})
	if err != nil || got.Text != "fine" || s.Calls() != 2 {
		t.Errorf("got %+v, %v after %d calls; want the second reply", got, err, s.Calls())
	}
}
