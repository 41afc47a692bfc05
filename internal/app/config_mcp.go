package app

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway/pins"
)

// DefaultMCPFile is the registry file of MCP servers, which may be absent.
const DefaultMCPFile = "mcp.json"

// MCPConfig specifies the MCP servers and how their tools are called.
type MCPConfig struct {
	File             string `yaml:"file"` // "" = DefaultMCPFile, which may be absent
	HotReload        bool   `yaml:"hot_reload"`
	DefaultTimeoutMS int    `yaml:"default_timeout_ms" validate:"range=1 600000"` // of an attempt to call a tool
	CircuitBreaker   bool   `yaml:"circuit_breaker"`
	Pins             string `yaml:"pins" validate:"oneof=first_use approve off"` // whether changed definitions of tools need an approval: see package pins
}

func defaultMCPConfig() MCPConfig {
	return MCPConfig{HotReload: true, DefaultTimeoutMS: 30_000, CircuitBreaker: true, Pins: pins.FirstUse}
}

// filePath returns the path of the registry file of MCP servers, and whether it may be
// absent.
func (c *MCPConfig) filePath() (path string, optional bool) {
	if c.File == "" {
		return DefaultMCPFile, true
	}
	return strings.TrimPrefix(c.File, "classpath:"), false
}

func (c *MCPConfig) timeout() time.Duration {
	return time.Duration(c.DefaultTimeoutMS) * time.Millisecond
}

// applyMCPEnv sets the keys whose variables other programs use as well. CAPROUTER_MCP_*
// has precedence.
func applyMCPEnv(c *MCPConfig, lookup func(string) (string, bool)) error {
	if lookup == nil {
		return nil
	}
	if file, ok := lookup("MCP_REGISTRY_FILE"); ok {
		c.File = strings.TrimPrefix(file, "classpath:")
	}
	for name, key := range map[string]*bool{"MCP_REGISTRY_HOT_RELOAD": &c.HotReload, "MCP_CIRCUIT_BREAKER_ENABLED": &c.CircuitBreaker} {
		text, ok := lookup(name)
		if !ok {
			continue
		}
		value, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("environment %s: %q is not true or false", name, text)
		}
		*key = value
	}
	if text, ok := lookup("MCP_DEFAULT_TIMEOUT_MS"); ok {
		ms, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("environment MCP_DEFAULT_TIMEOUT_MS: %q is not a whole number", text)
		}
		c.DefaultTimeoutMS = ms
	}
	return nil
}

// OrchestratorConfig specifies how goals are pursued with the tools of MCP servers.
type OrchestratorConfig struct {
	Planner          PlannerConfig  `yaml:"planner"`
	Verifier         VerifierConfig `yaml:"verifier"`
	EndpointsAllowed StringList     `yaml:"endpoints_allowed"` // of models that callers may choose; they never get the key of the operator
	PolicyFile       string         `yaml:"policy_file"`       // "" = the default rules
	OnGate           string         `yaml:"on_gate" validate:"oneof=wait block"`
	GateTTLS         int            `yaml:"gate_ttl_s" validate:"range=1 604800"`
	ApproveOwn       bool           `yaml:"approve_own"` // callers may decide about the gates of their own runs
	Budgets          BudgetConfig   `yaml:"budgets"`
}

// PlannerConfig is the model that plans.
type PlannerConfig struct {
	Kind     string `yaml:"kind" validate:"omitempty,oneof=static gemini genai openai"` // "" = only callers that send a plan have one
	Endpoint string `yaml:"endpoint"`                                                   // "" = llm.base_url
	Model    string `yaml:"model"`                                                      // "" = llm.model
}

// VerifierConfig is what verifies the outputs: the success criteria of the plan, and a
// model if one is configured.
type VerifierConfig struct {
	Kind     string `yaml:"kind" validate:"oneof=deterministic gemini genai openai"`
	Endpoint string `yaml:"endpoint"`
	Model    string `yaml:"model"`
}

// BudgetConfig limits a run.
type BudgetConfig struct {
	Steps     int `yaml:"steps" validate:"range=1 100"`           // of all plans together
	Replans   int `yaml:"replans" validate:"range=0 20"`          // plans after the first one
	Retries   int `yaml:"retries" validate:"range=0 100"`         // repeated calls, of all steps together
	TimeoutMS int `yaml:"timeout_ms" validate:"range=1 86400000"` // without the time that a gate waits
}

func defaultOrchestratorConfig() OrchestratorConfig {
	return OrchestratorConfig{
		Verifier: VerifierConfig{Kind: contract.VerifierDeterministic}, EndpointsAllowed: StringList{}, OnGate: gateWait, GateTTLS: 3600,
		Budgets: BudgetConfig{Steps: 20, Replans: 2, Retries: 3, TimeoutMS: 300_000},
	}
}

// Values of OrchestratorConfig.OnGate.
const (
	gateWait  = "wait"
	gateBlock = "block"
)

func (c *OrchestratorConfig) validate() error {
	for _, endpoint := range c.EndpointsAllowed {
		if u, err := url.Parse(endpoint); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return fmt.Errorf("orchestrator.endpoints_allowed: %q is not an http or https URL", endpoint)
		}
	}
	return nil
}
