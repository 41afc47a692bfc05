package app

import (
	"fmt"
	"strings"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/golden"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/redact"
)

// GoldenClassifier says who reads the requests of golden cases.
type GoldenClassifier int

// The ways to read them.
const (
	GoldenLexical  GoldenClassifier = iota // the registry's words: no model, no network
	GoldenRecorded                         // a cassette, which the caller brings
	GoldenLive                             // the configured model
)

// Golden is what golden cases are run with: the registry, the masking and the
// classifier as they are configured, and nothing that listens or sends.
type Golden struct {
	Config golden.Config // without cases and cassette

	key   llm.Secret
	model *llm.Client // nil unless it is GoldenLive
}

// OpenGolden loads the registry and, for GoldenLive, opens the configured model.
// Nothing is asked of it yet.
func OpenGolden(cfg Config, opts Options, by GoldenClassifier) (*Golden, error) {
	path, _ := cfg.Registry.filePath()
	snapshot, err := capabilities.Load(path)
	if err != nil {
		return nil, err
	}
	redactor, err := redact.New(cfg.Redact.redactorConfig())
	if err != nil {
		return nil, fmt.Errorf("redact: %w", err)
	}
	accept, auto, err := cfg.Classifier.Cascade.Accept.parse()
	if err != nil {
		return nil, err
	}
	g := &Golden{Config: golden.Config{
		Registry: snapshot,
		Redactor: redactor,
		Classifier: classifier.Config{
			Mode:            goldenMode(cfg.Classifier.Mode, by),
			Timeout:         cfg.Classifier.timeout(),
			MaxOutputTokens: cfg.LLM.MaxOutputTokens,
			ShortlistAbove:  cfg.Classifier.ShortlistAbove,
			ShortlistK:      cfg.Classifier.ShortlistK,
			Accept:          accept,
			AcceptAuto:      auto,
		},
	}}
	if by == GoldenLive {
		if err := g.openModel(&cfg, &opts); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// goldenMode is the configured mode, as far as there is a choice.
func goldenMode(configured string, by GoldenClassifier) string {
	switch {
	case by == GoldenLexical:
		return classifier.ModeLexical
	case configured == classifier.ModeCascade:
		return classifier.ModeCascade
	}
	return classifier.ModeLLM
}

func (g *Golden) openModel(cfg *Config, opts *Options) error {
	g.key = cfg.LLM.apiKey(opts.lookupEnv())
	if !cfg.LLM.isUsable(g.key) {
		return fmt.Errorf("there is no model to ask: set the variable %s, or configure a server of your own under llm", cfg.LLM.APIKeyEnv)
	}
	if err := cfg.LLM.checkKeyOwner(g.key); err != nil {
		return err
	}
	open := modelConfig(cfg, opts, g.key)
	provider, err := openProvider(open)
	if err != nil {
		return err
	}
	g.model = llm.NewClient(llm.ClientConfig{Provider: open.Provider, Model: open.Model}, provider)
	g.Config.Classifier.Model = g.model
	return nil
}

// RedactKey takes the model's key out of a text that goes into a file.
func (g *Golden) RedactKey(text string) string {
	key := g.key.Reveal()
	if key == "" {
		return text
	}
	return strings.ReplaceAll(text, key, "<redacted>")
}

// Close lets go of the model's connections.
func (g *Golden) Close() {
	if g.model != nil {
		_ = g.model.Close() // idle connections; nothing can be done about them
	}
}
