package router_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/router"
)

// TestRouter_IgnoresNeedsInputOfRemovedAgent: the next request of the session is classified like
// any other, and no error names an agent_id that the caller did not send.
func TestRouter_IgnoresNeedsInputOfRemovedAgent(t *testing.T) {
	const both = "clients:\n" +
		"  asker: {match: {intent: [cost], domains: [azure]}}\n" +
		"  reviewer: {match: {intent: [review], domains: [python]}}\n"
	const left = "clients:\n  reviewer: {match: {intent: [review], domains: [python]}}\n"
	agents := &scriptedAgents{t: t, script: map[string]scriptedOutcome{"asker": {Result: &contract.Result{
		Status: contract.ResultSuccess, Data: map[string]json.RawMessage{"needs_input": json.RawMessage("true")},
	}}}}
	said := &scriptedClassifier{contract.Classification{Intent: "cost", Domains: []string{"azure"}, Confidence: 1, Source: contract.SourceLLM}}
	r, err := router.New(router.Config{Storage: router.Storage{Sessions: openSessions(t)}}, said, agents)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(registry, prompt string) *contract.Response {
		snapshot, err := capabilities.Parse("registry.yaml", []byte(registry))
		if err != nil {
			t.Fatal(err)
		}
		r.SetView(router.NewView(snapshot, agents))
		resp, err := r.Handle(t.Context(), &contract.Request{Content: contract.Content{Prompt: prompt}, SessionID: "s"},
			&contract.Caller{Subject: "local", AllScopes: true, AllAgents: true})
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	ask(both, "costs of azure")
	said.proposal = contract.Classification{Intent: "review", Domains: []string{"python"}, Confidence: 1, Source: contract.SourceLLM}
	resp := ask(left, "review my python code now")
	if resp.Status != contract.StatusCompleted || resp.Decision.Classification.Source != contract.SourceLLM {
		t.Errorf("got %s, source %s, want the request classified again and completed", resp.Status, resp.Decision.Classification.Source)
	}
	if resp = ask(both, "review it again"); resp.Decision.Classification.Source != contract.SourceLLM {
		t.Errorf("got source %s after the agent was added again, want the pinned turn discarded", resp.Decision.Classification.Source)
	}
}

// A request that shows no language is refused in that of its session.
func TestRouter_RefusesInLanguageOfSession(t *testing.T) {
	agents := &scriptedAgents{t: t}
	unclear := &scriptedClassifier{contract.Classification{Intent: contract.Unknown, Source: contract.SourceLexical}}
	r, err := router.New(router.Config{Storage: router.Storage{Sessions: openSessions(t)}}, unclear, agents)
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := capabilities.Parse("registry.yaml", []byte("clients:\n  reviewer: {match: {intent: [review], domains: [python]}}\nfallback: { policy: B }\n"))
	if err != nil {
		t.Fatal(err)
	}
	r.SetView(router.NewView(snapshot, agents))
	for _, prompt := range []string{"Quero marcar uma reunião na terça", "15:30"} {
		resp, err := r.Handle(t.Context(), &contract.Request{Content: contract.Content{Prompt: prompt}, SessionID: "s"}, contract.LocalCaller())
		if err != nil {
			t.Fatal(err)
		}
		if got := resp.Data.Unsupported; got == nil || !strings.Contains(got.Detail, "peça ") {
			t.Errorf("%s: got %+v, want a refusal in Portuguese", prompt, got)
		}
	}
}
