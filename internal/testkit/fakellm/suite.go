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
)

// patience is how long the suite waits for an answer that comes at once; it only
// bounds a provider that hangs.
const patience = 30 * time.Second

// impatience is the deadline of calls that never end by themselves.
const impatience = 50 * time.Millisecond

// What the suite asks with.
const (
	systemText = "You classify requests. SYSTEM-ONLY"
	userText   = "USER-ONLY review this\npython \"code\" <for> me & c\u0327a \u2028 \U0001f642"
	maxOutput  = 300
)

// Open makes the provider under test: for the server's URL, Key and Model, with
// temperature 0 and nothing said of thinking.
type Open func(t *testing.T, s *Server) llm.Provider

// Suite is what every provider has to pass: one HTTP exchange a call, whatever
// comes of it; the right reason; what was said and no thoughts; the key in its
// header and nowhere else.
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
		{"text as it is, white space and all", Text("\n a\u0000\ufeff\u202e \"\\ "), llm.Reply{Text: "\n a\u0000\ufeff\u202e \"\\ ", Tokens: plain}},
		{"text in parts", Parts(`{"intent":`, `"code_review"}`), llm.Reply{Text: `{"intent":"code_review"}`, Tokens: plain}},
		{"thoughts are no text", Thoughts("SECRET-THOUGHT {\"intent\":", ValidReply()), llm.Reply{Text: ValidReply(), Tokens: thought}},
		{"a long text", Text(long), llm.Reply{Text: long, Tokens: plain}},
		{"cut off", CutOff(`{"intent":"co`), llm.Reply{Text: `{"intent":"co`, Truncated: true, Tokens: plain}},
		{
			"cut off while thinking", ThoughtAway(),
			llm.Reply{Truncated: true, Tokens: contract.Tokens{Input: InputTokens, Output: ThinkingTokens, Thinking: ThinkingTokens}},
		},
		{"cut off before anything", CutOff(""), llm.Reply{Truncated: true, Tokens: contract.Tokens{Input: InputTokens}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := Start(t, Config{Wire: wire, Script: Always(tt.does)})
			got, err := ask(t, open(t, s), question())
			if err != nil {
				t.Fatalf("got error %v, want a reply", err)
			}
			if diff := cmp.Diff(&tt.want, got); diff != "" {
				t.Errorf("reply (-want +got):\n%s", diff)
			}
			oneExchange(t, s)
		})
	}
}

func suiteFailures(t *testing.T, wire Protocol, open Open) {
	for _, tt := range providerFailures() {
		t.Run(tt.name, func(t *testing.T) {
			s := Start(t, Config{Wire: wire, Script: Always(tt.does)})
			got, err := ask(t, open(t, s), question())
			if err == nil {
				t.Fatalf("got reply %.80q, want an error for %v", got.Text, tt.want)
			}
			if reason := llm.ReasonOf(err); !slices.Contains(tt.want, reason) {
				t.Errorf("got reason %q (%v), want one of %q", reason, err, tt.want)
			}
			e := wellFormed(t, err)
			if tt.status != 0 && e != nil && e.Status != tt.status {
				t.Errorf("got status %d, want %d", e.Status, tt.status)
			}
			keepsQuiet(t, err)
			oneExchange(t, s)
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
		{"in the wire's own words", QuotaExceeded(53 * time.Second), 53 * time.Second, 53 * time.Second},
		{"not said", RateLimited(""), 0, 0},
		{"a date long gone", RateLimited("Wed, 21 Oct 2015 07:28:00 GMT"), 0, 0},
		{"no number and no date", RateLimited("soon"), 0, 0},
		{"less than nothing", RateLimited("-5"), 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := Start(t, Config{Wire: wire, Script: Always(tt.does)})
			_, err := ask(t, open(t, s), question())
			e := wellFormed(t, err)
			if e == nil || e.Reason != llm.ReasonRateLimited || e.RetryAfter < tt.least || e.RetryAfter > tt.most {
				t.Errorf("got %#v, want %s after %v to %v", e, llm.ReasonRateLimited, tt.least, tt.most)
			}
			oneExchange(t, s)
		})
	}
}

// suiteDeadline: what never ends ends with the context's deadline.
func suiteDeadline(t *testing.T, wire Protocol, open Open) {
	for _, tt := range endless() {
		t.Run(tt.name, func(t *testing.T) {
			s := Start(t, Config{Wire: wire, Script: Always(tt.does)})
			p := open(t, s)
			ctx, cancel := context.WithTimeout(t.Context(), impatience)
			defer cancel()
			_, err := p.Generate(ctx, question())
			if got := llm.ReasonOf(err); !slices.Contains(tt.want, got) {
				t.Errorf("got reason %q (%v), want one of %q", got, err, tt.want)
			}
			keepsQuiet(t, err)
		})
	}
}

// suiteCancel: a caller that leaves while the server is busy is told so.
func suiteCancel(t *testing.T, wire Protocol, open Open) {
	for _, tt := range endless() {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			s := Start(t, Config{Wire: wire, Script: func(*Request) Behaviour {
				cancel()
				return tt.does
			}})
			_, err := open(t, s).Generate(ctx, question())
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got error %v, want context.Canceled", err)
			}
			keepsQuiet(t, err)
			oneExchange(t, s)
		})
	}
}

// suiteConcurrent: one provider serves many.
func suiteConcurrent(t *testing.T, wire Protocol, open Open) {
	s := Start(t, Config{Wire: wire, Script: func(r *Request) Behaviour { return Text("to " + r.User) }})
	p := open(t, s)
	t.Run("calls", func(t *testing.T) {
		for i := range 16 {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				req := question()
				req.User = fmt.Sprintf("caller %d", i)
				got, err := ask(t, p, req)
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

func ask(t *testing.T, p llm.Provider, req *llm.Request) (*llm.Reply, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return p.Generate(ctx, req)
}

// wellFormed checks that an error is one of package llm's, and returns it.
func wellFormed(t *testing.T, err error) *llm.Error {
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
		t.Errorf("got detail %q, want it short and of one line", e.Detail)
	}
	return e
}

// keepsQuiet checks that no rendering of an error, or of what it wraps, shows
// the key or what was asked.
func keepsQuiet(t *testing.T, err error) {
	t.Helper()
	for e := err; e != nil; e = errors.Unwrap(e) {
		text := fmt.Sprintf("%v\n%+v\n%#v\n%s\n%q", e, e, e, e, e)
		for _, secret := range []string{APIKey, "USER-ONLY", "SYSTEM-ONLY"} {
			if strings.Contains(text, secret) {
				t.Errorf("%T shows %q: %.400s", e, secret, text)
			}
		}
	}
}

func oneExchange(t *testing.T, s *Server) {
	t.Helper()
	got := s.Requests()
	if len(got) != 1 {
		t.Errorf("got %d HTTP requests, want 1", len(got))
	}
	for _, r := range got {
		if r.Refused != "" {
			t.Errorf("the server refused %s %s: %s\n%s", r.Method, r.URL, r.Refused, r.Body)
		}
	}
}

// byName compares schemas whose properties are sorted.
func byName(want, got *llm.Schema) string { return cmp.Diff(want, got, cmpopts.EquateEmpty()) }
