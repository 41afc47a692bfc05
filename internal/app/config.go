package app

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/caprouter/caprouter/internal/egress"
	"github.com/caprouter/caprouter/internal/filekind"
	"github.com/caprouter/caprouter/internal/session"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

// The default paths. Both files may be absent: the configuration then has its
// defaults, and the registry is empty until the file exists.
const (
	DefaultConfigFile   = "caprouter.yaml"
	DefaultRegistryFile = "capabilities.yaml"
)

// Config is the content of caprouter.yaml. DefaultConfig returns the values of absent
// keys. Users depend on the names of the keys.
type Config struct {
	Listen       string             `yaml:"listen"`     // host:port; port 0 picks one
	PublicURL    string             `yaml:"public_url"` // base URL of callbacks; "" = the listen address
	TLS          TLSConfig          `yaml:"tls"`
	DataDir      string             `yaml:"data_dir" validate:"required"`
	Registry     RegistryConfig     `yaml:"registry"`
	MCP          MCPConfig          `yaml:"mcp"`
	Orchestrator OrchestratorConfig `yaml:"orchestrator"`
	SampleAgent  string             `yaml:"sample_agent"` // host:port on which serve runs the sample agent as well; "" = it does not
	Auth         AuthConfig         `yaml:"auth"`
	Classifier   ClassifierConfig   `yaml:"classifier"`
	LLM          LLMConfig          `yaml:"llm"`
	Dispatch     DispatchConfig     `yaml:"dispatch"`
	Limits       LimitsConfig       `yaml:"limits"`
	Store        StoreConfig        `yaml:"store"`
	Audit        AuditConfig        `yaml:"audit"`
	Tickets      TicketsConfig      `yaml:"tickets"`
	Redact       RedactConfig       `yaml:"redact"`
	Session      SessionConfig      `yaml:"session"`
	Telemetry    TelemetryConfig    `yaml:"telemetry"`
}

// RegistryConfig specifies the capability registry.
type RegistryConfig struct {
	File      string `yaml:"file"` // "" = DefaultRegistryFile, which may be absent
	HotReload bool   `yaml:"hot_reload"`
}

// DispatchConfig specifies how tasks are sent to agents.
type DispatchConfig struct {
	TimeoutMS      int        `yaml:"timeout_ms" validate:"range=1 600000"`    // of a request without a timeout
	MaxInFlight    int        `yaml:"max_in_flight" validate:"range=1 100000"` // tasks of all agents together
	TokenReuseS    int        `yaml:"token_reuse_s" validate:"range=0 3600"`   // 0 = one token a task
	AllowPlainHTTP bool       `yaml:"allow_plain_http"`                        // send tokens to other hosts without TLS
	AllowPrivate   StringList `yaml:"allow_private"`                           // private ranges that self-registered agents may use
	Aggregate      string     `yaml:"aggregate" validate:"oneof=sections"`
}

// TelemetryConfig configures the log and tracing.
type TelemetryConfig struct {
	LogLevel     string  `yaml:"log_level" validate:"oneof=debug info warn error"` // debug, info, warn or error
	OTLPEndpoint string  `yaml:"otlp_endpoint"`                                    // URL of an OTLP/HTTP receiver of spans; "" = no tracing
	TraceRatio   float64 `yaml:"trace_ratio"`                                      // part of the traces to record that callers do not decide about, 0 to 1
}

// DefaultConfig returns the configuration without a file: the router listens on
// loopback, and classifies with a model if the environment contains its key.
func DefaultConfig() Config {
	return Config{
		Listen:       "127.0.0.1:8080",
		DataDir:      "./caprouter-data",
		Registry:     RegistryConfig{HotReload: true},
		MCP:          defaultMCPConfig(),
		Orchestrator: defaultOrchestratorConfig(),
		Auth:         defaultAuthConfig(),
		Classifier:   defaultClassifierConfig(),
		LLM:          defaultLLMConfig(),
		Dispatch:     DispatchConfig{TimeoutMS: 30_000, MaxInFlight: 256, AllowPrivate: StringList{}, Aggregate: "sections"},
		Limits:       defaultLimitsConfig(),
		Store:        defaultStoreConfig(),
		Audit:        AuditConfig{Required: true, Outcome: outcomeInBackground},
		Redact:       RedactConfig{Kinds: StringList{kindsDefault}, Allow: []string{}},
		Session:      SessionConfig{TTLS: 600, ClassifyTrigger: session.EveryRequest},
		Telemetry:    TelemetryConfig{LogLevel: "info", TraceRatio: 0.01},
	}
}

// LoadConfig returns the defaults, overridden by the file and then by the environment
// (MCP_* and OTEL_*, then CAPROUTER_*). If path is empty, DefaultConfigFile is read if
// it exists; any other file must exist. The result is not validated, because flags
// override it.
func LoadConfig(path string, lookupEnv func(string) (string, bool)) (Config, error) {
	cfg := DefaultConfig()
	named := path != ""
	if !named {
		path = DefaultConfigFile
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

// ConfigSchema returns the JSON Schema of caprouter.yaml.
func ConfigSchema() (map[string]any, error) {
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
		errorOf(parsePrefixes(c.Dispatch.AllowPrivate)),
	)
}

// ValidateFile is Validate for a configuration that LoadConfig returned for path. The
// error is strictyaml.Errors: those about values in the file contain its name and their
// position, those about values of the environment or of flags do not.
func (c *Config) ValidateFile(path string) error {
	found := splitErrors(c.Validate())
	if len(found) == 0 {
		return nil
	}
	doc, inFile := readFileErrors(cmp.Or(path, DefaultConfigFile))
	list := make(strictyaml.Errors, len(found))
	for i, err := range found {
		list[i].Detail = err.Error()
		if !inFile[list[i].Detail] {
			continue
		}
		if at := configPath(doc, list[i].Detail); len(at) > 0 {
			list[i].File = cmp.Or(path, DefaultConfigFile)
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
	cfg := DefaultConfig()
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

// filePath returns the path of the registry file, and whether it may be absent.
func (c *RegistryConfig) filePath() (path string, optional bool) {
	if c.File == "" {
		return DefaultRegistryFile, true
	}
	return c.File, false
}

func (c *DispatchConfig) timeout() time.Duration {
	return time.Duration(c.TimeoutMS) * time.Millisecond
}

func (c *TelemetryConfig) validate() error {
	var errs error
	if !(c.TraceRatio >= 0 && c.TraceRatio <= 1) {
		errs = fmt.Errorf("telemetry.trace_ratio is %v: write the part of the traces to record, from 0 to 1 (0.01)", c.TraceRatio)
	}
	if c.OTLPEndpoint == "" {
		return errs
	}
	u, err := url.Parse(c.OTLPEndpoint)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		err = errors.New("telemetry.otlp_endpoint: is not an http or https URL: write the address of a receiver of OTLP over HTTP, for example http://127.0.0.1:4318")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		err = errors.New("telemetry.otlp_endpoint: must not contain a user, a query or a fragment: set credentials with OTEL_EXPORTER_OTLP_HEADERS")
	}
	return errors.Join(errs, err)
}

// tracesPath is the path of an OTLP receiver for spans.
const tracesPath = "/v1/traces"

// tracesURL returns the address for spans, "" for none.
func (c *TelemetryConfig) tracesURL() string {
	if u, err := url.Parse(c.OTLPEndpoint); err == nil && c.OTLPEndpoint != "" && u.Path == "" {
		return c.OTLPEndpoint + tracesPath
	}
	return c.OTLPEndpoint
}

// checkHeaders refuses to send credentials over plain http to another machine.
func (c *TelemetryConfig) checkHeaders(allowPlain bool, lookup func(string) (string, bool)) error {
	u, err := url.Parse(c.OTLPEndpoint)
	if err != nil || u.Scheme != "http" || egress.IsLoopback(u.Hostname()) || allowPlain {
		return nil //nolint:nilerr // validate has checked the URL
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} {
		if value, ok := lookup(name); ok && value != "" {
			return fmt.Errorf("telemetry.otlp_endpoint: the headers of %s would leave this machine without encryption: use https, or set dispatch.allow_plain_http", name)
		}
	}
	return nil
}
