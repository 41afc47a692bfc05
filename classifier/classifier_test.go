package classifier_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical"
)

// named returns the origins of domains that a text names.
func named(domains ...string) (origins []contract.DomainOrigin) {
	for _, d := range domains {
		origins = append(origins, contract.DomainOrigin{Domain: d, Origin: contract.DomainNamed})
	}
	return origins
}

// TestClassify_Lexical checks one complete classification.
func TestClassify_Lexical(t *testing.T) {
	got := newClassifier(t).Classify(t.Context(), input(sourceRegistry(), "Please do a code review of this python module"))
	want := contract.Classification{
		Intent: "code_review", Domains: []string{"python"}, Subtasks: []contract.Subtask{},
		DomainOrigins: named("python"), Source: contract.SourceLexical, LatencyMS: 1.5,
	}
	if got.Confidence < 0.9 || len(got.Alternatives) == 0 || got.Alternatives[0].Confidence > 0.1 {
		t.Errorf("got confidence %v and alternatives %v, want a confident intent", got.Confidence, got.Alternatives)
	}
	got.Confidence, got.Alternatives = 0, nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("classification (-want +got):\n%s", diff)
	}
}

// TestClassify_Subtasks checks one complete classification with subtasks.
func TestClassify_Subtasks(t *testing.T) {
	prompt := "Review this python code and do a cost analysis of azure"
	got := newClassifier(t).Classify(t.Context(), input(sourceRegistry(), prompt))
	want := contract.Classification{
		Intent: "code_review", Domains: []string{"python", "azure"},
		Subtasks: []contract.Subtask{
			{Title: "Review this python code", Intent: "code_review", Domains: []string{"python"}, DomainOrigins: named("python")},
			{Title: "do a cost analysis of azure", Intent: "cost_analysis", Domains: []string{"azure"}, DomainOrigins: named("azure")},
		},
		DomainOrigins: named("python", "azure"), Source: contract.SourceLexical, LatencyMS: 1.5,
	}
	for i := range got.Subtasks {
		if reason := got.Subtasks[i].Reason; reason != "asked for by itself, confidence 1.00" && !strings.HasPrefix(reason, "asked for by itself, confidence 0.9") {
			t.Errorf("got reason %q, want none", reason)
		}
		if got.Subtasks[i].Confidence < 0.9 || len(got.Subtasks[i].Alternatives) == 0 {
			t.Errorf("got %+v, want a confident subtask with alternatives", got.Subtasks[i])
		}
		got.Subtasks[i].Reason, got.Subtasks[i].Confidence, got.Subtasks[i].Alternatives = "", 0, nil
	}
	if got.Confidence < 0.8 {
		t.Errorf("got confidence %v, want at least 0.8", got.Confidence)
	}
	got.Confidence = 0
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("classification (-want +got):\n%s", diff)
	}
}

func TestClassify_EmptyRegistry(t *testing.T) {
	want := contract.Classification{
		Intent: contract.Unknown, Domains: []string{}, Subtasks: []contract.Subtask{},
		Source: contract.SourceLexical, Reason: classifier.ReasonEmptyRegistry, LatencyMS: 1.5,
	}
	for name, in := range map[string]classifier.Input{
		"no agents":   input(snapshot(), "review this python code"),
		"no registry": {Prompt: "review this python code"},
		"no model":    {Prompt: "review this python code", Catalogue: sourceRegistry()},
	} {
		if diff := cmp.Diff(want, newClassifier(t).Classify(t.Context(), in)); diff != "" {
			t.Errorf("%s: classification (-want +got):\n%s", name, diff)
		}
	}
}

func TestClassify_Domains(t *testing.T) {
	tests := []struct {
		name, prompt string
		want         contract.Classification
	}{
		{"no domain", "review this code", contract.Classification{Intent: "code_review", Domains: []string{contract.Unknown}}},
		{"no label", "tell me a joke", contract.Classification{Intent: contract.Unknown, Domains: []string{}}},
		{"domain only", "python jokes", contract.Classification{Intent: contract.Unknown, Domains: []string{"python"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := newClassifier(t).Classify(t.Context(), input(sourceRegistry(), tt.prompt))
			if diff := cmp.Diff(render(&tt.want), render(&got)); diff != "" {
				t.Errorf("classification (-want +got):\n%s", diff)
			}
		})
	}
}

// TestClassify_UnknownHasLowConfidence checks that the confidence of an unknown intent is that of
// the best intent, so that no gate accepts it.
func TestClassify_UnknownHasLowConfidence(t *testing.T) {
	s := snapshot(&contract.RegistryEntry{ID: "a", Match: contract.Match{Intent: []string{"quarterly_tax_report"}, Domains: []string{"azure"}}})
	got := newClassifier(t).Classify(t.Context(), input(s, "a report on azure"))
	if got.Intent != contract.Unknown || got.Confidence >= classifier.MinConfidence(s.Routing, got.Source) {
		t.Errorf("got %s with %v, want unknown below the threshold", got.Intent, got.Confidence)
	}
	if len(got.Alternatives) != 1 || got.Alternatives[0].Intent != "quarterly_tax_report" {
		t.Errorf("got alternatives %v, want the nearest intent", got.Alternatives)
	}
}

func TestMinConfidence(t *testing.T) {
	half := 0.42
	tests := []struct {
		name    string
		routing capabilities.Routing
		source  contract.Source
		want    float64
	}{
		{"configured", capabilities.Routing{MinConfidence: &half, ConfidenceThreshold: 0.65}, contract.SourceLLM, 0.42},
		{"configured, lexical", capabilities.Routing{MinConfidence: &half}, contract.SourceLexical, 0.42},
		{"lexical", capabilities.Routing{ConfidenceThreshold: 0.65}, contract.SourceLexical, 0.5},
		{"pinned", capabilities.Routing{ConfidenceThreshold: 0.65}, contract.SourcePinned, 0.5},
		{"a model", capabilities.Routing{ConfidenceThreshold: 0.65}, contract.SourceLLM, 0.65},
		{"cached model reply", capabilities.Routing{ConfidenceThreshold: 0.65}, contract.SourceCache, 0.65},
		{"threshold above 1", capabilities.Routing{ConfidenceThreshold: 1.1}, contract.SourceLLM, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := classifier.MinConfidence(tt.routing, tt.source); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestBuildCorpus(t *testing.T) {
	s := snapshot(
		&contract.RegistryEntry{
			ID: "a", Match: contract.Match{Intent: []string{"x", "unknown"}, Domains: []string{"*", "go", "unknown"}},
			Description: "Does x", NotFor: []string{"z"},
			Examples: map[string][]string{"x": {"do x"}, "undeclared": {"never"}}, Keywords: []string{"k"},
		},
		&contract.RegistryEntry{
			ID: "b", Match: contract.Match{Intent: []string{"y", "x"}, Domains: []string{"go"}},
			Examples: map[string][]string{"x": {"make x"}, "y": {"do y"}}, Keywords: []string{"l"},
		},
	)
	want := lexical.Corpus{
		Intents: []lexical.IntentDoc{
			{
				Name: "x", Examples: []string{"do x", "make x"}, Keywords: []string{"k", "l"}, Agents: []string{"a", "b"},
				Descriptions: []string{"Does x"}, NotFor: []string{"z"}, Domains: []string{"*", "go", "unknown", "go"},
			},
			{Name: "y", Examples: []string{"do y"}, Keywords: []string{"l"}, Agents: []string{"b"}, Domains: []string{"go"}},
		},
		Domains: []string{"go"},
	}
	if diff := cmp.Diff(want, classifier.BuildCorpus(s)); diff != "" {
		t.Errorf("corpus (-want +got):\n%s", diff)
	}
}

// TestClassify_Concurrent checks that a classifier and a lexical model are safe
// for concurrent use.
func TestClassify_Concurrent(t *testing.T) {
	c, err := classifier.New(classifier.Config{})
	if err != nil {
		t.Fatal(err)
	}
	in := input(exampleRegistry(), "Review this python code and do a cost analysis of our azure bill")
	want := c.Classify(t.Context(), in)
	results := make(chan string)
	for range 8 {
		go func() {
			got := c.Classify(t.Context(), in)
			results <- render(&got)
		}()
	}
	for range 8 {
		if diff := cmp.Diff(render(&want), <-results); diff != "" {
			t.Errorf("classification (-want +got):\n%s", diff)
		}
	}
}

func BenchmarkClassify(b *testing.B) {
	c := newClassifier(b)
	for name, prompt := range map[string]string{
		"one":    "Please do a code review of this python module",
		"two":    "Review this python code and do a cost analysis of our azure bill",
		"none":   "tell me a joke",
		"64 KiB": strings.Repeat("Review this python code and do a cost analysis. ", contract.MaxPromptBytes/48),
		"code":   "Review this:\n```\n" + strings.Repeat("azure.cost(); // and docs\n", contract.MaxPromptBytes/27),
	} {
		in := input(exampleRegistry(), prompt)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.Classify(b.Context(), in)
			}
		})
	}
}
