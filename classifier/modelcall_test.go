package classifier_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/prompts"
)

// TestClassify_ByModel checks one complete classification by a model, and the
// request.
func TestClassify_ByModel(t *testing.T) {
	m := &fakeModel{do: replyTexts(strings.Replace(goodReply, "[],", `[{"title":"Review it"}],`, 1))}
	now := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	c := open(t, classifier.Config{Model: m, Now: func() time.Time { return now }})
	in := input(exampleRegistry(), "review this python code of [EMAIL_1]")
	in.Locale = "pt-BR"
	in.History = []contract.Turn{{Role: "user", Content: "hello"}, {Role: "assistant", Content: "hi"}}
	got := c.Classify(t.Context(), in)
	tokens := contract.Tokens{Input: 100, Output: 20, Thinking: 5}
	want := contract.Classification{
		Intent: "code_review", Domains: []string{"python"}, Subtasks: []contract.Subtask{{Title: "Review it"}}, Confidence: 0.93,
		DomainOrigins: byModel([]string{"python"}), Source: contract.SourceLLM,
		ModelUse: &contract.ModelUse{
			Provider: "fake", Model: "fake-1", PromptVersion: prompts.RouterVersion, Tokens: tokens,
			Calls: []contract.ModelCall{{
				Purpose: contract.PurposeClassify, Outcome: contract.OutcomeOK, Tokens: tokens,
				Reply: strings.Replace(goodReply, "[],", `[{"title":"Review it"}],`, 1),
			}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("classification (-want +got):\n%s", diff)
	}
	router := prompts.RouterData{Prompt: in.Prompt, History: in.History, Locale: "pt-BR", Agents: []prompts.Agent{
		{
			ID: "billing_agent", Intents: []string{"cost_analysis"}, Domains: []string{"azure", "databricks"},
			Examples: []string{"why did our cloud bill go up", "analise o custo", "analiza el gasto de la nube", "分析成本"},
		},
		{
			ID: "quality_agent", Intents: []string{"code_review", "databricks_review", "serverless_review"}, Domains: []string{"python", "databricks", "semaforo"},
			Examples: []string{
				"review my pull request", "look over my spark job", "revise este código", "revise este notebook databricks",
				"revisa este código", "revisa este cuaderno de databricks", "审查代码",
			},
		},
		{
			ID: "rag_agent", Intents: []string{"retrieval_qa", "doc_answering"}, Domains: []string{"kb_internal", "docs"},
			Examples: []string{"what do the docs say about retries", "o que diz a documentação", "qué dice la documentación"},
		},
	}}
	text := router.Render()
	intents := &llm.Schema{Type: "string", Enum: []string{
		"code_review", "cost_analysis", "databricks_review", "doc_answering", "retrieval_qa", "serverless_review", "unknown",
	}}
	domains := &llm.Schema{Type: "array", Items: &llm.Schema{Type: "string", Enum: []string{
		"azure", "databricks", "docs", "kb_internal", "python", "semaforo", "unknown",
	}}}
	wantRequest := llm.Request{
		Purpose: contract.PurposeClassify, System: text.System, User: text.User, MaxOutputTokens: 300,
		Schema: &llm.Schema{Type: "object", Properties: []llm.Property{
			{Name: "intent", Schema: intents},
			{Name: "domains", Schema: domains},
			{Name: "subtasks", Schema: &llm.Schema{Type: "array", Items: &llm.Schema{Type: "object", Properties: []llm.Property{
				{Name: "title", Schema: &llm.Schema{Type: "string"}},
				{Name: "reason", Schema: &llm.Schema{Type: "string"}},
				{Name: "intent", Schema: intents},
				{Name: "domains", Schema: domains},
			}}}},
			{Name: "confidence", Schema: &llm.Schema{Type: "number", Description: "from 0 to 1"}},
		}},
	}
	if diff := cmp.Diff([]llm.Request{wantRequest}, m.received()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// TestClassify_SequenceOfCalls checks the number and purpose of calls and the
// result.
func TestClassify_SequenceOfCalls(t *testing.T) {
	cut := llm.Reply{Text: goodReply[:30], Truncated: true}
	good, bad := llm.Reply{Text: goodReply}, llm.Reply{Text: "nonsense"}
	wrong := llm.Reply{Text: `{"intent":"x","domains":[],"subtasks":[],"confidence":1}`}
	blocked := &llm.Error{Reason: llm.ReasonBlocked, Detail: "SAFETY"}
	then := func(first llm.Reply, err error) script {
		return func(ctx context.Context, nth int, req *llm.Request) (*llm.Reply, error) {
			if nth > 0 {
				return nil, err
			}
			return &first, nil
		}
	}
	tests := []struct {
		name   string
		do     script
		reason string
		want   []string
	}{
		{"valid", replySequence(good), "", []string{"classify ok"}},
		{"repaired", replySequence(bad, good), "", []string{"classify llm_invalid_json", "repair ok"}},
		{"invalid value repaired", replySequence(wrong, good), "", []string{"classify llm_invalid_value", "repair ok"}},
		{"second repair not tried", replySequence(bad, wrong, good), "llm_invalid_value", []string{"classify llm_invalid_json", "repair llm_invalid_value"}},
		{"more tokens", replySequence(cut, good), "", []string{"classify llm_max_tokens", "more_tokens ok"}},
		{"more tokens not enough", replySequence(cut, cut, good), "llm_max_tokens", []string{"classify llm_max_tokens", "more_tokens llm_max_tokens"}},
		{"truncated before the first token", replySequence(llm.Reply{Truncated: true}, good), "", []string{"classify llm_max_tokens", "more_tokens ok"}},
		{"truncated after the last brace", replySequence(llm.Reply{Text: goodReply + "\n\n\n", Truncated: true}), "", []string{"classify ok"}},
		{"more tokens, invalid reply", replySequence(cut, bad, good), "llm_invalid_json", []string{"classify llm_max_tokens", "more_tokens llm_invalid_json"}},
		{"truncated repair", replySequence(bad, cut, good), "llm_max_tokens", []string{"classify llm_invalid_json", "repair llm_max_tokens"}},
		{"empty", replySequence(llm.Reply{}), "llm_empty", []string{"classify llm_empty"}},
		{"white space", replySequence(llm.Reply{Text: " \n"}), "llm_empty", []string{"classify llm_empty"}},
		{"no reply", failWith(nil), "llm_empty", []string{"classify llm_empty"}},
		{"blocked", failWith(blocked), "llm_blocked", []string{"classify llm_blocked"}},
		{"blocked repair", then(bad, blocked), "llm_blocked", []string{"classify llm_invalid_json", "repair llm_blocked"}},
		{"foreign error", failWith(errors.New("dial tcp: secret.internal")), "llm_unavailable", []string{"classify llm_unavailable"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, m := classifyOnce(t, tt.do)
			if diff := cmp.Diff(tt.want, outcomes(&got)); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			source := contract.SourceLLM
			if tt.reason != "" {
				source = contract.SourceLexical
			}
			if got.Reason != tt.reason || got.Source != source || got.Intent != "code_review" {
				t.Errorf("got %s from %s, reason %q; want code_review from %s, %q", got.Intent, got.Source, got.Reason, source, tt.reason)
			}
			checkReply(t, sourceRegistry(), &got)
			if m.calls() != len(tt.want) {
				t.Errorf("got %d calls, want %d", m.calls(), len(tt.want))
			}
		})
	}
}

// TestClassify_SecondCall checks the request of the second call.
func TestClassify_SecondCall(t *testing.T) {
	tests := []struct {
		name   string
		first  llm.Reply
		budget int
		repair bool
	}{
		{"truncated", llm.Reply{Text: "{", Truncated: true}, 1200, false},
		{"wrong", llm.Reply{Text: `{"intent":"x"}`}, 300, true},
		{"invalid and long", llm.Reply{Text: strings.Repeat("é", 5000)}, 300, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, m := classifyOnce(t, replySequence(tt.first, llm.Reply{Text: goodReply}))
			asked := m.received()
			if len(asked) != 2 {
				t.Fatalf("got %d calls, want 2", len(asked))
			}
			want := asked[0]
			want.Purpose, want.MaxOutputTokens = contract.PurposeMoreTokens, tt.budget
			if tt.repair {
				want.Purpose = contract.PurposeRepair
				want.User = asked[1].User
				if !strings.HasPrefix(asked[1].User, asked[0].User) || len(asked[1].User) == len(asked[0].User) {
					t.Errorf("got a repair prompt without the original prompt:\n%s", asked[1].User)
				}
				if len(asked[1].User) > len(asked[0].User)+3*contract.MaxReplyExcerpt {
					t.Errorf("got %d bytes more in the repair prompt, want a limited excerpt of the reply", len(asked[1].User)-len(asked[0].User))
				}
				if got.Calls[0].Detail == "" || !strings.Contains(asked[1].User, "was not accepted") {
					t.Errorf("got detail %q, want the error, and the same in the repair prompt", got.Calls[0].Detail)
				}
			}
			if diff := cmp.Diff(want, asked[1]); diff != "" {
				t.Errorf("second request (-want +got):\n%s", diff)
			}
		})
	}
}

// TestClassify_ErrorDetails checks that only errors of package llm are shown.
func TestClassify_ErrorDetails(t *testing.T) {
	tests := []struct {
		name   string
		err    error
		reason string
		detail string
	}{
		{"ours", &llm.Error{Reason: llm.ReasonRateLimited, Detail: "HTTP 429"}, "llm_rate_limited", "HTTP 429"},
		{"llm error, wrapped", fmt.Errorf("classify: %w", &llm.Error{Reason: llm.ReasonBreakerOpen, Detail: "left alone"}), "llm_breaker_open", "left alone"},
		{"llm error, two lines", &llm.Error{Reason: llm.ReasonRejected, Detail: "a\nb\x1b"}, "llm_rejected", "a b"},
		{"foreign error", errors.New("Post https://x/?key=abc: refused"), "llm_unavailable", ""},
		{"a deadline", context.DeadlineExceeded, "llm_timeout", "no reply within 2s"},
		{"a cancellation", context.Canceled, "llm_unavailable", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, _ := classifyOnce(t, failWith(tt.err))
			if got.Reason != tt.reason || got.Calls[0].Detail != tt.detail {
				t.Errorf("got reason %q, detail %q; want %q, %q", got.Reason, got.Calls[0].Detail, tt.reason, tt.detail)
			}
		})
	}
}

// TestClassify_FallbackReason checks that the reason of the failed call has
// precedence.
func TestClassify_FallbackReason(t *testing.T) {
	m := &fakeModel{do: failWith(&llm.Error{Reason: llm.ReasonBlocked})}
	in := input(sourceRegistry(), "code review; cost analysis; doc answering; retrieval qa")
	for _, mode := range []string{classifier.ModeLLM, classifier.ModeCascade} {
		got := open(t, classifier.Config{Mode: mode, Model: m, Accept: 2}).Classify(t.Context(), in)
		if got.Reason != llm.ReasonBlocked || len(got.Subtasks) != 3 {
			t.Errorf("%s: got reason %q with %d subtasks, want %q with 3", mode, got.Reason, len(got.Subtasks), llm.ReasonBlocked)
		}
	}
	got := open(t, classifier.Config{Mode: classifier.ModeCascade, Model: m, Accept: 0.5}).Classify(t.Context(), in)
	if got.Reason != classifier.ReasonTooManyParts {
		t.Errorf("accepted: got reason %q, want %q", got.Reason, classifier.ReasonTooManyParts)
	}
}

// TestClassify_ReplyExcerpt checks the excerpt of a long reply, and of one that
// is not text.
func TestClassify_ReplyExcerpt(t *testing.T) {
	for name, text := range map[string]string{
		"long":                    strings.Repeat("x", 1<<20),
		"cut inside a character":  "x" + strings.Repeat("日本", 2000),
		"not UTF-8":               strings.Repeat("a\xff", 3000),
		"continuation bytes only": strings.Repeat("\x80", 5000),
	} {
		got, _ := classifyOnce(t, replyTexts(text))
		shown := got.Calls[0].Reply
		if len(shown) > contract.MaxReplyExcerpt || len(shown) == 0 || !strings.HasPrefix(strings.ToValidUTF8(text, "\ufffd"), strings.TrimSuffix(shown, "\ufffd")) {
			t.Errorf("%s: got %d bytes %.20q, want the beginning, at most %d", name, len(shown), shown, contract.MaxReplyExcerpt)
		}
		checkReply(t, sourceRegistry(), &got)
	}
}

// TestClassify_ModelPanics checks that a panic in a model counts as a failed call.
func TestClassify_ModelPanics(t *testing.T) {
	var log bytes.Buffer
	m := &fakeModel{do: func(_ context.Context, nth int, _ *llm.Request) (*llm.Reply, error) {
		if nth == 0 {
			panic("index out of range")
		}
		return &llm.Reply{Text: goodReply}, nil
	}}
	c := open(t, classifier.Config{Model: m, Log: slog.New(slog.NewTextHandler(&log, nil))})
	in := input(sourceRegistry(), "review this python code")
	got := c.Classify(t.Context(), in)
	if diff := cmp.Diff([]string{"classify llm_unavailable"}, outcomes(&got)); diff != "" || got.Reason != llm.ReasonUnavailable {
		t.Errorf("got reason %q, calls (-want +got):\n%s", got.Reason, diff)
	}
	for _, want := range []string{"index out of range", "modelcall_test.go"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("got log %q, want %q in it", log.String(), want)
		}
	}
	if got := c.Classify(t.Context(), in); got.Source != contract.SourceLLM {
		t.Errorf("next call: got source %s, want llm", got.Source)
	}
}

// TestClassify_AnyModelBehaviour checks the result for any sequence of model
// behaviours.
func TestClassify_AnyModelBehaviour(t *testing.T) {
	s := exampleRegistry()
	in := input(s, "review this python code; do a cost analysis")
	text := rapid.OneOf(
		rapid.SampledFrom([]string{goodReply, goodReply[:40], "```json\n" + goodReply + "```", "null", "", "{}", `{"intent":"unknown","domains":[],"confidence":0}`}),
		rapid.String(),
	)
	reasons := rapid.SampledFrom(llm.Reasons())
	rapid.Check(t, func(t *rapid.T) {
		m := &fakeModel{do: func(context.Context, int, *llm.Request) (*llm.Reply, error) { return nil, nil }}
		steps := []func() (*llm.Reply, error){}
		for range 2 {
			r := llm.Reply{Text: text.Draw(t, "text"), Truncated: rapid.Bool().Draw(t, "truncated")}
			var err error
			if rapid.IntRange(0, 3).Draw(t, "fails") == 0 {
				err = &llm.Error{Reason: reasons.Draw(t, "reason")}
			}
			steps = append(steps, func() (*llm.Reply, error) { return &r, err })
		}
		m.do = func(_ context.Context, nth int, _ *llm.Request) (*llm.Reply, error) { return steps[nth]() }
		c, err := classifier.New(classifier.Config{Model: m})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		clf := c.Classify(t.Context(), in)
		checkReply(t, s, &clf)
		if m.calls() > 2 {
			t.Errorf("got %d calls, want at most 2", m.calls())
		}
	})
}
