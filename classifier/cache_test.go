package classifier_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/prompts"
)

// manualClock is a clock that a test advances.
type manualClock struct {
	mu  sync.Mutex
	now time.Time
}

func newManualClock() *manualClock {
	return &manualClock{now: time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)}
}

func (s *manualClock) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *manualClock) advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

// TestCache_Hit checks the result of a cache hit: it equals the first one, and the model is not
// called.
func TestCache_Hit(t *testing.T) {
	m := &fakeModel{do: replyTexts(strings.Replace(goodReply, "[],", `[{"title":"A","domains":["docs"]},{"title":"B"}],`, 1))}
	c := open(t, classifier.Config{Model: m, Now: newManualClock().Now, Cache: classifier.CacheConfig{Entries: 10, TTL: time.Minute}})
	in := input(sourceRegistry(), "review this python code")
	first := c.Classify(t.Context(), in)
	want := first
	want.Source = contract.SourceCache
	want.ModelUse = &contract.ModelUse{Provider: "fake", Model: "fake-1", PromptVersion: prompts.RouterVersion, Calls: []contract.ModelCall{}}
	if diff := cmp.Diff(want, c.Classify(t.Context(), in)); diff != "" {
		t.Errorf("hit (-want +got):\n%s", diff)
	}
	if n := m.calls(); n != 1 {
		t.Errorf("got %d calls, want 1", n)
	}
}

// TestCache_Key checks which changes of the input change the key.
func TestCache_Key(t *testing.T) {
	base := func() classifier.Input {
		s := sourceRegistry()
		s.Version = "sha256:1"
		in := input(s, "review this python code")
		in.Locale = "en"
		in.History = []contract.Turn{{Role: "user", Content: "hello"}, {Role: "assistant", Content: "hi"}}
		return in
	}
	turns := func(n int, first string) []contract.Turn {
		list := make([]contract.Turn, n)
		for i := range list {
			list[i] = contract.Turn{Role: "user", Content: fmt.Sprint("turn ", n-i)}
		}
		list[0].Content = first
		return list
	}
	tests := []struct {
		name   string
		before func(*classifier.Input)
		change func(*classifier.Input)
		hit    bool
	}{
		{"same input", nil, func(*classifier.Input) {}, true},
		{"another snapshot of the same version", nil, func(in *classifier.Input) {
			s := *in.Catalogue
			in.Catalogue = &s
		}, true},
		{"another prompt", nil, func(in *classifier.Input) { in.Prompt += "." }, false},
		{"another partition", nil, func(in *classifier.Input) { in.Partition = "tenant south" }, false},
		{"partition moved into the locale", nil, func(in *classifier.Input) { in.Partition, in.Locale = "e", "n" }, false},
		{"another locale", nil, func(in *classifier.Input) { in.Locale = "pt-BR" }, false},
		{"another registry", nil, func(in *classifier.Input) {
			s := *in.Catalogue
			s.Version = "sha256:2"
			in.Catalogue = &s
		}, false},
		{"no history", nil, func(in *classifier.Input) { in.History = nil }, false},
		{"another turn", nil, func(in *classifier.Input) { in.History = append(in.History, contract.Turn{Role: "user", Content: "x"}) }, false},
		{"another role", nil, func(in *classifier.Input) { in.History[0].Role = "assistant" }, false},
		{"another content", nil, func(in *classifier.Input) { in.History[1].Content = "HI" }, false},
		{"boundary between turns moved", nil, func(in *classifier.Input) {
			in.History[0].Content, in.History[1].Role = "helloa", "ssistant"
		}, false},
		{"locale moved into the prompt", nil, func(in *classifier.Input) { in.Locale, in.Prompt = "", "en"+in.Prompt }, false},
		{
			"17th last turn changed", func(in *classifier.Input) { in.History = turns(17, "a") },
			func(in *classifier.Input) { in.History = turns(17, "b") }, true,
		},
		{
			"16th last turn changed", func(in *classifier.Input) { in.History = turns(16, "a") },
			func(in *classifier.Input) { in.History = turns(16, "b") }, false,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := &fakeModel{do: replyTexts(goodReply)}
			c := open(t, classifier.Config{Model: m, Cache: classifier.CacheConfig{Entries: 10}})
			in, other := base(), base()
			if tt.before != nil {
				tt.before(&in)
			}
			tt.change(&other)
			c.Classify(t.Context(), in)
			if got := c.Classify(t.Context(), other).Source == contract.SourceCache; got != tt.hit {
				t.Errorf("got hit %v, want %v", got, tt.hit)
			}
			if got := c.Classify(t.Context(), in).Source; got != contract.SourceCache {
				t.Errorf("first input again: got %s, want cache", got)
			}
		})
	}
}

// TestCache_KeyIsUnique checks that different histories have different keys.
func TestCache_KeyIsUnique(t *testing.T) {
	word := rapid.SampledFrom([]string{"", "a", "b", "ab", "user", "\x00", "\x01a"})
	turns := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) contract.Turn {
		return contract.Turn{Role: word.Draw(t, "role"), Content: word.Draw(t, "content")}
	}), 0, 3)
	s := sourceRegistry()
	words := input(s, "").Lexical
	rapid.Check(t, func(rt *rapid.T) {
		draw := func(label string) classifier.Input {
			return classifier.Input{
				Prompt: word.Draw(rt, label), Locale: word.Draw(rt, label), History: turns.Draw(rt, label), Catalogue: s, Lexical: words,
			}
		}
		a, b := draw("a"), draw("b")
		c := open(t, classifier.Config{Model: &fakeModel{do: replyTexts(goodReply)}, Cache: classifier.CacheConfig{Entries: 10}})
		c.Classify(t.Context(), a)
		same := a.Prompt == b.Prompt && a.Locale == b.Locale && cmp.Equal(append([]contract.Turn{}, a.History...), append([]contract.Turn{}, b.History...))
		if got := c.Classify(t.Context(), b).Source == contract.SourceCache; got != same {
			t.Errorf("got hit %v for %+v after %+v, want %v", got, b, a, same)
		}
	})
}

// TestCache_Expiry checks that entries expire with a TTL, and do not expire without one.
func TestCache_Expiry(t *testing.T) {
	for _, tt := range []struct {
		ttl, after time.Duration
		want       contract.Source
	}{
		{time.Minute, 59 * time.Second, contract.SourceCache},
		{time.Minute, time.Minute, contract.SourceLLM},
		{0, 1000 * time.Hour, contract.SourceCache},
	} {
		t.Run(fmt.Sprintf("%s after %s", tt.ttl, tt.after), func(t *testing.T) {
			clock := newManualClock()
			c := open(t, classifier.Config{
				Model: &fakeModel{do: replyTexts(goodReply)}, Now: clock.Now, Cache: classifier.CacheConfig{Entries: 10, TTL: tt.ttl},
			})
			in := input(sourceRegistry(), "review this python code")
			c.Classify(t.Context(), in)
			clock.advance(tt.after)
			if got := c.Classify(t.Context(), in).Source; got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// TestCache_IsBounded checks that the number of entries is bounded.
func TestCache_IsBounded(t *testing.T) {
	m := &fakeModel{do: replyTexts(goodReply)}
	c := open(t, classifier.Config{Model: m, Cache: classifier.CacheConfig{Entries: 5}})
	in := input(sourceRegistry(), "")
	const questions = 100
	for range 2 {
		for i := range questions {
			in.Prompt = fmt.Sprint("question ", i)
			c.Classify(t.Context(), in)
		}
	}
	if n := m.calls(); n < 2*questions-10 {
		t.Errorf("got %d calls for %d prompts sent twice, want nearly two for each", n, questions)
	}
}

// TestCache_StoresOnlyModelReplies checks that failures, fallbacks and lexical
// results are not cached.
func TestCache_StoresOnlyModelReplies(t *testing.T) {
	for name, do := range map[string]script{
		"error":         failWith(&llm.Error{Reason: llm.ReasonUnavailable}),
		"invalid reply": replyTexts("nonsense"),
		"empty reply":   replyTexts(""),
	} {
		m := &fakeModel{do: do}
		c := open(t, classifier.Config{Model: m, Cache: classifier.CacheConfig{Entries: 10}})
		in := input(sourceRegistry(), "review this python code")
		for range 2 {
			if got := c.Classify(t.Context(), in); got.Source != contract.SourceLexical {
				t.Errorf("%s: got %s, want lexical", name, got.Source)
			}
		}
		m.do = replyTexts(goodReply)
		if got := c.Classify(t.Context(), in); got.Source != contract.SourceLLM {
			t.Errorf("%s: after the recovery: got %s, want llm", name, got.Source)
		}
	}
}

// TestCache_EntriesAreCopied checks that a caller that modifies its result does
// not affect others.
func TestCache_EntriesAreCopied(t *testing.T) {
	reply := strings.Replace(goodReply, "[],", `[{"title":"A","intent":"code_review","domains":["docs"]}],`, 1)
	m := &fakeModel{do: replyTexts(reply)}
	for _, entries := range []int{0, 10} {
		c := open(t, classifier.Config{Model: m, Now: newManualClock().Now, Cache: classifier.CacheConfig{Entries: entries}})
		in := input(sourceRegistry(), "review this python code")
		want := render(new(c.Classify(t.Context(), in)))
		for range 3 {
			got := c.Classify(t.Context(), in)
			if diff := cmp.Diff(want, render(&got)); diff != "" {
				t.Errorf("%d entries: classification (-want +got):\n%s", entries, diff)
			}
			got.Domains[0], got.Subtasks[0].Domains[0], got.Subtasks[0].Title = "x", "x", "x"
			got.Subtasks = append(got.Subtasks[:0], contract.Subtask{Title: "y"})
			if len(got.Calls) > 0 {
				got.Calls[0].Outcome = "x"
			}
			got.Model = "x"
		}
	}
}

// TestCache_RegistryReload checks that a hit belongs to the registry version of the call.
func TestCache_RegistryReload(t *testing.T) {
	m := &fakeModel{do: replyTexts(goodReply)}
	c := open(t, classifier.Config{Model: m, Cache: classifier.CacheConfig{Entries: 10}})
	before := sourceRegistry()
	before.Version = "1"
	after := snapshot(&contract.RegistryEntry{ID: "billing_agent", Match: contract.Match{Intent: []string{"cost_analysis"}, Domains: []string{"azure"}}})
	after.Version = "2"
	for _, tt := range []struct {
		registry *capabilities.Catalogue
		want     contract.Source
	}{{before, contract.SourceLLM}, {after, contract.SourceLexical}, {before, contract.SourceCache}} {
		clf := c.Classify(t.Context(), input(tt.registry, "review this python code"))
		if clf.Source != tt.want {
			t.Errorf("registry %s: got %s, want %s", tt.registry.Version, clf.Source, tt.want)
		}
		checkLabels(t, tt.registry, clf.Intent, clf.Domains)
	}
}
