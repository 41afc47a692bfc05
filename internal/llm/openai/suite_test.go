package openai_test

import (
	"testing"

	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/llm/openai"
	"github.com/caprouter/caprouter/internal/testkit/fakellm"
)

func TestProvider_Suite(t *testing.T) {
	provider := func(t *testing.T, s *fakellm.Server) llm.Provider { return open(t, s) }
	fakellm.Suite(t, fakellm.OpenAI, provider)
	fakellm.ClientSuite(t, fakellm.OpenAI, provider)
}

// open returns the provider for a fake server, with a changed configuration.
func open(t testing.TB, s *fakellm.Server, change ...func(*llm.Config)) *openai.Provider {
	t.Helper()
	cfg := llm.Config{Provider: "openai", Model: s.Model, BaseURL: s.URL, APIKey: llm.NewSecret(s.Key)}
	for _, f := range change {
		f(&cfg)
	}
	p, err := openai.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}
