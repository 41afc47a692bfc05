package classifier_test

import (
	"strings"
	"testing"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
)

// BenchmarkClassify_Modes compares a cached, a lexical and a model
// classification; the model replies at once, which leaves the overhead.
func BenchmarkClassify_Modes(b *testing.B) {
	reply := strings.Replace(goodReply, "[],", `[{"title":"A","intent":"code_review","domains":["python"]}],`, 1)
	long := "review this python code. " + strings.Repeat("Here is more of what it is about. ", 200)
	for _, bb := range []struct {
		name    string
		mode    string
		entries int
		prompt  string
		history int
	}{
		{"cache", classifier.ModeLLM, 100, "review this python code", 0},
		{"cache, 7 KB", classifier.ModeLLM, 100, long, 0},
		{"cache, 16 turns of 7 KB", classifier.ModeLLM, 100, long, 16},
		{"lexical", classifier.ModeLexical, 0, "review this python code", 0},
		{"lexical, 7 KB", classifier.ModeLexical, 0, long, 0},
		{"model", classifier.ModeLLM, 0, "review this python code", 0},
	} {
		b.Run(bb.name, func(b *testing.B) {
			m := &fakeModel{do: replyTexts(reply)}
			c := open(b, classifier.Config{Mode: bb.mode, Model: m, Cache: classifier.CacheConfig{Entries: bb.entries}})
			in := input(exampleRegistry(), bb.prompt)
			for range bb.history {
				in.History = append(in.History, contract.Turn{Role: "user", Content: long})
			}
			c.Classify(b.Context(), in)
			b.ReportAllocs()
			for b.Loop() {
				c.Classify(b.Context(), in)
				m.requests = m.requests[:0]
			}
		})
	}
}

// BenchmarkShortlist classifies with a registry of 1,000 agents.
func BenchmarkShortlist(b *testing.B) {
	m := &fakeModel{do: replyTexts(`{"intent":"unknown","domains":[],"confidence":0}`)}
	c := open(b, classifier.Config{Model: m})
	in := input(manyAgents(1000), "do aaa in domaaa")
	b.ReportAllocs()
	for b.Loop() {
		c.Classify(b.Context(), in)
		m.requests = m.requests[:0]
	}
}
