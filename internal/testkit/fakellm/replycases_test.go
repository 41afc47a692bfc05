package fakellm

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/strictjson"
)

func TestReplyCases_Count(t *testing.T) {
	const least = 60
	names, reasons := map[string]bool{}, map[string]int{}
	for _, r := range ReplyCases() {
		if names[r.Name] {
			t.Errorf("two replies are named %q", r.Name)
		}
		names[r.Name] = true
		reasons[r.WantReason]++
		for _, reason := range append([]string{r.WantReason}, r.WantAlso...) {
			if reason != "" && !slices.Contains(llm.Reasons(), reason) {
				t.Errorf("%s: got reason %q, want one of llm.Reasons", r.Name, reason)
			}
		}
		if got := r.WantIntent != ""; got != r.Accepts("") {
			t.Errorf("%s: got an intent: %v, may be taken: %v, want the same", r.Name, got, r.Accepts(""))
		}
	}
	if len(names) < least {
		t.Errorf("got %d replies, want at least %d", len(names), least)
	}
	// Reasons that only the client produces: too many calls, an open breaker,
	// no model.
	for _, reason := range llm.Reasons() {
		here := slices.Contains([]string{llm.ReasonBreakerOpen, llm.ReasonOverloaded, llm.ReasonBudget, llm.ReasonNotConfigured}, reason)
		if !here && reasons[reason] == 0 {
			t.Errorf("no reply for reason %q", reason)
		}
	}
	t.Logf("%d replies: %v", len(names), reasons)
}

// TestReplyCases_AreConsistent validates every text with an independent strict
// parser.
func TestReplyCases_AreConsistent(t *testing.T) {
	for _, r := range ReplyCases() {
		b := r.Behaviour
		if b.failure != nil || b.raw != nil || b.fault != nil || b.reply.finish != "" || b.reply.thought != "" || len(b.reply.texts) != 1 || b.hold != nil {
			continue
		}
		text := b.reply.texts[0]
		if text == "" {
			continue // the provider's business
		}
		intent, reason := judge(text)
		if !r.Accepts(reason) {
			t.Errorf("%s: a strict reader says %q, want %q or %q: %.200q", r.Name, reason, r.WantReason, r.WantAlso, text)
		}
		if reason == "" && intent != r.WantIntent {
			t.Errorf("%s: got intent %q, want %q", r.Name, intent, r.WantIntent)
		}
	}
}

type judged struct {
	Intent     *string   `json:"intent"`
	Domains    []string  `json:"domains"`
	Subtasks   []subtask `json:"subtasks"`
	Confidence *float64  `json:"confidence"`
}

type subtask struct {
	Title   *string  `json:"title"`
	Reason  string   `json:"reason"`
	Intent  string   `json:"intent"`
	Domains []string `json:"domains"`
}

// judge parses a classification by the contract: an enclosing fence is removed,
// null counts as absent, and everything else must be valid.
func judge(text string) (intent, reason string) {
	var in judged
	body := strings.TrimSpace(text)
	for _, open := range []string{"```json", "```JSON", "```"} {
		if rest, ok := strings.CutPrefix(body, open); ok && strings.HasPrefix(strings.TrimPrefix(rest, "\r"), "\n") && strings.HasSuffix(rest, "\n```") {
			body = strings.TrimSuffix(rest, "```")
			break
		}
	}
	if strictjson.Unmarshal([]byte(body), &in) != nil || in.Intent == nil || in.Confidence == nil || in.Domains == nil {
		return "", llm.ReasonInvalidJSON
	}
	ok := knows(*in.Intent, ValidIntent) && *in.Confidence >= 0 && *in.Confidence <= 1 &&
		len(in.Domains) <= 3 && len(in.Subtasks) <= 3 && (len(in.Domains) > 0 || *in.Intent == "unknown") && knowAll(in.Domains)
	for _, s := range in.Subtasks {
		ok = ok && s.fine()
	}
	if !ok {
		return "", llm.ReasonInvalidValue
	}
	return *in.Intent, ""
}

func (s subtask) fine() bool {
	if s.Title == nil {
		return false
	}
	n := utf8.RuneCountInString(strings.TrimSpace(*s.Title))
	return n >= 1 && n <= 200 && (s.Intent == "" || knows(s.Intent, ValidIntent)) && len(s.Domains) <= 3 && knowAll(s.Domains)
}

func knows(word, known string) bool { return word == known || word == "unknown" }

func knowAll(domains []string) bool {
	return !slices.ContainsFunc(domains, func(d string) bool { return !knows(d, validDomain) })
}

// TestReplyCases_OverHTTP sends every reply through a provider.
func TestReplyCases_OverHTTP(t *testing.T) {
	for _, wire := range []Protocol{Gemini, OpenAI} {
		for _, r := range ReplyCases() {
			t.Run(string(wire)+"/"+r.Name, func(t *testing.T) {
				s := Start(t, Config{Protocol: wire, Script: Always(r.Behaviour)})
				ctx, cancel := context.WithTimeout(t.Context(), suiteTimeout)
				if r.Endless {
					ctx, cancel = context.WithTimeout(t.Context(), shortDeadline)
				}
				defer cancel()
				reply, err := openReference("")(t, s).Generate(ctx, suiteQuestion())
				reason := llm.ReasonOf(err)
				switch {
				case err != nil:
				case reply.Truncated:
					reason = llm.ReasonMaxTokens
				default:
					_, reason = judge(reply.Text)
				}
				if !r.Accepts(reason) {
					t.Errorf("got reason %q (%v), want %q or %q", reason, err, r.WantReason, r.WantAlso)
				}
				if errors.Is(err, context.Canceled) {
					t.Errorf("got error %v, want none of the caller's making", err)
				}
			})
		}
	}
}
