package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/auth"
	"github.com/caprouter/caprouter/internal/testkit/fakellm"
)

// findings diagnoses the configuration and returns what it came to, by check.
func findings(t *testing.T, cfg Config, lookup func(string) (string, bool)) map[string]Finding {
	t.Helper()
	all := map[string]Finding{}
	Diagnose(t.Context(), cfg, Options{LookupEnv: lookup}, func(f Finding) { all[f.Check] = f })
	return all
}

func diagnosable(t *testing.T, registry string) Config {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Listen, cfg.DataDir = "127.0.0.1:0", filepath.Join(t.TempDir(), "data")
	cfg.Registry.File = writeFile(t, "capabilities.yaml", registry)
	return cfg
}

// TestDiagnoseLeavesNothingBehind: a directory that is there gets no key, and one
// that is not is not made.
func TestDiagnoseLeavesNothingBehind(t *testing.T) {
	cfg := diagnosable(t, modelRegistry)
	if f := findings(t, cfg, noEnv)["data directory"]; f.Level != LevelOK {
		t.Errorf("got %+v for a directory that serve will make, want ok", f)
	}
	if _, err := os.Stat(cfg.DataDir); err == nil {
		t.Error("the data directory was made")
	}
	if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
		t.Fatal(err)
	}
	findings(t, cfg, noEnv)
	if entries, err := os.ReadDir(cfg.DataDir); err != nil || len(entries) > 0 {
		t.Errorf("got %v and error %v in the data directory, want nothing", entries, err)
	}
	if err := os.WriteFile(filepath.Join(cfg.DataDir, auth.KeyFile), []byte("no key"), 0o644); err != nil {
		t.Fatal(err)
	}
	if f := findings(t, cfg, noEnv)["data directory"]; f.Level != LevelFail || f.Fix == "" {
		t.Errorf("got %+v for a key that others may read, want a failure with its fix", f)
	}
}

func TestDiagnoseCascade(t *testing.T) {
	var learned strings.Builder
	learned.WriteString("clients:\n")
	for _, intent := range []string{"fly", "cook", "sing"} {
		fmt.Fprintf(&learned, "  %s_agent:\n    match: {intent: [%s], domains: [d_%s]}\n    examples:\n      %s:\n", intent, intent, intent, intent)
		for i := range 60 {
			fmt.Fprintf(&learned, "        - \"%s something nice for number%d please\"\n", intent, i)
		}
	}
	for registry, want := range map[string]string{modelRegistry: LevelWarn, learned.String(): LevelOK, "clients: [": LevelSkip} {
		cfg := diagnosable(t, registry)
		cfg.Classifier.Mode = "cascade"
		if got := findings(t, cfg, modelEnv)["cascade"]; got.Level != want {
			t.Errorf("got %+v, want %s", got, want)
		}
	}
}

func TestDiagnoseModel(t *testing.T) {
	for provider, wire := range providers() {
		t.Run(provider, func(t *testing.T) {
			model := fakellm.Start(t, fakellm.Config{Wire: wire})
			cfg := diagnosable(t, modelRegistry)
			asks(provider, model)(&cfg)
			if got := findings(t, cfg, modelEnv)["model"]; got.Level != LevelOK {
				t.Errorf("got %+v, want ok", got)
			}
			wrongKey := func(string) (string, bool) { return "another-key", true }
			if got := findings(t, cfg, wrongKey)["model"]; got.Level != LevelFail || !strings.Contains(got.Fix, cfg.LLM.APIKeyEnv) || strings.Contains(fmt.Sprint(got), "another-key") {
				t.Errorf("got %+v for a wrong key, want a failure that names the variable and not the key", got)
			}
			cfg.LLM.Model = "no-such-model"
			if got := findings(t, cfg, modelEnv)["model"]; got.Level != LevelFail || !strings.Contains(got.Fix, "llm.model") {
				t.Errorf("got %+v for a model the server does not have, want a failure that names llm.model", got)
			}
		})
	}
}
