package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"regexp"

	"github.com/caprouter/caprouter/internal/egress"
	"github.com/caprouter/caprouter/internal/llm"
)

// The providers of LLM.Provider.
const (
	ProviderGemini = "gemini" // the original SDK of Google
	ProviderGenAI  = "genai"  // the maintained SDK of Google
	ProviderOpenAI = "openai" // any server with the OpenAI chat completions API
)

// LLM specifies the model that proposes classifications and answers for policy
// A. It never contains the API key.
type LLM struct {
	Provider        string         `yaml:"provider" validate:"oneof=gemini genai openai"`
	Model           string         `yaml:"model"`       // "" = the embedded default of the provider
	BaseURL         string         `yaml:"base_url"`    // "" = the default of the provider
	APIKeyEnv       string         `yaml:"api_key_env"` // environment variable with the key; "auto" = the provider's usual one; "" = none
	ResponseFormat  string         `yaml:"response_format" validate:"oneof=json_schema json_object"`
	MaxOutputTokens int            `yaml:"max_output_tokens" validate:"range=16 65536"`
	Temperature     float64        `yaml:"temperature"`
	Thinking        ThinkingEffort `yaml:"thinking"` // "" = the model's default; off, minimal, low, medium, high or a number of tokens
}

// ThinkingEffort is a word or a number of tokens.
type ThinkingEffort string

func (c *LLM) validate() error {
	err := errors.Join(
		c.checkURL(),
		checkVariableName("llm.api_key_env", "key", c.APIKeyEnv),
	)
	if c.ResponseFormat == llm.FormatJSONObject && c.Provider != ProviderOpenAI {
		err = errors.Join(err, fmt.Errorf("llm.response_format: json_object is for llm.provider openai; %s always sends the schema", c.Provider))
	}
	_, thinking := llm.ParseThinking(string(c.Thinking))
	err = errors.Join(err, thinking)
	if c.Temperature != noTemperature && !(c.Temperature >= 0 && c.Temperature <= 2) {
		err = errors.Join(err, fmt.Errorf("llm.temperature: must be from 0 to 2, or -1 to send none, got %v", c.Temperature))
	}
	return err
}

// checkURL validates the base URL even if no key is configured yet.
func (c *LLM) checkURL() error {
	if c.BaseURL == "" {
		return nil
	}
	_, err := (&llm.Config{BaseURL: c.BaseURL}).Endpoint("")
	return err
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// checkVariableName refuses invalid names of environment variables. The error does not
// repeat the value, because it may be the secret itself.
func checkVariableName(key, content, name string) error {
	if name == "" || variableName.MatchString(name) {
		return nil
	}
	return fmt.Errorf("%s: is not a name of an environment variable; write the name of the variable with the %s, not the %s", key, content, content)
}

// noTemperature is for models that refuse requests with a temperature.
const noTemperature = -1

func defaultLLMConfig() LLM {
	return LLM{Provider: ProviderGemini, APIKeyEnv: KeyEnvAuto, ResponseFormat: llm.FormatJSONSchema, MaxOutputTokens: 300}
}

// The environment variables that the vendors' own tools read, and the host that
// geminiKey is for.
const (
	geminiKey  = "GEMINI_API_KEY"
	openaiKey  = "OPENAI_API_KEY"
	geminiHost = "generativelanguage.googleapis.com"
)

// KeyEnvAuto is the value of llm.api_key_env for the usual variable of the provider.
const KeyEnvAuto = "auto"

// KeyEnv returns the name of the environment variable with the key, "" for none.
func (c *LLM) KeyEnv() string {
	switch {
	case c.APIKeyEnv != KeyEnvAuto:
		return c.APIKeyEnv
	case c.Provider == ProviderOpenAI:
		return openaiKey
	}
	return geminiKey
}

// APIKey returns the key of the model, which is not set if the environment has none.
func (c *LLM) APIKey(lookup func(string) (string, bool)) llm.Secret {
	name := c.KeyEnv()
	if name == "" {
		return llm.Secret{}
	}
	value, _ := lookup(name)
	return llm.NewSecret(value)
}

// IsUsable reports whether a model is configured: one with a key, or a server that
// needs no key.
func (c *LLM) IsUsable(key llm.Secret) bool {
	return key.IsSet() || (c.BaseURL != "" && (c.Provider == ProviderOpenAI || c.APIKeyEnv == ""))
}

// IsConfigured reports whether a router with this environment uses a model.
func (c *LLM) IsConfigured(lookup func(string) (string, bool)) bool {
	return c.IsUsable(c.APIKey(lookup))
}

// ModelName returns the name of the model, "" if the provider has no default.
func (c *LLM) ModelName() string {
	if c.Provider == ProviderOpenAI {
		return c.Model
	}
	return cmp.Or(c.Model, llm.DefaultModel)
}

// CheckKeyOwner refuses to send the Gemini key to the server of another provider.
func (c *LLM) CheckKeyOwner(key llm.Secret) error {
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

// RunModelName returns the name of the model of a planner or verifier: the one that
// classifies, unless another one is named.
func (c *LLM) RunModelName(kind, model string) string {
	if kind == c.Provider {
		return cmp.Or(model, c.ModelName())
	}
	return model
}
