package router_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/router"
)

const evidenceRegistry = `
clients:
  quality_agent:
    match: {intent: [code_review], domains: [python]}
    examples: {code_review: ["look at my pull request"]}
    keywords: [pylint]
  secret_agent:
    match: {intent: [code_review], domains: [vault]}
    examples: {code_review: ["look at the request of the vault"]}
domain_aliases: {python: [snakes], vault: [safe]}
fallback: {policy: B}
`

func evidenceTexts(c *contract.Classification) []string {
	var texts []string
	for i := range c.Evidence {
		texts = append(texts, c.Evidence[i].Text)
	}
	return texts
}

// The response contains the evidence if no agent is chosen or the request is a dry run with a
// proposal. If agents serve the request, the evidence is listed on demand only. It quotes no text
// of a hidden agent.
func TestRouter_ListsEvidence(t *testing.T) {
	snapshot, err := capabilities.Parse("evidence.yaml", []byte(evidenceRegistry))
	if err != nil {
		t.Fatal(err)
	}
	d := newDispatcher(t)
	c, err := classifier.New(classifier.Config{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := router.New(router.Config{}, c, d)
	if err != nil {
		t.Fatal(err)
	}
	r.SetView(router.NewView(snapshot, d))
	const understood = "look at my pull request in python"
	everyone := &contract.Caller{Subject: "local", AllScopes: true, AllAgents: true}
	limited := caller("ana", "route:submit", "agent:quality_agent")
	all := []string{"look at my pull request", "look at the request of the vault"}
	for _, tt := range []struct {
		name    string
		prompt  string
		options contract.Options
		caller  *contract.Caller
		want    []string
	}{
		{"dispatched", understood, contract.Options{}, everyone, nil},
		{"explained", understood, contract.Options{Explain: true}, everyone, all},
		{"dry run", understood, contract.Options{DryRun: true}, everyone, nil},
		{"dry run, explained", understood, contract.Options{DryRun: true, Explain: true}, everyone, all},
		{"typo", "look at my pull rquest in python", contract.Options{Explain: true}, everyone, []string{"request", "look at my pull request", "look at the request of the vault"}},
		{"alias", "look at my pull request in snakes", contract.Options{Explain: true}, everyone, []string{"snakes", "look at my pull request", "look at the request of the vault"}},
		{"alias, caller with one agent", "look at my pull request in snakes", contract.Options{Explain: true}, limited, []string{"snakes", "look at my pull request"}},
		{"alias of a hidden agent", "look at my pull request in the safe", contract.Options{Explain: true}, limited, []string{"look at my pull request"}},
		{"hidden agent", understood, contract.Options{Explain: true}, limited, all[:1]},
		{"refused", "pull", contract.Options{}, everyone, all[:1]},
		{"rejected request, caller with one agent", "the vault", contract.Options{}, limited, nil},
	} {
		req := &contract.Request{Content: contract.Content{Prompt: tt.prompt}, Options: tt.options}
		resp, err := r.Handle(t.Context(), req, tt.caller)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, evidenceTexts(&resp.Decision.Classification)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	proposed, err := r.Classify(t.Context(), &contract.Request{Content: contract.Content{Prompt: understood}}, limited)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(all[:1], evidenceTexts(proposed)); diff != "" {
		t.Errorf("Classify (-want +got):\n%s", diff)
	}
	if e := proposed.Evidence[0]; e.Kind != contract.EvidenceExample || e.Intent != "code_review" || e.Strength != 1 || e.Missing == nil {
		t.Errorf("got %+v, want an example with all of its words", e)
	}
}
