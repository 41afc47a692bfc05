package fakellm

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
)

// suiteQuestion returns a classification request with sorted properties.
func suiteQuestion() *llm.Request {
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

// suiteRequest tests that all parts of a request are sent correctly.
func suiteRequest(t *testing.T, wire Protocol, open Open) {
	zero := 0.0
	sent := func(t *testing.T, req *llm.Request) *Request {
		t.Helper()
		s := Start(t, Config{Protocol: wire})
		if _, err := generate(t, open(t, s), req); err != nil {
			t.Errorf("got error %v, want a reply", err)
		}
		checkOneRequest(t, s)
		return s.Requests()[0]
	}
	t.Run("JSON with a schema", func(t *testing.T) {
		got := sent(t, suiteQuestion()).RequestContent
		want := RequestContent{
			Key: APIKey, Model: got.Model, System: systemText, User: userText,
			MIMEType: "application/json", Schema: suiteQuestion().Schema, MaxOutputTokens: maxOutput, Temperature: &zero,
		}
		if diff := diffSchemas(want.Schema, got.Schema); diff != "" {
			t.Errorf("schema (-want +got):\n%s", diff)
		}
		got.Schema, want.Schema = nil, nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("request (-want +got):\n%s", diff)
		}
	})
	t.Run("JSON without a schema", func(t *testing.T) {
		got := sent(t, &llm.Request{Purpose: contract.PurposePlan, System: systemText, User: userText, Schema: &llm.Schema{Type: "object"}}).RequestContent
		if got.MIMEType != "application/json" || got.Schema != nil {
			t.Errorf("got %q and schema %v, want JSON without a schema", got.MIMEType, got.Schema)
		}
	})
	t.Run("text", func(t *testing.T) {
		got := sent(t, &llm.Request{Purpose: contract.PurposeAnswer, System: systemText, User: userText, MaxOutputTokens: 600}).RequestContent
		want := RequestContent{Key: APIKey, Model: got.Model, System: systemText, User: userText, MaxOutputTokens: 600, Temperature: &zero}
		got.MIMEType = strings.TrimPrefix(got.MIMEType, "text/plain") // the default
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("request (-want +got):\n%s", diff)
		}
	})
	t.Run("unknown model", func(t *testing.T) {
		s := Start(t, Config{Protocol: wire})
		s.Model = "no-such-model"
		_, err := generate(t, open(t, s), suiteQuestion())
		if e := checkError(t, err); e == nil || e.Reason != llm.ReasonRejected || e.Status != 404 {
			t.Errorf("got %#v, want %s, status 404", e, llm.ReasonRejected)
		}
		if got := len(s.Requests()); got != 1 {
			t.Errorf("got %d HTTP requests, want 1", got)
		}
	})
}

// suiteSecrets tests that the key is only in its header.
func suiteSecrets(t *testing.T, wire Protocol, open Open) {
	header := map[Protocol]string{Gemini: "X-Goog-Api-Key", OpenAI: "Authorization"}[wire]
	t.Run("key in its header only", func(t *testing.T) {
		s := Start(t, Config{Protocol: wire})
		if _, err := generate(t, open(t, s), suiteQuestion()); err != nil {
			t.Fatalf("got error %v, want a reply", err)
		}
		for _, r := range s.Requests() {
			if got := r.FindText(s.Key); !slices.Equal(got, []string{header}) {
				t.Errorf("got the key in %q, want it in %q only", got, header)
			}
			if strings.Contains(r.URL, "key=") {
				t.Errorf("got URL %s, want no parameter named key", r.URL)
			}
		}
	})
	t.Run("wrong key", func(t *testing.T) {
		s := Start(t, Config{Protocol: wire, Key: "another-key-9Xw3"})
		s.Key = APIKey
		_, err := generate(t, open(t, s), suiteQuestion())
		if e := checkError(t, err); e == nil || e.Reason != llm.ReasonUnauthorized {
			t.Errorf("got %#v, want %s", e, llm.ReasonUnauthorized)
		}
		checkNoSecrets(t, err)
		if got := len(s.Requests()); got != 1 {
			t.Errorf("got %d HTTP requests, want 1", got)
		}
	})
}

// suiteRedirect tests that redirects are not followed.
func suiteRedirect(t *testing.T, wire Protocol, open Open) {
	elsewhere := Start(t, Config{Protocol: wire, NoKey: true})
	s := Start(t, Config{Protocol: wire, Script: func(r *Request) Behaviour {
		root, _, _ := strings.Cut(elsewhere.URL, openaiBase)
		return Redirect(root + r.URL)
	}})
	_, err := generate(t, open(t, s), suiteQuestion())
	if e := checkError(t, err); e != nil && e.Reason != llm.ReasonRejected && e.Reason != llm.ReasonBadResponse {
		t.Errorf("got reason %q, want %q or %q", e.Reason, llm.ReasonRejected, llm.ReasonBadResponse)
	}
	checkOneRequest(t, s)
	if got := len(elsewhere.Requests()); got != 0 {
		t.Errorf("got %d requests at the target of the redirect, want 0", got)
	}
}
