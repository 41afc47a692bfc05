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
	"github.com/caprouter/caprouter/internal/session"
)

// ClassifierConfig selects how a request is understood.
type ClassifierConfig struct {
	Mode           string        `yaml:"mode"`            // auto, llm, cascade or lexical; auto = llm with a model, else lexical
	TimeoutMS      int           `yaml:"timeout_ms"`      // all the model may take for one request
	ShortlistAbove int           `yaml:"shortlist_above"` // agents; with more of them the model is shown a shortlist
	ShortlistK     int           `yaml:"shortlist_k"`     // agents on it
	Cache          CacheConfig   `yaml:"cache"`
	Cascade        CascadeConfig `yaml:"cascade"`
}

// CacheConfig bounds the cache of the model's classifications.
type CacheConfig struct {
	Entries int `yaml:"entries"` // 0 = no cache
	TTLS    int `yaml:"ttl_s"`
}

// CascadeConfig says when the lexical classifier is sure enough to leave the
// model out.
type CascadeConfig struct {
	Accept AcceptThreshold `yaml:"accept"`
}

// AcceptThreshold is a confidence from 0 to 1, or "auto": what the calibration of the
// lexical classifier gives, never where it is not calibrated.
type AcceptThreshold string

const acceptAuto = "auto"

// parse is the least that is accepted; auto tells that the calibration says.
func (a AcceptThreshold) parse() (least float64, auto bool, err error) {
	if a == acceptAuto {
		return 0, true, nil
	}
	v, err := strconv.ParseFloat(string(a), 64)
	if err != nil || !(v >= 0 && v <= 1) { // NaN is refused as well
		return 0, false, fmt.Errorf("classifier.cascade.accept: must be auto or a confidence from 0 to 1, got %q", string(a))
	}
	return max(v, math.SmallestNonzeroFloat64), false, nil // to the classifier 0 is no number
}

func (c *ClassifierConfig) validate() error {
	_, _, err := c.Cascade.Accept.parse()
	return errors.Join(
		checkOneOf("classifier.mode", c.Mode, classifier.ModeAuto, classifier.ModeLLM, classifier.ModeCascade, classifier.ModeLexical),
		checkRange("classifier.timeout_ms", c.TimeoutMS, 1, 60_000),
		checkRange("classifier.shortlist_above", c.ShortlistAbove, 1, 10_000),
		checkRange("classifier.shortlist_k", c.ShortlistK, 1, 1_000),
		checkRange("classifier.cache.entries", c.Cache.Entries, 0, 1_000_000),
		checkRange("classifier.cache.ttl_s", c.Cache.TTLS, 1, 86_400),
		err,
	)
}

func defaultClassifierConfig() ClassifierConfig {
	return ClassifierConfig{
		Mode: classifier.ModeAuto, TimeoutMS: 2000, ShortlistAbove: 20, ShortlistK: 10,
		Cache: CacheConfig{Entries: 10_000, TTLS: 300}, Cascade: CascadeConfig{Accept: acceptAuto},
	}
}

// The providers of LLMConfig.Provider.
const (
	ProviderGemini = "gemini" // the SDK the source document's design names
	ProviderGenAI  = "genai"  // Google's maintained SDK
	ProviderOpenAI = "openai" // any server with the OpenAI chat completions API
)

// LLMConfig names the model that proposes classifications and answers by policy
// A. The key itself is never part of it.
type LLMConfig struct {
	Provider        string         `yaml:"provider"`
	Model           string         `yaml:"model"`       // "" = the embedded default of the provider
	BaseURL         string         `yaml:"base_url"`    // "" = the provider's own
	APIKeyEnv       string         `yaml:"api_key_env"` // name of the variable that holds the key
	MaxOutputTokens int            `yaml:"max_output_tokens"`
	Temperature     float64        `yaml:"temperature"`
	Thinking        ThinkingEffort `yaml:"thinking"` // "" = the model's default; off, minimal, low, medium, high or a number of tokens
}

// ThinkingEffort is a word or a number of tokens.
type ThinkingEffort string

func (c *LLMConfig) validate() error {
	err := errors.Join(
		checkOneOf("llm.provider", c.Provider, ProviderGemini, ProviderGenAI, ProviderOpenAI),
		c.checkURL(),
		c.checkKeyName(),
		checkRange("llm.max_output_tokens", c.MaxOutputTokens, 16, 65_536),
	)
	_, thinking := llm.ParseThinking(string(c.Thinking))
	err = errors.Join(err, thinking)
	if c.Temperature != noTemperature && !(c.Temperature >= 0 && c.Temperature <= 2) {
		err = errors.Join(err, fmt.Errorf("llm.temperature: must be from 0 to 2, or -1 to send none, got %v", c.Temperature))
	}
	return err
}

// checkURL looks at the base URL also where there is no key to send there yet.
func (c *LLMConfig) checkURL() error {
	if c.BaseURL == "" {
		return nil
	}
	_, err := (&llm.Config{BaseURL: c.BaseURL}).Endpoint("")
	return err
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// checkKeyName refuses what is no name of a variable without repeating it: it may
// be the key.
func (c *LLMConfig) checkKeyName() error {
	if c.APIKeyEnv == "" || variableName.MatchString(c.APIKeyEnv) {
		return nil
	}
	return errors.New("llm.api_key_env: is no name of an environment variable; name the variable that holds the key, not the key")
}

// noTemperature is for models that refuse to be told one.
const noTemperature = -1

func defaultLLMConfig() LLMConfig {
	return LLMConfig{Provider: ProviderGemini, APIKeyEnv: geminiKey, MaxOutputTokens: 300}
}

// RedactConfig says which personal data and secrets are masked before a model
// or a log sees them.
type RedactConfig struct {
	Kinds StringList `yaml:"kinds"` // "default" = all there are, or a list
	Allow []string   `yaml:"allow"` // values that are never masked
}

// StringList is a list that may be written as one word.
type StringList []string

// What redact.kinds may be beside a list of kinds.
const (
	kindsDefault = "default" // all there are
	kindsNone    = "none"    // nothing is masked
)

// redactorConfig is what the redactor is made with. That nothing is masked has to be said
// in a word: a list that came out empty was meant otherwise.
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
		return fmt.Errorf("redact.kinds: %s and %s stand alone", kindsDefault, kindsNone)
	}
	if _, err := redact.New(c.redactorConfig()); err != nil { // "redact: kinds: …"
		return errors.New("redact." + strings.TrimPrefix(err.Error(), "redact: "))
	}
	return nil
}

// SessionConfig steers what is remembered between requests of one session.
type SessionConfig struct {
	TTLS            int    `yaml:"ttl_s"`
	ClassifyTrigger string `yaml:"classify_trigger"` // every_request, user_turn or new_session
}

func (c *SessionConfig) validate() error {
	return errors.Join(
		checkRange("session.ttl_s", c.TTLS, 1, 86_400),
		checkOneOf("session.classify_trigger", c.ClassifyTrigger, session.EveryRequest, session.UserTurn, session.NewSession),
	)
}

func (c *ClassifierConfig) timeout() time.Duration {
	return time.Duration(c.TimeoutMS) * time.Millisecond
}
