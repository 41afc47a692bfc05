package app

import (
	"fmt"
	"strings"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/golden"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/redact"
)

// GoldenClassifier selects the classifier of golden cases.
type GoldenClassifier int

// The values of GoldenClassifier.
const (
	GoldenLexical  GoldenClassifier = iota // the lexical classifier: no model, no network
	GoldenRecorded                         // replies recorded in a cassette
	GoldenLive                             // the configured model
)

// Golden contains the configured registry, redactor and classifier for running golden
// cases, without a listener and without targets.
type Golden struct {
	Config golden.Config // without cases and cassette

	key   llm.Secret
	model *llm.Client // nil unless it is GoldenLive
}

// OpenGolden loads the registry and, for GoldenLive, opens the configured model without
// calling it.
func OpenGolden(cfg config.Config, opts Options, by GoldenClassifier) (*Golden, error) {
	path, _ := cfg.Registry.FilePath()
	snapshot, err := capabilities.Load(path)
	if err != nil {
		return nil, err
	}
	redactor, err := redact.New(cfg.Redact.RedactorConfig())
	if err != nil {
		return nil, fmt.Errorf("redact: %w", err)
	}
	clf, err := classifierConfig(&cfg)
	if err != nil {
		return nil, err
	}
	clf.Mode = goldenMode(cfg.Classifier.Mode, by)
	g := &Golden{Config: golden.Config{Registry: snapshot, Redactor: redactor, Classifier: clf}}
	if by == GoldenLive {
		if err := g.openModel(&cfg, &opts); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// goldenMode returns the configured mode if the classifier permits it.
func goldenMode(configured string, by GoldenClassifier) string {
	switch {
	case by == GoldenLexical:
		return classifier.ModeLexical
	case configured == classifier.ModeCascade:
		return classifier.ModeCascade
	}
	return classifier.ModeLLM
}

func (g *Golden) openModel(cfg *config.Config, opts *Options) error {
	g.key = cfg.LLM.APIKey(opts.EnvLookup())
	if !cfg.LLM.IsUsable(g.key) {
		return fmt.Errorf("there is no model to ask: set the variable %s, or configure a server of your own under llm", cfg.LLM.KeyEnv())
	}
	model, err := newModelClient(cfg, opts, llm.ClientConfig{})
	if err != nil {
		return err
	}
	g.model, g.Config.Classifier.Model = model, model
	return nil
}

// RedactKey removes the API key of the model from a text.
func (g *Golden) RedactKey(text string) string {
	key := g.key.Reveal()
	if key == "" {
		return text
	}
	return strings.ReplaceAll(text, key, "<redacted>")
}

// Close closes the connections to the model.
func (g *Golden) Close() {
	if g.model != nil {
		_ = g.model.Close() // the error concerns idle connections
	}
}
