package fallback_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
)

func TestUnsupported_PicksExamples(t *testing.T) {
	tests := []struct {
		name   string
		caller *contract.Caller
		prompt string
		near   []contract.Candidate
		want   []string
	}{
		{
			"nearest first, then one for each intent", local, "check the function", nil,
			[]string{"check this function for bugs", "why did our cloud bill go up", "review my pull request", "find our vacation policy", "what do the docs say about retries"},
		},
		{
			"nearest agent first", local, "prompt",
			[]contract.Candidate{nearMiss("rag_agent", 0, 0.3, 0, "docs")},
			[]string{"find our vacation policy", "what do the docs say about retries", "why did our cloud bill go up", "review my pull request"},
		},
		{"agents of the caller only", callerOf("billing_agent"), "check the function for bugs", nil, []string{"why did our cloud bill go up"}},
		{"none", callerOf(), "check the function for bugs", nil, []string{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := fallback.Unsupported(unmet(registry(), tt.caller, tt.prompt, fallback.ReasonNoMatch, contract.Classification{Intent: contract.Unknown}, tt.near...))
			if diff := cmp.Diff(tt.want, got.Examples); diff != "" {
				t.Errorf("examples (-want +got):\n%s", diff)
			}
		})
	}
}

// The detail names the nearest intent, so the examples begin with one of it.
func TestUnsupported_BeginsWithExampleOfNearestIntent(t *testing.T) {
	for confidence, want := range map[float64]string{0.39: "what do the docs say about retries", 0.1: "why did our cloud bill go up"} {
		got := fallback.Unsupported(unmet(registry(), local, "prompt", fallback.ReasonNoMatch, contract.Classification{
			Intent: contract.Unknown, Alternatives: []contract.IntentScore{{Intent: "doc_answering", Confidence: confidence}},
		}))
		if named := strings.Contains(got.Detail, "doc_answering is the nearest"); len(got.Examples) == 0 || got.Examples[0] != want || named != (confidence > 0.3) {
			t.Errorf("confidence %v: got %q with the examples %q, want %q first", confidence, got.Detail, got.Examples, want)
		}
	}
}

// An example is listed only if an agent of the caller declares it itself, even if another agent
// declares the same intent.
func TestUnsupported_HidesExamplesOfSharedIntent(t *testing.T) {
	s := snapshot(
		&contract.RegistryEntry{
			ID: "mine", Match: contract.Match{Intent: []string{"code_review"}, Domains: []string{"*", "go"}},
			Examples: map[string][]string{"code_review": {"review my code"}},
		},
		&contract.RegistryEntry{
			ID: "theirs", Match: contract.Match{Intent: []string{"code_review"}, Domains: []string{"secret"}},
			Examples: map[string][]string{"code_review": {"review the secret code"}},
		},
	)
	got := fallback.Unsupported(unmet(s, callerOf("mine"), "review the secret code", fallback.ReasonNoMatch, contract.Classification{Intent: "code_review"},
		nearMiss("theirs", 0.5, 0, 0, ""), nearMiss("mine", 0.5, 0, 0, "")))
	want := &contract.Unsupported{
		Reason:          "no_match",
		Detail:          "the request names no subject that is served here: name one of go",
		Needed:          contract.Needed{Score: 0.65, Confidence: 0.5},
		Nearest:         []contract.NearestMiss{{AgentID: "mine", Score: 0.5, MissingScore: 0.15, Gates: []contract.Gate{}}},
		AcceptedIntents: []string{"code_review"},
		AcceptedDomains: []string{"go"},
		Examples:        []string{"review my code"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}
