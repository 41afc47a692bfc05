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

// DefaultModel is the model of the providers gemini and genai when none is
// configured. It is a name that does not move, and the model hardly thinks by
// default: a classification is worth neither the wait nor the tokens.
const DefaultModel = "gemini-3.5-flash-lite"

// DefaultGeminiURL is where gemini and genai ask when no base URL is configured.
const DefaultGeminiURL = "https://generativelanguage.googleapis.com"

// Config is what a provider needs.
type Config struct {
	Provider       string // gemini, genai or openai; for texts only
	Model          string
	BaseURL        string // "" = the maker's own
	APIKey         Secret
	Temperature    float64 // less than 0 = not sent: for models that refuse it
	Thinking       string  // see ParseThinking
	AllowPlainHTTP bool    // sends the key over http to other hosts
	Version        string  // of caprouter, for the User-Agent
}

// Endpoint checks the base URL, standard where none is configured, and says
// whether the key may be sent there. Errors name the configuration key and never
// repeat the URL: a key may have been pasted into it.
func (c *Config) Endpoint(standard string) (*url.URL, error) {
	if !c.APIKey.fitsHeader() {
		return nil, errors.New("the key in the environment variable that llm.api_key_env names has characters that no key has, such as a space: was it copied whole?")
	}
	text := c.BaseURL
	if text == "" {
		if !c.APIKey.IsSet() {
			return nil, errors.New("there is no key: set the environment variable that llm.api_key_env names, or llm.base_url for a server that needs none")
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

var geminiModel = regexp.MustCompile(`^(models/|tunedModels/)?[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// GeminiModel returns the model for a URL of the Gemini API: models/{name}.
func (c *Config) GeminiModel() (string, error) {
	model := c.Model
	if model == "" {
		model = DefaultModel
	}
	if !geminiModel.MatchString(model) {
		return "", fmt.Errorf("llm.model %q is no name of a model; write one such as %s", clean(model), DefaultModel)
	}
	if !strings.Contains(model, "/") {
		model = "models/" + model
	}
	return model, nil
}

// RequestTemperature returns the temperature to send, nil for none.
func (c *Config) RequestTemperature() (*float32, error) {
	if !(c.Temperature <= 2) { // neither is NaN
		return nil, errors.New("llm.temperature is over 2; 0 is best for classification, less than 0 sends none")
	}
	if c.Temperature < 0 {
		return nil, nil // nothing is to be sent
	}
	t := float32(c.Temperature)
	return &t, nil
}

// The levels of thinking.
const (
	ThinkingOff     = "off"
	ThinkingMinimal = "minimal"
	ThinkingLow     = "low"
	ThinkingMedium  = "medium"
	ThinkingHigh    = "high"
)

// maxThinking is more than any model can be told.
const maxThinking = 1 << 17

// Thinking is how much a model may think before it answers. The zero value is
// the model's own default.
type Thinking struct {
	Level  string // one of the levels, or "" where Tokens says it
	Tokens int
}

// ParseThinking reads the configuration key llm.thinking: nothing, a level, or a
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
	return Thinking{}, fmt.Errorf("llm.thinking is %q; write off, minimal, low, medium, high or a number of tokens up to %d, or leave it out", clean(text), maxThinking)
}
