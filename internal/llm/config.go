package llm

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/caprouter/caprouter/internal/egress"
)

// DefaultModel is the default model of the providers gemini and genai. The name
// is stable, and the model does little thinking by default, which a
// classification does not need.
const DefaultModel = "gemini-3.5-flash-lite"

// DefaultGeminiURL is the default base URL of gemini and genai.
const DefaultGeminiURL = "https://generativelanguage.googleapis.com"

// Config configures a provider.
type Config struct {
	Provider       string // gemini, genai or openai; only for messages
	Model          string
	BaseURL        string // "" = the vendor's URL
	APIKey         Secret
	KeyEnv         string  // environment variable of the key, for messages; "" = none
	ResponseFormat string  // FormatJSONSchema or FormatJSONObject; "" = the former
	Temperature    float64 // negative = not sent, for models that reject it
	Thinking       string  // see ParseThinking
	AllowPlainHTTP bool    // allow sending the key over http to other hosts
	Version        string  // of caprouter, for the User-Agent
}

// Endpoint validates the base URL, which defaults to standard, and whether the
// key may be sent there. Errors name the configuration key and never contain
// the URL, because a key may have been pasted into it.
func (c *Config) Endpoint(standard string) (*url.URL, error) {
	if !c.APIKey.isValidHeader() {
		return nil, errors.New("the key in the environment variable that llm.api_key_env names has characters that no key has, such as a space: was it copied whole?")
	}
	text := c.BaseURL
	if text == "" {
		if !c.APIKey.IsSet() {
			return nil, fmt.Errorf("there is no key: %s, or set llm.base_url for a server that needs none", c.missingKey())
		}
		text = standard
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "" || u.Opaque != "":
		return nil, errors.New("llm.base_url is no URL; write http(s)://host:port/path")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("llm.base_url is neither http nor https")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, errors.New("llm.base_url has a user, a query or a fragment; the key belongs in the environment variable that llm.api_key_env names")
	case u.Scheme == "http" && c.APIKey.IsSet() && !c.AllowPlainHTTP && !egress.IsLoopback(u.Hostname()):
		return nil, errors.New("llm.base_url is another host over plain http, where the key could be read: use https, or set dispatch.allow_plain_http: true")
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), ""
	return u, nil
}

// missingKey returns why there is no key.
func (c *Config) missingKey() string {
	if c.KeyEnv == "" {
		return "name its environment variable in llm.api_key_env"
	}
	return "the environment variable " + c.KeyEnv + " is not set"
}

// The values of llm.response_format: how a provider asks for JSON. All servers with
// OpenAI's API accept FormatJSONObject, but only FormatJSONSchema enforces a schema.
const (
	FormatJSONSchema = "json_schema"
	FormatJSONObject = "json_object"
)

var geminiModel = regexp.MustCompile(`^(models/|tunedModels/)?[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// GeminiModel returns the model as in URLs of the Gemini API: models/{name}.
func (c *Config) GeminiModel() (string, error) {
	model := c.Model
	if model == "" {
		model = DefaultModel
	}
	if !geminiModel.MatchString(model) {
		return "", fmt.Errorf("llm.model %q is no name of a model; write one such as %s", sanitizeText(model), DefaultModel)
	}
	if !strings.Contains(model, "/") {
		model = "models/" + model
	}
	return model, nil
}

// RequestTemperature returns the temperature to send, or nil to send none.
func (c *Config) RequestTemperature() (*float32, error) {
	if !(c.Temperature <= 2) { // rejects NaN, too
		return nil, errors.New("llm.temperature is over 2; 0 is best for classification, less than 0 sends none")
	}
	if c.Temperature < 0 {
		return nil, nil // send none
	}
	t := float32(c.Temperature)
	return &t, nil
}

// Thinking levels.
const (
	ThinkingOff     = "off"
	ThinkingMinimal = "minimal"
	ThinkingLow     = "low"
	ThinkingMedium  = "medium"
	ThinkingHigh    = "high"
)

// maxThinking exceeds the maximum of every model.
const maxThinking = 1 << 17

// Thinking limits how much a model thinks before it answers. The zero value is
// the model's default.
type Thinking struct {
	Level  string // a level, or "" if Tokens is set
	Tokens int
}

// ParseThinking parses the configuration key llm.thinking: empty, a level, or a
// number of tokens.
func ParseThinking(text string) (Thinking, error) {
	switch text {
	case "", ThinkingOff, ThinkingMinimal, ThinkingLow, ThinkingMedium, ThinkingHigh:
		return Thinking{Level: text}, nil
	case "0":
		return Thinking{Level: ThinkingOff}, nil
	}
	if n, err := strconv.Atoi(text); err == nil && n > 0 && n <= maxThinking {
		return Thinking{Tokens: n}, nil
	}
	return Thinking{}, fmt.Errorf("llm.thinking is %q; write off, minimal, low, medium, high or a number of tokens up to %d, or leave it out", sanitizeText(text), maxThinking)
}
