package classifier_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
)

// compound is a reply with all optional parts.
const compound = `{"intent":"code_review","domains":["python","databricks"],"subtasks":[` +
	`{"title":"Review","reason":"asked for","intent":"code_review","domains":["python"]},` +
	`{"title":"Cost","intent":"cost_analysis","domains":["azure"]}],"confidence":0.93}`

// TestChaos_TruncatedReply truncates a reply at every byte. Every prefix is rejected, and the
// lexical result is used.
func TestChaos_TruncatedReply(t *testing.T) {
	for end := range len(compound) {
		got, _ := classifyOnce(t, replyTexts(compound[:end]))
		want := llm.ReasonInvalidJSON
		if end == 0 {
			want = llm.ReasonEmpty
		}
		if got.Source != contract.SourceLexical || got.Reason != want || got.Intent != "code_review" {
			t.Fatalf("%q: got %s from %s, reason %q; want code_review from lexical, %s", compound[:end], got.Intent, got.Source, got.Reason, want)
		}
	}
}

// TestChaos_RepairedReply truncates only the first reply: the repaired reply is accepted like a
// first one.
func TestChaos_RepairedReply(t *testing.T) {
	whole, _ := classifyOnce(t, replyTexts(compound))
	for end := 1; end < len(compound); end += 7 {
		got, m := classifyOnce(t, replyTexts(compound[:end], compound))
		if m.calls() != 2 {
			t.Fatalf("%q: got %d calls, want 2", compound[:end], m.calls())
		}
		got.ModelUse, got.LatencyMS = whole.ModelUse, whole.LatencyMS
		if diff := cmp.Diff(whole, got); diff != "" {
			t.Fatalf("%q (-whole +mended):\n%s", compound[:end], diff)
		}
	}
}

// TestChaos_DamagedReply damages a reply in a few places. The result is always a valid
// classification with labels of the registry and a source, and never worse than the lexical result.
func TestChaos_DamagedReply(t *testing.T) {
	s := sourceRegistry()
	in := input(s, "review this python code")
	rapid.Check(t, func(rt *rapid.T) {
		text := compound
		for range rapid.IntRange(1, 3).Draw(rt, "damages") {
			text = damage(rt, text)
		}
		c, err := classifier.New(classifier.Config{Model: &fakeModel{do: replyTexts(text)}, Timeout: time.Minute})
		if err != nil {
			rt.Fatal(err)
		}
		defer c.Close()
		clf := c.Classify(rt.Context(), in)
		checkReply(rt, s, &clf)
		if byModel := clf.Source == contract.SourceLLM; byModel != (clf.Reason == "") {
			rt.Errorf("%s: got source %s with reason %q", text, clf.Source, clf.Reason)
		}
		if clf.Source == contract.SourceLexical && clf.Intent != "code_review" {
			rt.Errorf("%s: got %s, want code_review, as the lexical classifier", text, clf.Intent)
		}
	})
}

// damage changes one place of a text.
func damage(t *rapid.T, text string) string {
	if text == "" {
		return text
	}
	at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
	to := rapid.IntRange(at, min(at+12, len(text))).Draw(t, "to")
	switch rapid.SampledFrom([]string{"leave out", "repeat", "put in", "swap a word"}).Draw(t, "damage") {
	case "leave out":
		return text[:at] + text[to:]
	case "repeat":
		return text[:to] + text[at:]
	case "put in":
		return text[:at] + rapid.SampledFrom([]string{
			`"`, `,`, `{`, `}`, `]`, `null`, "\x00", "\xff", "\u202e", "```", ` `, `\`, `"intent":"cost_analysis",`, `-`, `9e999`,
		}).Draw(t, "put in") + text[at:]
	}
	words := strings.NewReplacer(
		"code_review", rapid.SampledFrom([]string{"Code_Review", "unknown", "*", "", "cost_analysis"}).Draw(t, "intent"),
		"python", rapid.SampledFrom([]string{"Python", "unknown", "*", "cobol", "azure"}).Draw(t, "domain"),
		"0.93", rapid.SampledFrom([]string{"1.01", "-0.1", `"0.93"`, "null", "NaN", "1"}).Draw(t, "confidence"),
	)
	return words.Replace(text)
}
