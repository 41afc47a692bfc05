package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/internal/config"
)

func TestOpenGolden(t *testing.T) {
	file := filepath.Join(t.TempDir(), "registry.yaml")
	if err := os.WriteFile(file, []byte("clients:\n  a: { match: { intent: [x], domains: [y] } }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const key = "some-secret-key-0123456789"
	withKey := func(string) (string, bool) { return key, true }
	noKey := func(string) (string, bool) { return "", false }
	tests := []struct {
		name      string
		by        GoldenClassifier
		change    func(*config.Config)
		lookup    func(string) (string, bool)
		wantMode  string
		wantModel bool
		wantErr   string
	}{
		{name: "lexical, with and without a key", by: GoldenLexical, lookup: withKey, wantMode: classifier.ModeLexical},
		{name: "recorded model", by: GoldenRecorded, lookup: noKey, wantMode: classifier.ModeLLM},
		{name: "live model", by: GoldenLive, lookup: withKey, wantMode: classifier.ModeLLM, wantModel: true},
		{name: "cascade", by: GoldenLive, lookup: withKey, change: func(c *config.Config) { c.Classifier.Mode = classifier.ModeCascade }, wantMode: classifier.ModeCascade, wantModel: true},
		{name: "no key", by: GoldenLive, lookup: noKey, wantErr: "there is no model to ask: set the variable GEMINI_API_KEY"},
		{name: "key of another provider", by: GoldenLive, lookup: withKey, change: func(c *config.Config) {
			c.LLM.Provider, c.LLM.BaseURL, c.LLM.APIKeyEnv = config.ProviderOpenAI, "https://models.example/v1", "GEMINI_API_KEY"
		}, wantErr: "would be sent to another server"},
		{name: "no registry", change: func(c *config.Config) { c.Registry.File = "none.yaml" }, lookup: noKey, wantErr: "none.yaml"},
		{name: "invalid acceptance threshold", change: func(c *config.Config) { c.Classifier.Cascade.Accept = "often" }, lookup: noKey, wantErr: "classifier.cascade.accept"},
		{name: "unknown kind", change: func(c *config.Config) { c.Redact.Kinds = config.StringList{"shoe_size"} }, lookup: noKey, wantErr: "redact"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := config.Default()
			cfg.Registry.File = file
			if tt.change != nil {
				tt.change(&cfg)
			}
			g, err := OpenGolden(cfg, Options{LookupEnv: tt.lookup}, tt.by)
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Fatalf("got %v, want an error with %q", err, tt.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			c := &g.Config.Classifier
			if c.Mode != tt.wantMode || (c.Model != nil) != tt.wantModel || len(g.Config.Registry.Catalogue.Agents) != 1 {
				t.Errorf("got mode %q, a model %v, %d agents; want %q, %v, 1", c.Mode, c.Model != nil, len(g.Config.Registry.Catalogue.Agents), tt.wantMode, tt.wantModel)
			}
			want := "the key is " + key
			if tt.wantModel {
				want = "the key is <redacted>"
			}
			if got := g.RedactKey("the key is " + key); got != want {
				t.Errorf("scrub: got %q, want %q", got, want)
			}
		})
	}
}
