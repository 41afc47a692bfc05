package fakellm

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
)

// question is what the suite asks: a classification, its properties by name.
func question() *llm.Request {
	text := func(description string) *llm.Schema { return &llm.Schema{Type: "string", Description: description} }
	intents := &llm.Schema{Type: "string", Enum: []string{"code_review", "cost_analysis", "unknown"}}
	domains := &llm.Schema{Type: "array", Items: &llm.Schema{Type: "string", Enum: []string{"python", "unknown"}}}
	subtask := &llm.Schema{Type: "object", Properties: []llm.Property{
		{Name: "domains", Schema: domains}, {Name: "intent", Schema: intents}, {Name: "title", Schema: text("in the imperative")},
	}}
	return &llm.Request{
		Purpose: contract.PurposeClassify, System: systemText, User: userText, MaxOutputTokens: maxOutput,
		Schema: &llm.Schema{Type: "object", Description: "what the request is", Properties: []llm.Property{
			{Name: "confidence", Schema: &llm.Schema{Type: "number"}},
			{Name: "domains", Schema: domains},
			{Name: "intent", Schema: intents},
			{Name: "subtasks", Schema: &llm.Schema{Type: "array", Items: subtask}},
		}},
	}
}

// suiteRequest: all of the request is sent, each part where it belongs.
func suiteRequest(t *testing.T, wire Protocol, open Open) {
	zero := 0.0
	sent := func(t *testing.T, req *llm.Request) *Request {
		t.Helper()
		s := Start(t, Config{Wire: wire})
		if _, err := ask(t, open(t, s), req); err != nil {
			t.Errorf("got error %v, want a reply", err)
		}
		oneExchange(t, s)
		return s.Requests()[0]
	}
	t.Run("of JSON", func(t *testing.T) {
		got := sent(t, question()).RequestContent
		want := RequestContent{
			Key: APIKey, Model: got.Model, System: systemText, User: userText,
			MIMEType: "application/json", Schema: question().Schema, MaxOutputTokens: maxOutput, Temperature: &zero,
		}
		if diff := byName(want.Schema, got.Schema); diff != "" {
			t.Errorf("schema (-want +got):\n%s", diff)
		}
		got.Schema, want.Schema = nil, nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("request (-want +got):\n%s", diff)
		}
	})
	t.Run("of text", func(t *testing.T) {
		got := sent(t, &llm.Request{Purpose: contract.PurposeAnswer, System: systemText, User: userText, MaxOutputTokens: 600}).RequestContent
		want := RequestContent{Key: APIKey, Model: got.Model, System: systemText, User: userText, MaxOutputTokens: 600, Temperature: &zero}
		got.MIMEType = strings.TrimPrefix(got.MIMEType, "text/plain") // the default, said or not
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("request (-want +got):\n%s", diff)
		}
	})
	t.Run("to an unknown model", func(t *testing.T) {
		s := Start(t, Config{Wire: wire})
		s.Model = "no-such-model"
		_, err := ask(t, open(t, s), question())
		if e := wellFormed(t, err); e == nil || e.Reason != llm.ReasonRejected || e.Status != 404 {
			t.Errorf("got %#v, want %s, status 404", e, llm.ReasonRejected)
		}
		if got := len(s.Requests()); got != 1 {
			t.Errorf("got %d HTTP requests, want 1", got)
		}
	})
}

// suiteSecrets: the key is in its header, and nowhere else.
func suiteSecrets(t *testing.T, wire Protocol, open Open) {
	header := map[Protocol]string{Gemini: "X-Goog-Api-Key", OpenAI: "Authorization"}[wire]
	t.Run("key in its header alone", func(t *testing.T) {
		s := Start(t, Config{Wire: wire})
		if _, err := ask(t, open(t, s), question()); err != nil {
			t.Fatalf("got error %v, want a reply", err)
		}
		for _, r := range s.Requests() {
			if got := r.Places(s.Key); !slices.Equal(got, []string{header}) {
				t.Errorf("got the key in %q, want it in %q alone", got, header)
			}
			if strings.Contains(r.URL, "key=") {
				t.Errorf("got URL %s, want no parameter named key", r.URL)
			}
		}
	})
	t.Run("wrong key", func(t *testing.T) {
		s := Start(t, Config{Wire: wire, Key: "another-key-9Xw3"})
		s.Key = APIKey
		_, err := ask(t, open(t, s), question())
		if e := wellFormed(t, err); e == nil || e.Reason != llm.ReasonUnauthorized {
			t.Errorf("got %#v, want %s", e, llm.ReasonUnauthorized)
		}
		keepsQuiet(t, err)
		if got := len(s.Requests()); got != 1 {
			t.Errorf("got %d HTTP requests, want 1", got)
		}
	})
}

// suiteRedirect: nobody is followed elsewhere, with the key least of all.
func suiteRedirect(t *testing.T, wire Protocol, open Open) {
	elsewhere := Start(t, Config{Wire: wire, NoKey: true})
	s := Start(t, Config{Wire: wire, Script: func(r *Request) Behaviour {
		root, _, _ := strings.Cut(elsewhere.URL, openaiBase)
		return Redirect(root + r.URL)
	}})
	_, err := ask(t, open(t, s), question())
	if e := wellFormed(t, err); e != nil && e.Reason != llm.ReasonRejected && e.Reason != llm.ReasonBadResponse {
		t.Errorf("got reason %q, want %q or %q", e.Reason, llm.ReasonRejected, llm.ReasonBadResponse)
	}
	oneExchange(t, s)
	if got := len(elsewhere.Requests()); got != 0 {
		t.Errorf("got %d requests at where the redirect leads, want 0", got)
	}
}
