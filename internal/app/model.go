package app

import (
	"fmt"
	"os"
	"time"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/limits"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/llm/gemini"
	"github.com/caprouter/caprouter/internal/llm/genai"
	"github.com/caprouter/caprouter/internal/llm/openai"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/telemetry"
)

// modelConfig returns the configuration of the provider.
func modelConfig(cfg *config.Config, opts *Options, key llm.Secret) llm.Config {
	return llm.Config{
		Provider:       cfg.LLM.Provider,
		Model:          cfg.LLM.ModelName(),
		BaseURL:        cfg.LLM.BaseURL,
		APIKey:         key,
		KeyEnv:         cfg.LLM.KeyEnv(),
		ResponseFormat: cfg.LLM.ResponseFormat,
		Temperature:    cfg.LLM.Temperature,
		Thinking:       string(cfg.LLM.Thinking),
		AllowPlainHTTP: cfg.Dispatch.AllowPlainHTTP,
		Version:        opts.Version,
	}
}

// OpenProvider opens the configured provider with the key, without calling it.
func OpenProvider(cfg *config.Config, opts *Options, key llm.Secret) (llm.Provider, error) {
	return openProvider(modelConfig(cfg, opts, key))
}

// openProvider opens the configured provider without calling it.
func openProvider(cfg llm.Config) (llm.Provider, error) {
	switch cfg.Provider {
	case config.ProviderGemini:
		return gemini.New(cfg)
	case config.ProviderGenAI:
		return genai.New(cfg)
	case config.ProviderOpenAI:
		return openai.New(cfg)
	}
	return nil, fmt.Errorf("llm.provider: %q is not known", cfg.Provider)
}

// newModelClient opens the configured model without calling it. clientConfig contains
// the settings beside the names of provider and model.
func newModelClient(c *config.Config, opts *Options, clientConfig llm.ClientConfig) (*llm.Client, error) {
	key := c.LLM.APIKey(opts.EnvLookup())
	if err := c.LLM.CheckKeyOwner(key); err != nil {
		return nil, err
	}
	cfg := modelConfig(c, opts, key)
	provider, err := openProvider(cfg)
	if err != nil {
		return nil, err
	}
	clientConfig.Provider, clientConfig.Model = cfg.Provider, cfg.Model
	return llm.NewClient(clientConfig, provider), nil
}

// openModel opens the configured model, if there is one. Only the modes auto and
// lexical work without.
func (c *core) openModel(opts *Options) (err error) {
	if !c.cfg.LLM.IsUsable(c.cfg.LLM.APIKey(opts.EnvLookup())) {
		return nil
	}
	metrics := c.telemetry.Metrics()
	c.model, err = newModelClient(&c.cfg, opts, llm.ClientConfig{
		MinBreakerTime: min(llm.DefaultMinBreakerTime, c.cfg.Classifier.Timeout()),
		Observe: func(call llm.Call) {
			metrics.RecordModelCall(call.Purpose, call.Outcome, call.Tokens, call.Latency)
		},
		Budget: c.tokens,
	})
	if err != nil {
		return err
	}
	metrics.ObserveModel(func() bool { return c.model.BreakerState() == resilience.Open })
	return nil
}

// classifierConfig returns the settings of the classifier, without a model and a cache.
func classifierConfig(c *config.Config) (classifier.Config, error) {
	accept, auto, err := c.Classifier.Cascade.Accept.Parse()
	return classifier.Config{
		Mode:            c.Classifier.Mode,
		Timeout:         c.Classifier.Timeout(),
		MaxOutputTokens: c.LLM.MaxOutputTokens,
		ShortlistAbove:  c.Classifier.ShortlistAbove,
		ShortlistK:      c.Classifier.ShortlistK,
		Accept:          accept,
		AcceptAuto:      auto,
	}, err
}

// newClassifier returns the classifier of the configured mode.
func (c *core) newClassifier(redactor *redact.Redactor) (*classifier.Classifier, error) {
	cfg, err := classifierConfig(&c.cfg)
	if err != nil {
		return nil, err
	}
	cache := &c.cfg.Classifier.Cache
	cfg.Cache = classifier.CacheConfig{Entries: cache.Entries, TTL: time.Duration(cache.TTLS) * time.Second}
	cfg.Log, cfg.MaskText = c.log, redactor.RedactText
	if c.model != nil {
		cfg.Model = telemetry.TracedModel{Client: c.model}
	}
	made, err := classifier.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("classifier.mode: %w%s", err, c.missingKeyHint())
	}
	return made, nil
}

// missingKeyHint returns a suggestion if no key is set.
func (c *core) missingKeyHint() string {
	if c.model != nil {
		return ""
	}
	if c.cfg.LLM.KeyEnv() == "" {
		return " (set llm.api_key_env or llm.base_url, or classifier.mode auto)"
	}
	return fmt.Sprintf(" (set the variable %s, or classifier.mode auto)", c.cfg.LLM.KeyEnv())
}

// classifierMode returns the mode of the classifier and its reason, with the variable
// that is missing for a model.
func (c *core) classifierMode() (mode, why string) {
	mode, why = c.classifier.Mode()
	if name := c.cfg.LLM.KeyEnv(); c.model == nil && name != "" && c.cfg.Classifier.Mode == classifier.ModeAuto {
		why += fmt.Sprintf(" (the variable %s is not set)", name)
	}
	return mode, why
}

// EnvLookup returns LookupEnv, or os.LookupEnv if it is nil.
func (o *Options) EnvLookup() func(string) (string, bool) {
	if o.LookupEnv == nil {
		return os.LookupEnv
	}
	return o.LookupEnv
}

// hourlyBudget adapts a token budget to llm.Budget.
type hourlyBudget struct{ budget *limits.TokenBudget }

// Reserve implements llm.Budget.
func (h hourlyBudget) Reserve(estimate int) (settle func(actual int), ok bool) {
	return h.budget.Reserve(estimate, time.Now())
}
