package classifier_test

import (
	"context"
	"testing"
	"time"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/llm/openai"
	"github.com/caprouter/caprouter/internal/testkit/fakellm"
)

// asModel adapts a provider to Model.
type asModel struct{ from llm.Provider }

func (asModel) Provider() string { return "openai" }
func (asModel) Model() string    { return fakellm.OpenAIModel }

func (m asModel) Generate(ctx context.Context, req *llm.Request) (*llm.Reply, error) {
	return m.from.Generate(ctx, req)
}

// TestReply_AllCases sends every reply case through a real provider and the classifier: either the
// reply is accepted, or the lexical result is used with the expected reason.
func TestReply_AllCases(t *testing.T) {
	s := sourceRegistry()
	in := input(s, "review this python code")
	for _, scripted := range fakellm.ReplyCases() {
		t.Run(scripted.Name, func(t *testing.T) {
			server := fakellm.Start(t, fakellm.Config{Protocol: fakellm.OpenAI, Script: fakellm.Always(scripted.Behaviour)})
			provider, err := openai.New(llm.Config{Provider: "openai", Model: server.Model, BaseURL: server.URL, APIKey: llm.NewSecret(server.Key)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = provider.Close() })
			cfg := classifier.Config{Model: asModel{provider}, Timeout: time.Minute, Cache: classifier.CacheConfig{Entries: 1}}
			if scripted.Endless {
				cfg.Timeout = 30 * time.Millisecond
			}
			c := open(t, cfg)
			clf := c.Classify(t.Context(), in)
			checkReply(t, s, &clf)
			if !scripted.Accepts(clf.Reason) {
				t.Errorf("got reason %q, want %q or one of %q: %+v", clf.Reason, scripted.WantReason, scripted.WantAlso, clf.Calls)
			}
			want := contract.SourceLexical
			if clf.Reason == "" {
				want = contract.SourceLLM
				if clf.Intent != scripted.WantIntent {
					t.Errorf("got intent %q, want %q", clf.Intent, scripted.WantIntent)
				}
			}
			if clf.Source != want {
				t.Errorf("got source %s, want %s", clf.Source, want)
			}
			if n := server.Calls(); n > 2 {
				t.Errorf("got %d calls, want at most 2", n)
			}
			// Only accepted replies are cached.
			if clf.Reason != "" || scripted.Endless {
				return
			}
			if again := c.Classify(t.Context(), in); again.Source != contract.SourceCache {
				t.Errorf("second call: got source %s, want cache", again.Source)
			}
		})
	}
}
