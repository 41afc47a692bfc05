package fallback_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/matcher"
)

// The prompts are classified by the lexical classifier, and the near misses are those of the
// matcher.
func TestUnsupported_WithCandidatesOfTheMatcher(t *testing.T) {
	tests := []struct {
		name, prompt, reason string
		caller               *contract.Caller
		detail               string
		nearest              []string
	}{
		{
			"no domain", "review my code", fallback.ReasonNoMatch, local,
			"the request names no subject that is served here: name one of databricks, python, semaforo",
			[]string{"quality_agent"},
		},
		{
			"domain only", "python jokes", fallback.ReasonNoMatch, local,
			"it is not clear what is to be done: ask for one of code_review, databricks_review, serverless_review",
			[]string{"quality_agent"},
		},
		{
			"intent of one, domain of another", "cost analysis of python", fallback.ReasonNoMatch, local,
			"the request names no subject that is served here: name one of azure, databricks",
			[]string{"billing_agent", "quality_agent"},
		},
		{
			"caller with one of the agents", "cost analysis of python", fallback.ReasonNoMatch, callerOf("quality_agent"),
			"it is not clear what is to be done: ask for one of code_review, databricks_review, serverless_review",
			[]string{"quality_agent"},
		},
		{
			"no near miss", "tell me a joke", fallback.ReasonNoMatch, callerOf("rag_agent"),
			"no agent that you may use serves this request: ask for one of doc_answering, retrieval_qa",
			nil,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := fallback.Unsupported(newUnmet(t, registry(), tt.prompt, tt.reason, tt.caller))
			if diff := cmp.Diff(tt.detail, got.Detail); diff != "" {
				t.Errorf("detail (-want +got):\n%s", diff)
			}
			var agents []string
			for _, n := range got.Nearest {
				agents = append(agents, n.AgentID)
				if len(n.Gates) == 0 {
					t.Errorf("%s: got no gate, want the reason for its exclusion", n.AgentID)
				}
			}
			if diff := cmp.Diff(tt.nearest, agents); diff != "" {
				t.Errorf("nearest (-want +got):\n%s", diff)
			}
		})
	}
}

// newUnmet classifies and matches a prompt and returns it as unmet.
func newUnmet(t *testing.T, s *capabilities.Catalogue, prompt, reason string, caller *contract.Caller) *fallback.Unmet {
	t.Helper()
	c, err := classifier.New(classifier.Config{})
	if err != nil {
		t.Fatal(err)
	}
	u := unmet(s, caller, prompt, reason, contract.Classification{})
	u.Decision.Classification = c.Classify(t.Context(), classifier.Input{Prompt: prompt, Catalogue: s, Lexical: u.Lexical})
	clf := &u.Decision.Classification

	index := matcher.Build(s.Agents, matcher.DefaultWeights(), s.Routing.ThresholdHundredths())
	live := make(matcher.Live, len(s.Agents))
	query := matcher.Query{
		Intent: clf.Intent, Domains: clf.Domains, PromptBytes: len(prompt), Caller: caller,
		Confidence: clf.Confidence, MinConfidence: classifier.MinConfidence(s.Routing, clf.Source),
	}
	var result matcher.Result
	index.Nearest(&query, live, &result)
	for i := range result.N {
		u.Decision.Candidates = append(u.Decision.Candidates, index.Describe(&result.Candidates[i], &query, live))
	}
	return u
}

// An empty list is encoded as [], not as null.
func TestUnsupported_EncodesEmptyLists(t *testing.T) {
	answer := fallback.Unsupported(newUnmet(t, registry(), "tell me a joke", fallback.ReasonNoMatch, callerOf()))
	const want = `{"reason":"no_match","detail":"you may not use any agent here: ask the operator for access","needed":{"score":0.65,"confidence":0.5},` +
		`"nearest":[],"accepted_intents":[],"accepted_domains":[],"examples":[]}`
	ours, err := strictjson.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string][]byte{"strictjson": ours, "encoding/json": theirs} {
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
