package classifier_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
)

// TestReply_Accepted checks valid replies in different forms.
func TestReply_Accepted(t *testing.T) {
	const subtask = `{"title":"Review it","reason":"asked for","intent":"code_review","domains":["python"]}`
	plain := contract.Classification{Intent: "code_review", Domains: []string{"python"}, Subtasks: []contract.Subtask{}, Confidence: 0.93}
	with := func(change func(*contract.Classification)) contract.Classification {
		clf := plain
		change(&clf)
		return clf
	}
	subtasks := func(list ...contract.Subtask) contract.Classification {
		return with(func(c *contract.Classification) { c.Subtasks = list })
	}
	replyWith := func(subtasks string) string { return strings.Replace(goodReply, "[],", "["+subtasks+"],", 1) }
	tests := []struct {
		name, reply string
		want        contract.Classification
	}{
		{"plain", goodReply, plain},
		{"white space around and inside", " \r\n\t" + strings.ReplaceAll(goodReply, ",", " ,\n ") + "\n\n", plain},
		{"escaped letters", strings.Replace(goodReply, "python", `p\u0079thon`, 1), plain},
		{"code fence", "```json\n" + goodReply + "\n```", plain},
		{"code fence without a language", "```\n" + goodReply + "\n```\n", plain},
		{"code fence on one line", "```json " + goodReply + "```", plain},
		{"no subtasks", editReply(t, "subtasks", nil), plain},
		{"unknown", `{"intent":"unknown","domains":["unknown"],"subtasks":[],"confidence":0.2}`, contract.Classification{
			Intent: contract.Unknown, Domains: []string{contract.Unknown}, Subtasks: []contract.Subtask{}, Confidence: 0.2,
		}},
		{"unknown without a domain", `{"intent":"unknown","domains":[],"subtasks":[],"confidence":0}`, contract.Classification{
			Intent: contract.Unknown, Domains: []string{}, Subtasks: []contract.Subtask{},
		}},
		{"unknown domain", editReply(t, "domains", []string{"unknown"}), with(func(c *contract.Classification) { c.Domains = []string{"unknown"} })},
		{"three domains in the model's order", editReply(t, "domains", []string{"python", "docs", "azure"}), with(func(c *contract.Classification) {
			c.Domains = []string{"python", "docs", "azure"}
		})},
		{"duplicate domain", editReply(t, "domains", []string{"python", "docs", "python"}), with(func(c *contract.Classification) {
			c.Domains = []string{"python", "docs"}
		})},
		{"surest", editReply(t, "confidence", 1), with(func(c *contract.Classification) { c.Confidence = 1 })},
		{"negative zero", strings.Replace(goodReply, "0.93", "-0.0", 1), with(func(c *contract.Classification) { c.Confidence = 0 })},
		{"one subtask", replyWith(subtask), subtasks(
			contract.Subtask{Title: "Review it", Reason: "asked for", Intent: "code_review", Domains: []string{"python"}})},
		{
			"subtasks without labels", replyWith(`{"title":"A"},{"title":"B","reason":null,"intent":null,"domains":null},{"title":"C","domains":[]}`),
			subtasks(contract.Subtask{Title: "A"}, contract.Subtask{Title: "B"}, contract.Subtask{Title: "C"}),
		},
		{"duplicate subtask", replyWith(subtask + "," + subtask + `,{"title":"Review it","intent":"code_review","domains":["docs"]}`), subtasks(
			contract.Subtask{Title: "Review it", Reason: "asked for", Intent: "code_review", Domains: []string{"python"}},
			contract.Subtask{Title: "Review it", Intent: "code_review", Domains: []string{"docs"}})},
		{"two subtasks of one intent, one of unknown", replyWith(subtask + "," + strings.Replace(subtask, " it", " that", 1) + `,{"title":"x","intent":"unknown","domains":["unknown"]}`), subtasks(
			contract.Subtask{Title: "Review it", Reason: "asked for", Intent: "code_review", Domains: []string{"python"}},
			contract.Subtask{Title: "Review that", Reason: "asked for", Intent: "code_review", Domains: []string{"python"}},
			contract.Subtask{Title: "x", Intent: "unknown", Domains: []string{"unknown"}})},
		{"control characters in texts", replyWith(`{"title":" a\n\u0000 b\u202e\u2028c\ufeff ","reason":"` + strings.Repeat("é ", 300) + `"}`), subtasks(
			contract.Subtask{Title: "a b c", Reason: strings.TrimSpace(strings.Repeat("é ", 100))})},
		{"longest title", replyWith(`{"title":"  ` + strings.Repeat("é", 200) + `  "}`), subtasks(contract.Subtask{Title: strings.Repeat("é", 200)})},
		{"placeholders", replyWith(`{"title":"Write to [EMAIL_1]"}`), subtasks(contract.Subtask{Title: "Write to [EMAIL_1]"})},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, m := classifyOnce(t, replyTexts(tt.reply))
			if got.Source != contract.SourceLLM || got.Reason != "" || m.calls() != 1 {
				t.Fatalf("got source %s, reason %q after %d calls (%+v), want llm after one", got.Source, got.Reason, m.calls(), got.ModelUse)
			}
			got.Source, got.ModelUse, got.LatencyMS = "", nil, 0
			tt.want.DomainOrigins = byModel(tt.want.Domains)
			for i := range tt.want.Subtasks {
				tt.want.Subtasks[i].DomainOrigins = byModel(tt.want.Subtasks[i].Domains)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("classification (-want +got):\n%s", diff)
			}
		})
	}
}

// byModel returns the origins of domains that a model proposed.
func byModel(domains []string) (origins []contract.DomainOrigin) {
	for _, d := range domains {
		if d != contract.Unknown {
			origins = append(origins, contract.DomainOrigin{Domain: d, Origin: contract.DomainModel})
		}
	}
	return origins
}

// TestReply_Rejected checks the errors in the repair prompt.
func TestReply_Rejected(t *testing.T) {
	const badJSON, badValue = llm.ReasonInvalidJSON, llm.ReasonInvalidValue
	withSubtask := func(subtask string) string { return strings.Replace(goodReply, "[],", "["+subtask+"],", 1) }
	tests := []struct {
		name, reply    string
		reason, detail string // detail is a substring of it
	}{
		{"prose", "This is a code review.", badJSON, "is not JSON"},
		{"text before", "Sure! " + goodReply, badJSON, "is not JSON"},
		{"text after", goodReply + " Hope this helps!", badJSON, "is not JSON"},
		{"text around a code fence", "Here:\n```json\n" + goodReply + "\n```", badJSON, "is not JSON"},
		{"open code fence", "```json\n" + goodReply, badJSON, "is not JSON"},
		{"empty code fence", "```json\n```", badJSON, "is not JSON"},
		{"only a fence", "```", badJSON, "is not JSON"},
		{"invalid value in a code fence", "```\n" + editReply(t, "intent", "x") + "\n```", badValue, "/intent: must be an intent"},
		{"truncated", goodReply[:len(goodReply)/2], badJSON, "ends too early"},
		{"two objects", goodReply + goodReply, badJSON, "is not JSON"},
		{"array of one", "[" + goodReply + "]", badJSON, "must be an object, got an array"},
		{"null", "null", badJSON, "must be an object, got null"},
		{"a string", `"code_review"`, badJSON, "must be an object, got a string"},
		{"duplicate member", strings.Replace(goodReply, "{", `{"intent":"code_review",`, 1), badJSON, "intent"},
		{"member in another case", strings.Replace(goodReply, "intent", "Intent", 1), badJSON, "Intent"},
		{"homoglyph in a member", strings.Replace(goodReply, "intent", "іntent", 1), badJSON, "unknown member"},
		{"unknown member", strings.Replace(goodReply, "{", `{"agent":"quality_agent",`, 1), badJSON, `unknown member "agent"`},
		{"NUL inside", strings.Replace(goodReply, "code", "co\x00de", 1), badJSON, "is not JSON"},
		{"non-breaking space after", goodReply + "\u00a0", badJSON, "is not JSON"},
		{"NUL after", goodReply + "\x00", badJSON, "is not JSON"},
		{"byte order mark", "\ufeff" + goodReply, badJSON, "byte order mark"},
		{"invalid UTF-8", strings.Replace(goodReply, "code", "c\xffde", 1), badJSON, "UTF-8"},
		{"deep", strings.Repeat("[", 5000), badJSON, "nests deeper"},
		{"long", goodReply + strings.Repeat(" ", 1<<20) + "x", badJSON, "is longer than 1048576 bytes"},

		{"missing intent", editReply(t, "intent", nil), badJSON, "/intent: is required"},
		{"null intent", strings.Replace(goodReply, `"code_review"`, "null", 1), badJSON, "/intent: is required"},
		{"missing domains", editReply(t, "domains", nil), badJSON, "/domains: is required"},
		{"null domains", strings.Replace(goodReply, `["python"]`, "null", 1), badJSON, "must be an array, got null"},
		{"null domain", strings.Replace(goodReply, `"python"`, "null", 1), badJSON, "must be a string, got null"},
		{"null subtasks", strings.Replace(goodReply, `[],`, "null,", 1), badJSON, "must be an array, got null"},
		{"missing confidence", editReply(t, "confidence", nil), badJSON, "/confidence: is required"},
		{"confidence as text", editReply(t, "confidence", "0.9"), badJSON, "must be a number, got a string"},
		{"confidence NaN", strings.Replace(goodReply, "0.93", "NaN", 1), badJSON, "is not JSON"},
		{"domains as text", editReply(t, "domains", "python"), badJSON, "must be an array, got a string"},
		{"intent as a list", editReply(t, "intent", []string{"code_review"}), badJSON, "must be a string, got an array"},

		{"undeclared intent", editReply(t, "intent", "write_poem"), badValue, `/intent: must be an intent of the registry or "unknown", got "write_poem"`},
		{"intent in another case", editReply(t, "intent", "Code_Review"), badValue, `got "Code_Review"`},
		{"intent with a space", editReply(t, "intent", "code_review "), badValue, `got "code_review "`},
		{"homoglyph in an intent", editReply(t, "intent", "cоde_review"), badValue, `got "cоde_review"`},
		{"domain as the intent", editReply(t, "intent", "python"), badValue, "/intent"},
		{"empty intent", editReply(t, "intent", ""), badValue, `got ""`},
		{"intent with a control character", editReply(t, "intent", "a\n\x1b[2Jb"), badValue, `got "a\n\x1b[2Jb"`},
		{"long intent", editReply(t, "intent", strings.Repeat("x", 5000)), badValue, `got "` + strings.Repeat("x", 60) + `"`},
		{"undeclared domain", editReply(t, "domains", []string{"python", "cobol"}), badValue, `/domains/1: must be a domain of the registry or "unknown", got "cobol"`},
		{"wildcard domain", editReply(t, "domains", []string{"*"}), badValue, `/domains/0: must be a domain`},
		{"no domain", editReply(t, "domains", []string{}), badValue, `/domains: must have 1 to 3 entries; if none fits, the one is "unknown"`},
		{"four domains", editReply(t, "domains", []string{"python", "azure", "docs", "databricks"}), badValue, "/domains: must have at most 3 entries"},
		{"confidence above 1", editReply(t, "confidence", 1.7), badValue, "/confidence: must be at most 1, got 1.7"},
		{"confidence below 0", editReply(t, "confidence", -1), badValue, "/confidence: must be at least 0, got -1"},
		{"four subtasks", withSubtask(`{"title":"a"},{"title":"b"},{"title":"c"},{"title":"d"}`), badValue, "/subtasks: must have at most 3 entries"},
		{"missing title", withSubtask(`{"reason":"x"}`), badJSON, "/subtasks/0/title: is required"},
		{"blank title", withSubtask(`{"title":"a"},{"title":" \n\u0007"}`), badValue, "/subtasks/1/title: must be 1 to 200 characters long"},
		{"title too long", withSubtask(`{"title":"` + strings.Repeat("x", 201) + `"}`), badValue, "/subtasks/0/title: must be 1 to 200 characters long"},
		{"invalid intent of a subtask", withSubtask(`{"title":"a","intent":"x"}`), badValue, "/subtasks/0/intent: must be an intent"},
		{"invalid domain of a subtask", withSubtask(`{"title":"a","domains":["*"]}`), badValue, "/subtasks/0/domains/0: must be a domain"},
		{"four domains of a subtask", withSubtask(`{"title":"a","domains":["python","azure","docs","databricks"]}`), badValue, "/subtasks/0/domains: must have at most 3"},
		{"string as a subtask", withSubtask(`"review"`), badJSON, "must be an object, got a string"},
		{"unknown member of a subtask", withSubtask(`{"title":"a","agent":"x"}`), badJSON, `unknown member "agent"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, m := classifyOnce(t, replyTexts(tt.reply))
			if got.Source != contract.SourceLexical || got.Reason != tt.reason || got.Intent != "code_review" {
				t.Errorf("got %s from %s, reason %q; want code_review from lexical, %q", got.Intent, got.Source, got.Reason, tt.reason)
			}
			want := []string{"classify " + tt.reason, "repair " + tt.reason}
			if diff := cmp.Diff(want, outcomes(&got)); diff != "" {
				t.Fatalf("calls (-want +got):\n%s", diff)
			}
			detail := got.Calls[0].Detail
			if !strings.Contains(detail, tt.detail) || utf8.RuneCountInString(detail) > 300 || strings.ContainsFunc(detail, unicode.IsControl) {
				t.Errorf("got detail %q, want a short line with %q", detail, tt.detail)
			}
			if m.calls() != 2 {
				t.Errorf("got %d calls, want 2", m.calls())
			}
		})
	}
}

// checkReply checks properties of every classification with a model call.
func checkReply(t failer, s *capabilities.Catalogue, clf *contract.Classification) {
	t.Helper()
	if !(clf.Confidence >= 0 && clf.Confidence <= 1) {
		t.Errorf("got confidence %v, want 0 to 1", clf.Confidence)
	}
	if clf.Intent != contract.Unknown && len(clf.Domains) == 0 {
		t.Errorf("got %s without a domain, want at least unknown", clf.Intent)
	}
	if clf.Domains == nil || clf.Subtasks == nil || len(clf.Subtasks) > contract.MaxSubtasks {
		t.Errorf("got domains %#v, subtasks %#v; want lists, of at most 3 subtasks", clf.Domains, clf.Subtasks)
	}
	checkLabels(t, s, clf.Intent, clf.Domains)
	checkDistinct(t, clf.Domains)
	for _, sub := range clf.Subtasks {
		intent := sub.Intent
		if intent == "" {
			intent = clf.Intent
		}
		checkLabels(t, s, intent, sub.Domains)
		checkDistinct(t, sub.Domains)
		if n := utf8.RuneCountInString(sub.Title); n < 1 || n > contract.MaxSubtaskTitle {
			t.Errorf("got title %q, want 1 to 200 characters", sub.Title)
		}
		for _, text := range []string{sub.Title, sub.Reason} {
			if strings.ContainsFunc(text, unicode.IsControl) || text != strings.TrimSpace(text) || !utf8.ValidString(text) {
				t.Errorf("got text %q, want one trimmed line", text)
			}
		}
	}
	checkUse(t, clf)
}

func checkDistinct(t failer, domains []string) {
	t.Helper()
	seen := map[string]bool{}
	for _, d := range domains {
		if seen[d] {
			t.Errorf("got domain %s twice in %q", d, domains)
		}
		seen[d] = true
	}
}

// checkUse checks that the recorded calls are consistent with the result.
func checkUse(t failer, clf *contract.Classification) {
	t.Helper()
	if clf.ModelUse == nil {
		t.Errorf("got no model use, want one")
		return
	}
	var sum contract.Tokens
	for _, call := range clf.Calls {
		sum.Add(call.Tokens)
		if len(call.Reply) > contract.MaxReplyExcerpt || !utf8.ValidString(call.Reply) {
			t.Errorf("got a recorded reply of %d bytes, want at most %d, valid", len(call.Reply), contract.MaxReplyExcerpt)
		}
	}
	if sum != clf.Tokens {
		t.Errorf("got tokens %+v, want the sum of the calls, %+v", clf.Tokens, sum)
	}
	last := ""
	if len(clf.Calls) > 0 {
		last = clf.Calls[len(clf.Calls)-1].Outcome
	}
	switch {
	case clf.Source == contract.SourceLLM && (last != contract.OutcomeOK || clf.Reason != ""):
		t.Errorf("got source llm, reason %q after outcome %q; want no reason after ok", clf.Reason, last)
	case clf.Reason == llm.ReasonTimeout: // may occur between two calls
	case clf.Source == contract.SourceLexical && (last != clf.Reason || clf.Reason == ""):
		t.Errorf("got a fallback with reason %q after outcome %q, want the outcome as the reason", clf.Reason, last)
	}
}

// FuzzReply parses arbitrary bytes as a reply, whole or truncated.
func FuzzReply(f *testing.F) {
	for _, seed := range []string{
		goodReply, "```json\n" + goodReply + "\n```", "", "null", "{}", "[]", "\ufeff" + goodReply, goodReply + goodReply,
		strings.Replace(goodReply, "[],", `[{"title":"a\u0000\u202e b","reason":"r","intent":"unknown","domains":["docs","docs"]}],`, 1),
		strings.Replace(goodReply, "0.93", "1e400", 1), strings.Replace(goodReply, "0.93", "-0.0", 1),
		strings.Replace(goodReply, `"python"`, `"python","*"`, 1), `{"intent":"unknown","domains":[],"confidence":1}`,
		strings.Replace(goodReply, "intent", "INTENT", 1), strings.Replace(goodReply, "intent", "intent\xff", 1),
		`{"intent":"code_review","domains":["python"],"subtasks":[{"title":"` + strings.Repeat("é", 201) + `"}],"confidence":0.5}`,
	} {
		f.Add(seed, false)
		f.Add(seed, true)
	}
	s := exampleRegistry()
	in := input(s, "review this python code")
	f.Fuzz(func(t *testing.T, text string, truncated bool) {
		m := &fakeModel{do: replySequence(llm.Reply{Text: text, Truncated: truncated})}
		c, err := classifier.New(classifier.Config{Model: m})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		clf := c.Classify(t.Context(), in)
		checkReply(t, s, &clf)
		again := c.Classify(t.Context(), in)
		if diff := cmp.Diff(withoutTimes(clf), withoutTimes(again)); diff != "" {
			t.Errorf("got two classifications of one reply (-first +second):\n%s", diff)
		}
	})
}

// withoutTimes removes the values that differ between calls.
func withoutTimes(clf contract.Classification) contract.Classification {
	clf.LatencyMS = 0
	if clf.ModelUse != nil {
		use := *clf.ModelUse
		use.Calls = append([]contract.ModelCall{}, use.Calls...)
		for i := range use.Calls {
			use.Calls[i].LatencyMS = 0
		}
		clf.ModelUse = &use
	}
	return clf
}
