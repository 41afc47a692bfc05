package doctor

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/caprouter/caprouter/internal/app"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/testkit/fakellm"
)

const modelRegistry = `
clients:
  quality_agent: {match: {intent: [code_review], domains: [python]}}
  billing_agent: {match: {intent: [cost_analysis], domains: [azure]}}
`

// noEnv is an environment without variables.
func noEnv(string) (string, bool) { return "", false }

// modelEnv is an environment with the keys of the models.
func modelEnv(name string) (string, bool) {
	if name == "GEMINI_API_KEY" || name == "OPENAI_API_KEY" {
		return fakellm.APIKey, true
	}
	return "", false
}

// useModel configures the fake model.
func useModel(cfg *config.Config, provider string, model *fakellm.Server) {
	cfg.LLM.Provider, cfg.LLM.BaseURL, cfg.LLM.Model = provider, model.URL, model.Model
}

// writeFile writes a file in a directory of its own, and returns its path.
func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// findings diagnoses the configuration and returns the findings by check.
func findings(t *testing.T, cfg config.Config, lookup func(string) (string, bool)) map[string]Finding {
	t.Helper()
	all := map[string]Finding{}
	Run(t.Context(), cfg, app.Options{LookupEnv: lookup}, func(f Finding) { all[f.Check] = f })
	return all
}

func diagnosable(t *testing.T, registry string) config.Config {
	t.Helper()
	cfg := config.Default()
	cfg.Listen, cfg.DataDir = "127.0.0.1:0", filepath.Join(t.TempDir(), "data")
	cfg.Registry.File = writeFile(t, "capabilities.yaml", registry)
	return cfg
}
