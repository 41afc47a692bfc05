// Package config contains the configuration of the router: the keys of caprouter.yaml
// with their defaults, where their values come from, and what is valid.
//
//	flags > environment > file > defaults
//
//	cfg, err := config.Load("caprouter.yaml", os.LookupEnv) // unknown keys are errors
//	err = cfg.ValidateFile("caprouter.yaml")                // errors contain line and column
//
// Secrets are not part of it: it names the variable or the file that contains them.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/caprouter/caprouter/internal/filekind"
	"github.com/caprouter/caprouter/internal/session"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

// The default paths. Both files may be absent: the configuration then has its
// defaults, and the registry is empty until the file exists.
const (
	DefaultFile         = "caprouter.yaml"
	DefaultRegistryFile = "capabilities.yaml"
)

// Config is the content of caprouter.yaml. Default returns the values of absent
// keys. Users depend on the names of the keys.
type Config struct {
	Listen       string       `yaml:"listen"`     // host:port; port 0 picks one
	PublicURL    string       `yaml:"public_url"` // base URL of callbacks; "" = the listen address
	TLS          TLS          `yaml:"tls"`
	DataDir      string       `yaml:"data_dir" validate:"required"`
	Registry     Registry     `yaml:"registry"`
	MCP          MCP          `yaml:"mcp"`
	Orchestrator Orchestrator `yaml:"orchestrator"`
	SampleAgent  string       `yaml:"sample_agent"` // host:port on which serve runs the sample agent as well; "" = it does not
	Auth         Auth         `yaml:"auth"`
	Classifier   Classifier   `yaml:"classifier"`
	LLM          LLM          `yaml:"llm"`
	Dispatch     Dispatch     `yaml:"dispatch"`
	Limits       Limits       `yaml:"limits"`
	Store        Store        `yaml:"store"`
	Audit        Audit        `yaml:"audit"`
	Tickets      Tickets      `yaml:"tickets"`
	Redact       Redact       `yaml:"redact"`
	Session      Session      `yaml:"session"`
	Telemetry    Telemetry    `yaml:"telemetry"`
}

// Registry specifies the capability registry.
type Registry struct {
	File      string `yaml:"file"` // "" = DefaultRegistryFile, which may be absent
	HotReload bool   `yaml:"hot_reload"`
}

// Default returns the configuration without a file: the router listens on
// loopback, and classifies with a model if the environment contains its key.
func Default() Config {
	return Config{
		Listen:       "127.0.0.1:8080",
		DataDir:      "./caprouter-data",
		Registry:     Registry{HotReload: true},
		MCP:          defaultMCPConfig(),
		Orchestrator: defaultOrchestratorConfig(),
		Auth:         defaultAuthConfig(),
		Classifier:   defaultClassifierConfig(),
		LLM:          defaultLLMConfig(),
		Dispatch:     Dispatch{TimeoutMS: 30_000, MaxInFlight: 256, AllowPrivate: StringList{}, Aggregate: AggregateSections},
		Limits:       defaultLimitsConfig(),
		Store:        defaultStoreConfig(),
		Audit:        Audit{Required: true, Outcome: OutcomeInBackground},
		Redact:       Redact{Kinds: StringList{KindsDefault}, Allow: []string{}},
		Session:      Session{TTLS: 600, ClassifyTrigger: session.EveryRequest},
		Telemetry:    Telemetry{LogLevel: "info", TraceRatio: 0.01},
	}
}

// Load returns the defaults, overridden by the file and then by the environment
// (MCP_* and OTEL_*, then CAPROUTER_*). If path is empty, DefaultFile is read if
// it exists; any other file must exist. The result is not validated, because flags
// override it.
func Load(path string, lookupEnv func(string) (string, bool)) (Config, error) {
	cfg := Default()
	named := path != ""
	if !named {
		path = DefaultFile
	}
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !named:
	case err != nil:
		return cfg, fmt.Errorf("read configuration: %w", err)
	default:
		if err := strictyaml.Decode(path, data, &cfg, configOptions()...); err != nil {
			return cfg, filekind.Explain(err, filekind.Config, path, data)
		}
	}
	if err := applyMCPEnv(&cfg.MCP, lookupEnv); err != nil {
		return cfg, err
	}
	if err := applyOTelEnv(&cfg.Telemetry, lookupEnv); err != nil {
		return cfg, err
	}
	err = applyEnv(&cfg, lookupEnv)
	return cfg, err
}

// configOptions permit a word for a list, and numbers for settings that may be words.
func configOptions() []strictyaml.Option {
	return []strictyaml.Option{
		strictyaml.ScalarOrList[StringList](), strictyaml.NumberAsText[AcceptThreshold](),
		strictyaml.NumberAsText[ThinkingEffort](), strictyaml.NumberAsText[RateSetting](),
	}
}

// Schema returns the JSON Schema of caprouter.yaml.
func Schema() (map[string]any, error) {
	shape, err := newConfigShape()
	if err != nil {
		return nil, err
	}
	return strictyaml.Schema("caprouter configuration", Config{}, shape, configOptions()...), nil
}

// Validate checks all values. Each error contains the key and its valid values.
func (c *Config) Validate() error {
	return errors.Join(
		checkShape(c),
		checkListen(c.Listen, c.Auth.Mode),
		checkSampleAgent(c.SampleAgent),
		c.TLS.validate(),
		c.Auth.validate(),
		c.Classifier.validate(),
		c.Orchestrator.validate(),
		c.LLM.validate(),
		validatePublicURL(c.PublicURL, c.Dispatch.AllowPlainHTTP),
		c.Store.validate(),
		c.Tickets.Webhook.validate(),
		c.Redact.validate(),
		c.Limits.validate(),
		c.validateBudget(),
		c.Telemetry.validate(),
		c.Dispatch.validate(),
	)
}

// ValidateFile is Validate for a configuration that Load returned for path. The
// error is strictyaml.Errors: those about values in the file contain its name and their
// position, those about values of the environment or of flags do not.
func (c *Config) ValidateFile(path string) error {
	found := splitErrors(c.Validate())
	if len(found) == 0 {
		return nil
	}
	doc, inFile := readFileErrors(cmp.Or(path, DefaultFile))
	list := make(strictyaml.Errors, len(found))
	for i, err := range found {
		list[i].Detail = err.Error()
		if !inFile[list[i].Detail] {
			continue
		}
		if at := configPath(doc, list[i].Detail); len(at) > 0 {
			list[i].File = cmp.Or(path, DefaultFile)
			list[i].Line, list[i].Column = doc.Pos(at...)
		}
	}
	return list
}

// readFileErrors returns the configuration file, and the errors that it would have
// without the environment and flags.
func readFileErrors(path string) (*strictyaml.Document, map[string]bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, nil
	}
	doc, err := strictyaml.Parse(path, data)
	if err != nil {
		return nil, nil
	}
	cfg := Default()
	if err := doc.Decode(&cfg, configOptions()...); err != nil {
		return nil, nil
	}
	details := map[string]bool{}
	for _, err := range splitErrors(cfg.Validate()) {
		details[err.Error()] = true
	}
	return doc, details
}

// splitErrors returns the single errors of joined ones.
func splitErrors(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
		return nil
	case !ok:
		return []error{err}
	}
	var list []error
	for _, err := range joined.Unwrap() {
		list = append(list, splitErrors(err)...)
	}
	return list
}

// configKey is the key at the beginning of an error, for example limits.read.rps or
// auth.keys[0].alg.
var configKey = regexp.MustCompile(`^[a-z0-9_]+(\[\d+\])?(\.[a-z0-9_]+(\[\d+\])?)*`)

// configPath returns the path of the key at the beginning of an error as far as the
// document contains it.
func configPath(doc *strictyaml.Document, detail string) strictyaml.Path {
	var at strictyaml.Path
	for _, key := range strings.FieldsFunc(configKey.FindString(detail), func(r rune) bool { return strings.ContainsRune(".[]", r) }) {
		next := at.At(key)
		if i, err := strconv.Atoi(key); err == nil {
			next = at.At(i)
		}
		if !doc.Contains(next...) {
			break
		}
		at = next
	}
	return at
}

// FilePath returns the path of the registry file, and whether it may be absent.
func (c *Registry) FilePath() (path string, optional bool) {
	if c.File == "" {
		return DefaultRegistryFile, true
	}
	return c.File, false
}
