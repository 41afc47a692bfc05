package app

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/internal/egress"
	"github.com/caprouter/caprouter/internal/limits"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/llm/gemini"
	"github.com/caprouter/caprouter/internal/llm/genai"
	"github.com/caprouter/caprouter/internal/llm/openai"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/telemetry"
	"github.com/caprouter/caprouter/orchestrator/planner"
)

// The environment variables that the vendors' own tools read, and the host that
// geminiKey is for.
const (
	geminiKey  = "GEMINI_API_KEY"
	openaiKey  = "OPENAI_API_KEY"
	geminiHost = "generativelanguage.googleapis.com"
)

// keyEnvAuto is the value of llm.api_key_env for the usual variable of the provider.
const keyEnvAuto = "auto"

// KeyEnv returns the name of the environment variable with the key, "" for none.
func (c *LLMConfig) KeyEnv() string {
	switch {
	case c.APIKeyEnv != keyEnvAuto:
		return c.APIKeyEnv
	case c.Provider == ProviderOpenAI:
		return openaiKey
	}
	return geminiKey
}

// apiKey returns the key of the model, which is not set if the environment has none.
func (c *LLMConfig) apiKey(lookup func(string) (string, bool)) llm.Secret {
	name := c.KeyEnv()
	if name == "" {
		return llm.Secret{}
	}
	value, _ := lookup(name)
	return llm.NewSecret(value)
}

// isUsable reports whether a model is configured: one with a key, or a server that
// needs no key.
func (c *LLMConfig) isUsable(key llm.Secret) bool {
	return key.IsSet() || (c.BaseURL != "" && (c.Provider == ProviderOpenAI || c.APIKeyEnv == ""))
}

// IsConfigured reports whether a router with this environment uses a model.
func (c *LLMConfig) IsConfigured(lookup func(string) (string, bool)) bool {
	return c.isUsable(c.apiKey(lookup))
}

// ModelName returns the name of the model, "" if the provider has no default.
func (c *LLMConfig) ModelName() string {
	if c.Provider == ProviderOpenAI {
		return c.Model
	}
	return cmp.Or(c.Model, llm.DefaultModel)
}

// modelConfig returns the configuration of the provider.
func modelConfig(cfg *Config, opts *Options, key llm.Secret) llm.Config {
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

// openProvider opens the configured provider without calling it.
func openProvider(cfg llm.Config) (llm.Provider, error) {
	switch cfg.Provider {
	case ProviderGemini:
		return gemini.New(cfg)
	case ProviderGenAI:
		return genai.New(cfg)
	case ProviderOpenAI:
		return openai.New(cfg)
	}
	return nil, fmt.Errorf("llm.provider: %q is not known", cfg.Provider)
}

// checkKeyOwner refuses to send the Gemini key to the server of another provider.
func (c *LLMConfig) checkKeyOwner(key llm.Secret) error {
	if c.Provider != ProviderOpenAI || c.APIKeyEnv != geminiKey || !key.IsSet() {
		return nil
	}
	host := ""
	if u, err := url.Parse(c.BaseURL); err == nil { // otherwise the provider returns an error
		host = u.Hostname()
	}
	if host == geminiHost || egress.IsLoopback(host) {
		return nil
	}
	return fmt.Errorf("llm.api_key_env: %s would be sent to another server: name the variable that holds the key of llm.base_url, or \"\" for none", geminiKey)
}

// newClient opens the configured model without calling it. clientConfig contains
// the settings beside the names of provider and model.
func (c *Config) newClient(opts *Options, clientConfig llm.ClientConfig) (*llm.Client, error) {
	key := c.LLM.apiKey(opts.lookupEnv())
	if err := c.LLM.checkKeyOwner(key); err != nil {
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
	if !c.cfg.LLM.isUsable(c.cfg.LLM.apiKey(opts.lookupEnv())) {
		return nil
	}
	metrics := c.telemetry.Metrics()
	c.model, err = c.cfg.newClient(opts, llm.ClientConfig{
		MinBreakerTime: min(llm.DefaultMinBreakerTime, c.cfg.Classifier.timeout()),
		Observe: func(call llm.Call) {
			metrics.ModelCall(call.Purpose, call.Outcome, call.Tokens, call.Latency)
		},
		Budget: c.tokens,
	})
	if err != nil {
		return err
	}
	metrics.ObserveModel(func() bool { return c.model.BreakerState() == resilience.Open })
	return nil
}

// runModelName returns the name of the model of a planner or verifier: the one that
// classifies, unless another one is named.
func (c *LLMConfig) runModelName(kind, model string) string {
	if kind == c.Provider {
		return cmp.Or(model, c.ModelName())
	}
	return model
}

// openRunModels returns the planners and verifiers of orchestrations, and calls none.
func openRunModels(c *core, opts *Options, redactor *redact.Redactor) (*planner.Models, error) {
	cfg, key := &c.cfg.Orchestrator, c.cfg.LLM.apiKey(opts.lookupEnv())
	if err := c.cfg.LLM.checkKeyOwner(key); err != nil {
		return nil, err
	}
	ref := func(kind, endpoint, model string) planner.ModelRef {
		if kind == c.cfg.LLM.Provider {
			endpoint = cmp.Or(endpoint, c.cfg.LLM.BaseURL)
		}
		return planner.ModelRef{Kind: kind, Endpoint: endpoint, Model: c.cfg.LLM.runModelName(kind, model)}
	}
	metrics := c.telemetry.Metrics()
	return planner.NewModels(planner.ModelsConfig{
		Planner:          ref(cfg.Planner.Kind, cfg.Planner.Endpoint, cfg.Planner.Model),
		Verifier:         ref(cfg.Verifier.Kind, cfg.Verifier.Endpoint, cfg.Verifier.Model),
		EndpointsAllowed: cfg.EndpointsAllowed,
		Settings:         modelConfig(&c.cfg, opts, key), Client: llm.ClientConfig{Budget: c.tokens}, Mask: redactor,
		Open: func(settings llm.Config) (llm.Provider, error) {
			if settings.Provider != c.cfg.LLM.Provider || settings.BaseURL != c.cfg.LLM.BaseURL {
				settings.APIKey, settings.KeyEnv = llm.Secret{}, "" // the key belongs to the server of llm
			}
			return openProvider(settings)
		},
		Observe: func(_ planner.ModelRef, call llm.Call) {
			metrics.ModelCall(call.Purpose, call.Outcome, call.Tokens, call.Latency)
		},
	})
}

// classifierConfig returns the settings of the classifier, without a model and a cache.
func (c *Config) classifierConfig() (classifier.Config, error) {
	accept, auto, err := c.Classifier.Cascade.Accept.parseThreshold()
	return classifier.Config{
		Mode:            c.Classifier.Mode,
		Timeout:         c.Classifier.timeout(),
		MaxOutputTokens: c.LLM.MaxOutputTokens,
		ShortlistAbove:  c.Classifier.ShortlistAbove,
		ShortlistK:      c.Classifier.ShortlistK,
		Accept:          accept,
		AcceptAuto:      auto,
	}, err
}

// newClassifier returns the classifier of the configured mode.
func (c *core) newClassifier() (*classifier.Classifier, error) {
	cfg, err := c.cfg.classifierConfig()
	if err != nil {
		return nil, err
	}
	cache := &c.cfg.Classifier.Cache
	cfg.Cache = classifier.CacheConfig{Entries: cache.Entries, TTL: time.Duration(cache.TTLS) * time.Second}
	cfg.Log = c.log
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

func (o *Options) lookupEnv() func(string) (string, bool) {
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
