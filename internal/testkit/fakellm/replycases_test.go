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
			t.Errorf("got the name %q twice", r.Name)
		}
		names[r.Name] = true
		reasons[r.WantReason]++
		for _, reason := range append([]string{r.WantReason}, r.WantAlso...) {
			if reason != "" && !slices.Contains(llm.Reasons(), reason) {
				t.Errorf("%s: got reason %q, want one of llm.Reasons", r.Name, reason)
			}
		}
		if got := r.WantIntent != ""; got != r.Accepts("") {
			t.Errorf("%s: got an intent %v, acceptable %v, want the same", r.Name, got, r.Accepts(""))
		}
	}
	if len(names) < least {
		t.Errorf("got %d replies, want at least %d", len(names), least)
	}
	// Reasons that only the client produces: too many calls, an open breaker, no model.
	for _, reason := range llm.Reasons() {
		here := slices.Contains([]string{llm.ReasonBreakerOpen, llm.ReasonOverloaded, llm.ReasonBudget, llm.ReasonNotConfigured}, reason)
		if !here && reasons[reason] == 0 {
			t.Errorf("got no reply for reason %q", reason)
		}
	}
	t.Logf("%d replies: %v", len(names), reasons)
}

// TestReplyCases_AreConsistent validates every text with an independent strict parser.
func TestReplyCases_AreConsistent(t *testing.T) {
	for _, r := range ReplyCases() {
		b := r.Behaviour
		if b.failure != nil || b.raw != nil || b.fault != nil || b.reply.finish != "" || b.reply.thought != "" || len(b.reply.texts) != 1 || b.hold != nil {
			continue
		}
		text := b.reply.texts[0]
		if text == "" {
			continue // checked by the provider
		}
		intent, reason := parseStrict(text)
		if !r.Accepts(reason) {
			t.Errorf("%s: got reason %q from a strict parser, want %q or %q: %.200q", r.Name, reason, r.WantReason, r.WantAlso, text)
		}
		if reason == "" && intent != r.WantIntent {
			t.Errorf("%s: got intent %q, want %q", r.Name, intent, r.WantIntent)
		}
	}
}

type strictReply struct {
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

// parseStrict parses a classification as specified: an enclosing fence is removed, null counts as absent,
// and everything else must be valid.
func parseStrict(text string) (intent, reason string) {
	var in strictReply
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
	ok := isKnown(*in.Intent, ValidIntent) && *in.Confidence >= 0 && *in.Confidence <= 1 &&
		len(in.Domains) <= 3 && len(in.Subtasks) <= 3 && (len(in.Domains) > 0 || *in.Intent == "unknown") && allKnown(in.Domains)
	for _, s := range in.Subtasks {
		ok = ok && s.isValid()
	}
	if !ok {
		return "", llm.ReasonInvalidValue
	}
	return *in.Intent, ""
}

func (s subtask) isValid() bool {
	if s.Title == nil {
		return false
	}
	n := utf8.RuneCountInString(strings.TrimSpace(*s.Title))
	return n >= 1 && n <= 200 && (s.Intent == "" || isKnown(s.Intent, ValidIntent)) && len(s.Domains) <= 3 && allKnown(s.Domains)
}

func isKnown(word, known string) bool { return word == known || word == "unknown" }

func allKnown(domains []string) bool {
	return !slices.ContainsFunc(domains, func(d string) bool { return !isKnown(d, validDomain) })
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
					_, reason = parseStrict(reply.Text)
				}
				if !r.Accepts(reason) {
					t.Errorf("got reason %q (%v), want %q or %q", reason, err, r.WantReason, r.WantAlso)
				}
				if errors.Is(err, context.Canceled) {
					t.Errorf("got error %v, want none that the caller caused", err)
				}
			})
		}
	}
}
