package fallback_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
	"github.com/caprouter/caprouter/internal/lexical"
)

// TestUnsupported_ExplainsRefusal compares one complete answer.
func TestUnsupported_ExplainsRefusal(t *testing.T) {
	below := contract.Gate{Gate: "threshold", Reason: "score 0.50 is below the threshold 0.65"}
	clf := contract.Classification{Intent: "code_review", Domains: []string{"unknown"}, Confidence: 1}
	got := fallback.Unsupported(unmet(registry(), local, "review this request", fallback.ReasonNoMatch, clf,
		nearMiss("quality_agent", 0.5, 0, 0, "", below)))
	want := &contract.Unsupported{
		Reason:          "no_match",
		Detail:          "the request names no subject that is served here: name one of databricks, python, semaforo",
		Needed:          contract.Needed{Score: 0.65, Confidence: 0.5},
		Nearest:         []contract.NearestMiss{{AgentID: "quality_agent", Score: 0.5, MissingScore: 0.15, Gates: []contract.Gate{below}}},
		AcceptedIntents: []string{"code_review", "cost_analysis", "databricks_review", "doc_answering", "retrieval_qa", "serverless_review"},
		AcceptedDomains: []string{"azure", "databricks", "docs", "kb_internal", "python", "semaforo"},
		Examples:        []string{"review my pull request", "why did our cloud bill go up", "find our vacation policy", "what do the docs say about retries"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}

func TestUnsupported_Detail(t *testing.T) {
	state := contract.Gate{Gate: "state", Reason: "breaker open for another 7 s"}
	scopes := contract.Gate{Gate: "scopes", Reason: "needs scope repo:read"}
	unknown := contract.Classification{Intent: contract.Unknown}
	tests := []struct {
		name   string
		caller *contract.Caller
		reason string
		clf    contract.Classification
		near   []contract.Candidate
		want   string
	}{
		{
			name: "prompt too long", reason: fallback.ReasonNoMatch, clf: contract.Classification{Intent: "code_review"},
			near: []contract.Candidate{nearMiss("quality_agent", 0.5, 0.3, -0.2, "python")},
			want: "the request is too long: shorten it to about 32000 characters",
		},
		{
			name: "prompt too long, domain missing", reason: fallback.ReasonNoMatch, clf: contract.Classification{Intent: "code_review"},
			near: []contract.Candidate{nearMiss("quality_agent", 0.5, 0, -0.2, "")},
			want: "the request is too long: shorten it to about 32000 characters; the request names no subject that is served here: name one of databricks, python, semaforo",
		},
		{
			name: "intent missing", reason: fallback.ReasonNoMatch, clf: unknown,
			near: []contract.Candidate{nearMiss("rag_agent", 0, 0.6, 0, "docs kb_internal"), nearMiss("quality_agent", 0, 0.3, 0, "python")},
			want: "it is not clear what is to be done: ask for one of doc_answering, retrieval_qa",
		},
		{
			name: "intent missing, two agents equally near", reason: fallback.ReasonNoMatch, clf: unknown,
			near: []contract.Candidate{nearMiss("rag_agent", 0, 0.3, 0, "docs"), nearMiss("quality_agent", 0, 0.3, 0, "python")},
			want: "it is not clear what is to be done: ask for one of code_review, databricks_review, doc_answering, retrieval_qa, serverless_review",
		},
		{
			name: "intent missing, caller may use one of two agents", reason: fallback.ReasonNoMatch, clf: unknown, caller: callerOf("rag_agent"),
			near: []contract.Candidate{nearMiss("rag_agent", 0, 0.3, 0, "docs"), nearMiss("quality_agent", 0, 0.3, 0, "python")},
			want: "it is not clear what is to be done: ask for one of doc_answering, retrieval_qa",
		},
		{
			name: "out of scope", reason: fallback.ReasonNoMatch, clf: unknown,
			want: "no agent here serves such a request: ask for one of code_review, cost_analysis, databricks_review, doc_answering, retrieval_qa, serverless_review",
		},
		{
			name: "out of scope, near miss", reason: fallback.ReasonNoMatch, caller: callerOf("rag_agent"),
			clf:  contract.Classification{Intent: contract.Unknown, Alternatives: []contract.IntentScore{{Intent: "code_review", Confidence: 0.4}, {Intent: "retrieval_qa", Confidence: 0.3}}},
			want: "no agent that you may use serves this request; retrieval_qa is the nearest: ask for one of doc_answering, retrieval_qa",
		},
		{
			name: "out of scope, no near miss", reason: fallback.ReasonNoMatch, caller: callerOf("rag_agent"),
			clf:  contract.Classification{Intent: contract.Unknown, Alternatives: []contract.IntentScore{{Intent: "retrieval_qa", Confidence: 0.29}}},
			want: "no agent that you may use serves this request: ask for one of doc_answering, retrieval_qa",
		},
		{
			name: "known intent, only hidden near misses", reason: fallback.ReasonNoMatch, caller: callerOf("rag_agent"), clf: contract.Classification{Intent: "code_review"},
			near: []contract.Candidate{nearMiss("quality_agent", 0.5, 0, 0, "")},
			want: "no agent that you may use serves this request: ask for one of doc_answering, retrieval_qa",
		},
		{
			name: "no reason against the agent", reason: fallback.ReasonNoMatch, clf: contract.Classification{Intent: "code_review"},
			near: []contract.Candidate{nearMiss("quality_agent", 0.5, 0.3, 0, "python", state)},
			want: "quality_agent fits the request but may not take it: breaker open for another 7 s",
		},
		{
			name: "low confidence", reason: fallback.ReasonLowConfidence, caller: callerOf("quality_agent"),
			clf:  contract.Classification{Intent: "code_review", Confidence: 0.4, Source: contract.SourceLLM},
			near: []contract.Candidate{nearMiss("quality_agent", 0.5, 0.3, 0, "python")},
			want: "it is not clear enough that the request asks for code_review: describe it more exactly, or ask for one of code_review, databricks_review, serverless_review",
		},
		{
			name: "low confidence, hidden intent", reason: fallback.ReasonLowConfidence, caller: callerOf("rag_agent"),
			clf:  contract.Classification{Intent: "code_review", Confidence: 0.4},
			want: "it is not clear enough what is to be done: describe it more exactly, or ask for one of doc_answering, retrieval_qa",
		},
		{
			name: "ambiguous", reason: fallback.ReasonAmbiguous,
			clf:  contract.Classification{Intent: "code_review", Confidence: 0.5, Alternatives: []contract.IntentScore{{Intent: "cost_analysis", Confidence: 0.45}}},
			want: "the request can mean code_review or cost_analysis: say which one is meant",
		},
		{
			name: "ambiguous, one intent hidden", reason: fallback.ReasonAmbiguous, caller: callerOf("quality_agent"),
			clf:  contract.Classification{Intent: "code_review", Confidence: 0.5, Alternatives: []contract.IntentScore{{Intent: "cost_analysis", Confidence: 0.45}}},
			want: "the request can be understood in several ways: say which of these is meant: code_review, databricks_review, serverless_review",
		},
		{
			name: "divergent", reason: fallback.ReasonDivergent,
			clf:  contract.Classification{Intent: "code_review", Subtasks: []contract.Subtask{{Intent: "code_review"}, {Intent: "cost_analysis"}, {Intent: "code_review"}}},
			want: "the request asks for several things (code_review, cost_analysis), and requests are not split here: send one request for each",
		},
		{
			name: "divergent, one part hidden", reason: fallback.ReasonDivergent, caller: callerOf("billing_agent"),
			clf:  contract.Classification{Intent: "code_review", Subtasks: []contract.Subtask{{Intent: "code_review"}, {Intent: "cost_analysis"}}},
			want: "the request asks for several things, and requests are not split here: send one request for each",
		},
		{
			name: "not entitled", reason: fallback.ReasonNotEntitled, caller: callerOf("rag_agent"), clf: contract.Classification{Intent: "code_review"},
			want: "no agent that you may use serves this request: ask for something else, or ask the operator for access to more agents",
		},
		{
			name: "not entitled to any agent", reason: fallback.ReasonNotEntitled, caller: callerOf(), clf: contract.Classification{Intent: "code_review"},
			want: "you may not use any agent here: ask the operator for access",
		},
		{
			name: "gated", reason: fallback.ReasonGated, clf: contract.Classification{Intent: "code_review"},
			near: []contract.Candidate{nearMiss("billing_agent", 0, 0.3, 0, "databricks"), nearMiss("quality_agent", 0.5, 0.3, 0, "python", scopes, state)},
			want: "quality_agent fits the request but may not take it: needs scope repo:read; breaker open for another 7 s",
		},
		{
			name: "gated, hidden", reason: fallback.ReasonGated, clf: contract.Classification{Intent: "code_review"}, caller: callerOf("rag_agent"),
			near: []contract.Candidate{nearMiss("quality_agent", 0.5, 0.3, 0, "python", scopes)},
			want: "the agents that fit the request may not take it",
		},
		{
			name: "another reason", reason: "topk_reached", clf: unknown, caller: callerOf("billing_agent"),
			want: "no agent that you may use serves this request: ask for one of cost_analysis",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.caller == nil {
				tt.caller = local
			}
			got := fallback.Unsupported(unmet(registry(), tt.caller, "prompt", tt.reason, tt.clf, tt.near...))
			if diff := cmp.Diff(tt.want, got.Detail); diff != "" {
				t.Errorf("detail (-want +got):\n%s", diff)
			}
			if got.Reason != tt.reason {
				t.Errorf("got reason %q, want %q", got.Reason, tt.reason)
			}
		})
	}
}

func TestUnsupported_ListsNearMisses(t *testing.T) {
	clf := contract.Classification{Intent: "code_review"}
	list := []contract.Candidate{
		nearMiss("quality_agent", 0.5, 0.1, 0, ""),
		nearMiss("gone_agent", 0.5, 0, 0, ""),
		nearMiss("billing_agent", 0.5, 0.15, 0, ""),
		nearMiss("quality_agent", 0.3, 0, 0, ""),
		nearMiss("rag_agent", 0.5, 0.3, 0, "docs"),
	}
	got := fallback.Unsupported(unmet(registry(), callerOf("quality_agent", "rag_agent", "gone_agent"), "", fallback.ReasonNoMatch, clf, list...))
	want := []contract.NearestMiss{
		{AgentID: "quality_agent", Score: 0.6, MissingScore: 0.05, Gates: []contract.Gate{}},
		{AgentID: "rag_agent", Score: 0.8, MissingScore: 0, Gates: []contract.Gate{}},
	}
	if diff := cmp.Diff(want, got.Nearest); diff != "" {
		t.Errorf("nearest (-want +got):\n%s", diff)
	}
}

// The reading that was not sure enough is that of an agent of the caller, and only if an example
// of the agent would be a remedy.
func TestUnsupported_NearestReading(t *testing.T) {
	unsure := contract.Classification{Intent: contract.Unknown, Alternatives: []contract.IntentScore{
		{Intent: "cost_analysis", Confidence: 0.4}, {Intent: "retrieval_qa", Confidence: 0.3}, {Intent: "code_review", Confidence: 0.1},
	}}
	low := contract.Classification{Intent: "doc_answering", Confidence: 0.35}
	second := &contract.NearestReading{AgentID: "rag_agent", Intent: "retrieval_qa", Confidence: 0.3}
	for name, tc := range map[string]struct {
		caller *contract.Caller
		only   string
		reason string
		clf    contract.Classification
		want   *contract.NearestReading
	}{
		"every agent":                {local, "", fallback.ReasonNoMatch, unsure, &contract.NearestReading{AgentID: "billing_agent", Intent: "cost_analysis", Confidence: 0.4}},
		"second reading":             {callerOf("rag_agent"), "", fallback.ReasonNoMatch, unsure, second},
		"named agent":                {local, "rag_agent", fallback.ReasonNoMatch, unsure, second},
		"named agent without it":     {local, "quality_agent", fallback.ReasonNoMatch, unsure, nil},
		"too unsure":                 {callerOf("quality_agent"), "", fallback.ReasonNoMatch, unsure, nil},
		"no agents":                  {callerOf(), "", fallback.ReasonNoMatch, unsure, nil},
		"low confidence":             {local, "", fallback.ReasonLowConfidence, low, &contract.NearestReading{AgentID: "rag_agent", Intent: "doc_answering", Confidence: 0.35}},
		"low confidence, hidden":     {callerOf("quality_agent"), "", fallback.ReasonLowConfidence, low, nil},
		"understood, without domain": {local, "", fallback.ReasonNoMatch, low, nil},
		"without access":             {local, "", fallback.ReasonGated, unsure, nil},
		"nothing near":               {local, "", fallback.ReasonNoMatch, unknownRequest, nil},
	} {
		u := unmet(registry(), tc.caller, "prompt", tc.reason, tc.clf)
		u.OnlyAgent = tc.only
		if diff := cmp.Diff(tc.want, fallback.Unsupported(u).NearestReading); diff != "" {
			t.Errorf("%s: nearest reading (-want +got):\n%s", name, diff)
		}
	}
}

func TestUnsupported_LimitsLists(t *testing.T) {
	var agents []*contract.RegistryEntry
	var candidates []contract.Candidate
	for i := range 100 {
		id := fmt.Sprintf("agent_%03d", i)
		agents = append(agents, &contract.RegistryEntry{ID: id, Match: contract.Match{Intent: []string{"intent_" + id}, Domains: []string{"domain_" + id}}})
		candidates = append(candidates, nearMiss(id, 0.5, 0, 0, ""))
	}
	got := fallback.Unsupported(unmet(snapshot(agents...), local, "", fallback.ReasonNoMatch, contract.Classification{Intent: contract.Unknown}, candidates...))
	if len(got.AcceptedIntents) != 50 || got.AcceptedIntents[0] != "intent_agent_000" || !slices.IsSorted(got.AcceptedIntents) {
		t.Errorf("got %d accepted intents %q, want the first 50", len(got.AcceptedIntents), got.AcceptedIntents)
	}
	if len(got.AcceptedDomains) != 50 || len(got.Nearest) != 5 {
		t.Errorf("got %d domains and %d near misses, want 50 and 5", len(got.AcceptedDomains), len(got.Nearest))
	}
	low := fallback.Unsupported(unmet(snapshot(agents...), local, "", fallback.ReasonLowConfidence, contract.Classification{Intent: contract.Unknown}))
	if !strings.HasSuffix(low.Detail, "intent_agent_007 and 92 more") {
		t.Errorf("got detail %q, want 8 names and the number of the others", low.Detail)
	}
}

func TestUnsupported_WithoutUsableAgents(t *testing.T) {
	clf := contract.Classification{Intent: contract.Unknown, Reason: "empty_registry"}
	for name, u := range map[string]*fallback.Unmet{
		"no caller":      unmet(registry(), nil, "review", fallback.ReasonNoMatch, clf, nearMiss("quality_agent", 0.5, 0, 0, "")),
		"empty registry": unmet(snapshot(), local, "review", fallback.ReasonNoMatch, clf),
	} {
		u.Lexical = nil
		got := fallback.Unsupported(u)
		want := &contract.Unsupported{
			Reason: "no_match", Detail: got.Detail, Needed: contract.Needed{Score: 0.65, Confidence: 0.5},
			Nearest: []contract.NearestMiss{}, AcceptedIntents: []string{}, AcceptedDomains: []string{}, Examples: []string{},
		}
		if diff := cmp.Diff(want, got); diff != "" || got.Detail == "" {
			t.Errorf("%s: answer (-want +got):\n%s", name, diff)
		}
	}
}

// For any reason, no word of the answer belongs to an agent that the caller may not use.
func TestUnsupported_RevealsNoHiddenAgent(t *testing.T) {
	secret := &contract.RegistryEntry{
		ID: "xx_agent", Match: contract.Match{Intent: []string{"xx_intent"}, Domains: []string{"xx_domain"}},
		Examples: map[string][]string{"xx_intent": {"xx please"}, "code_review": {"xx review"}}, Keywords: []string{"xx"},
	}
	s := snapshot(append(registry().Agents, secret)...)
	model := lexical.Train(classifier.BuildCorpus(s))
	reasons := rapid.SampledFrom([]string{
		fallback.ReasonNoMatch, fallback.ReasonLowConfidence, fallback.ReasonAmbiguous, fallback.ReasonDivergent,
		fallback.ReasonNotEntitled, fallback.ReasonGated, "other",
	})
	intents := rapid.SampledFrom([]string{"xx_intent", "code_review", "cost_analysis", contract.Unknown})
	agents := rapid.SampledFrom([]string{"xx_agent", "quality_agent", "billing_agent"})
	rapid.Check(t, func(t *rapid.T) {
		u := &fallback.Unmet{
			Catalogue: s, Lexical: model, Prompt: "xx please", Reason: reasons.Draw(t, "reason"),
			Caller: callerOf(rapid.SliceOfDistinct(rapid.SampledFrom([]string{"quality_agent", "billing_agent"}), rapid.ID).Draw(t, "scopes")...),
			Decision: &contract.Decision{Classification: contract.Classification{
				Intent:       intents.Draw(t, "intent"),
				Alternatives: []contract.IntentScore{{Intent: intents.Draw(t, "near"), Confidence: 0.4}},
				Subtasks:     []contract.Subtask{{Intent: intents.Draw(t, "first")}, {Intent: intents.Draw(t, "second")}},
			}},
		}
		for range rapid.IntRange(0, 4).Draw(t, "candidates") {
			c := nearMiss(agents.Draw(t, "candidate"), 0.5, 0.3, 0, "")
			if c.AgentID == "xx_agent" {
				c.Gates = []contract.Gate{{Gate: "scopes", Reason: "xx"}}
			}
			u.Decision.Candidates = append(u.Decision.Candidates, c)
		}
		got := fallback.Unsupported(u)
		if text := fmt.Sprintf("%+v", got); strings.Contains(text, "xx") {
			t.Errorf("got an answer with hidden words: %s", text)
		}
		if diff := cmp.Diff(got, fallback.Unsupported(u)); diff != "" {
			t.Errorf("got two different answers (-first +second):\n%s", diff)
		}
		if clf := &u.Decision.Classification; clf.Intent == "xx_intent" {
			clf.Intent = contract.Unknown
			if diff := cmp.Diff(got, fallback.Unsupported(u)); diff != "" {
				t.Errorf("hidden and unknown labels give different answers (-hidden +unknown):\n%s", diff)
			}
		}
	})
}

func BenchmarkUnsupported(b *testing.B) {
	var agents []*contract.RegistryEntry
	for i := range 1000 {
		id := fmt.Sprintf("agent_%d", i)
		agents = append(agents, &contract.RegistryEntry{
			ID: id, Match: contract.Match{Intent: []string{"intent_" + id}, Domains: []string{"domain_" + id}},
			Examples: map[string][]string{"intent_" + id: {"please do thing " + id}},
		})
	}
	slices.SortFunc(agents, func(a, b *contract.RegistryEntry) int { return strings.Compare(a.ID, b.ID) })
	for name, caller := range map[string]*contract.Caller{"all": local, "two": callerOf("agent_7", "agent_8")} {
		u := unmet(snapshot(agents...), caller, "do the thing agent 7", fallback.ReasonNoMatch, contract.Classification{Intent: contract.Unknown}, nearMiss("agent_7", 0.5, 0, 0, ""))
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				fallback.Unsupported(u)
			}
		})
	}
}
