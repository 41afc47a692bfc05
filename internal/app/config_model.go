package app

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/redact"
)

// ClassifierConfig specifies how requests are classified.
type ClassifierConfig struct {
	Mode           string        `yaml:"mode" validate:"oneof=auto llm cascade lexical"` // auto, llm, cascade or lexical; auto = llm with a model, else lexical
	TimeoutMS      int           `yaml:"timeout_ms" validate:"range=1 60000"`            // for all calls of the model for one request
	ShortlistAbove int           `yaml:"shortlist_above" validate:"range=1 10000"`       // number of agents above which the model sees only a shortlist
	ShortlistK     int           `yaml:"shortlist_k" validate:"range=1 1000"`            // agents on the shortlist
	Cache          CacheConfig   `yaml:"cache"`
	Cascade        CascadeConfig `yaml:"cascade"`
}

// CacheConfig bounds the cache of classifications by a model.
type CacheConfig struct {
	Entries int `yaml:"entries" validate:"range=0 1000000"` // 0 = no cache
	TTLS    int `yaml:"ttl_s" validate:"range=1 86400"`
}

// CascadeConfig specifies when the lexical classifier is confident enough, so that the
// model is not called.
type CascadeConfig struct {
	Accept AcceptThreshold `yaml:"accept"`
}

// AcceptThreshold is a confidence from 0 to 1, or "auto": the threshold of the
// calibration. If the lexical classifier is not calibrated, "auto" accepts nothing.
type AcceptThreshold string

const acceptAuto = "auto"

// parseThreshold returns the least accepted confidence, or auto.
func (a AcceptThreshold) parseThreshold() (least float64, auto bool, err error) {
	if a == acceptAuto {
		return 0, true, nil
	}
	v, err := strconv.ParseFloat(string(a), 64)
	if err != nil || !(v >= 0 && v <= 1) { // also refuses NaN
		return 0, false, fmt.Errorf("classifier.cascade.accept: must be auto or a confidence from 0 to 1, got %q", string(a))
	}
	return max(v, math.SmallestNonzeroFloat64), false, nil // for the classifier, 0 means not set
}

func (c *ClassifierConfig) validate() error {
	_, _, err := c.Cascade.Accept.parseThreshold()
	return err
}

func defaultClassifierConfig() ClassifierConfig {
	return ClassifierConfig{
		Mode: classifier.ModeAuto, TimeoutMS: 2000, ShortlistAbove: 20, ShortlistK: 10,
		Cache: CacheConfig{Entries: 10_000, TTLS: 300}, Cascade: CascadeConfig{Accept: acceptAuto},
	}
}

// The providers of LLMConfig.Provider.
const (
	ProviderGemini = "gemini" // the original SDK of Google
	ProviderGenAI  = "genai"  // the maintained SDK of Google
	ProviderOpenAI = "openai" // any server with the OpenAI chat completions API
)

// LLMConfig specifies the model that proposes classifications and answers for policy
// A. It never contains the API key.
type LLMConfig struct {
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

func (c *LLMConfig) validate() error {
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
func (c *LLMConfig) checkURL() error {
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

func defaultLLMConfig() LLMConfig {
	return LLMConfig{Provider: ProviderGemini, APIKeyEnv: keyEnvAuto, ResponseFormat: llm.FormatJSONSchema, MaxOutputTokens: 300}
}

// RedactConfig specifies the personal data and secrets that are masked before a model
// or a log receives them.
type RedactConfig struct {
	Kinds StringList `yaml:"kinds"` // "default" = all kinds, "none", or a list
	Allow []string   `yaml:"allow"` // values that are never masked
}

// StringList is a list that may be written as one word.
type StringList []string

// The values of redact.kinds beside a list of kinds.
const (
	kindsDefault = "default" // all kinds
	kindsNone    = "none"    // nothing is masked
)

// redactorConfig returns the configuration of the redactor. Only the word "none" masks
// nothing; an empty list is a mistake, which validate reports.
func (c *RedactConfig) redactorConfig() redact.Config {
	switch {
	case len(c.Kinds) == 1 && c.Kinds[0] == kindsDefault:
		return redact.Config{Allow: c.Allow}
	case len(c.Kinds) == 1 && c.Kinds[0] == kindsNone:
		return redact.Config{Kinds: []string{}, Allow: c.Allow}
	}
	return redact.Config{Kinds: append([]string{}, c.Kinds...), Allow: c.Allow}
}

func (c *RedactConfig) validate() error {
	if len(c.Kinds) == 0 {
		return fmt.Errorf("redact.kinds: is empty: write %s, %s, or a list of %s", kindsDefault, kindsNone, strings.Join(redact.Kinds(), ", "))
	}
	if len(c.Kinds) > 1 && (slices.Contains(c.Kinds, kindsDefault) || slices.Contains(c.Kinds, kindsNone)) {
		return fmt.Errorf("redact.kinds: %s and %s cannot be combined with other words", kindsDefault, kindsNone)
	}
	if _, err := redact.New(c.redactorConfig()); err != nil { // "redact: kinds: …"
		return errors.New("redact." + strings.TrimPrefix(err.Error(), "redact: "))
	}
	return nil
}

// SessionConfig specifies the state between requests of one session.
type SessionConfig struct {
	TTLS            int    `yaml:"ttl_s" validate:"range=1 86400"`
	ClassifyTrigger string `yaml:"classify_trigger" validate:"oneof=every_request user_turn new_session"` // every_request, user_turn or new_session
}

func (c *ClassifierConfig) timeout() time.Duration {
	return time.Duration(c.TimeoutMS) * time.Millisecond
}
