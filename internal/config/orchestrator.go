package config

import (
	"fmt"
	"net/url"

	"github.com/caprouter/caprouter/contract"
)

// Orchestrator specifies how goals are pursued with the tools of MCP servers.
type Orchestrator struct {
	Planner          Planner    `yaml:"planner"`
	Verifier         Verifier   `yaml:"verifier"`
	EndpointsAllowed StringList `yaml:"endpoints_allowed"` // of models that callers may choose; they never get the key of the operator
	PolicyFile       string     `yaml:"policy_file"`       // "" = the default rules
	OnGate           string     `yaml:"on_gate" validate:"oneof=wait block"`
	GateTTLS         int        `yaml:"gate_ttl_s" validate:"range=1 604800"`
	ApproveOwn       bool       `yaml:"approve_own"` // callers may decide about the gates of their own runs
	Budgets          Budget     `yaml:"budgets"`
}

// Planner is the model that plans.
type Planner struct {
	Kind     string `yaml:"kind" validate:"omitempty,oneof=static gemini genai openai"` // "" = only callers that send a plan have one
	Endpoint string `yaml:"endpoint"`                                                   // "" = llm.base_url
	Model    string `yaml:"model"`                                                      // "" = llm.model
}

// IsModel reports whether a model plans. Otherwise only goals with a plan are pursued, and no
// task of an agent with the protocol orchestrator.
func (p *Planner) IsModel() bool { return p.Kind != "" && p.Kind != contract.PlannerStatic }

// Verifier is what verifies the outputs: the success criteria of the plan, and a
// model if one is configured.
type Verifier struct {
	Kind     string `yaml:"kind" validate:"oneof=deterministic gemini genai openai"`
	Endpoint string `yaml:"endpoint"`
	Model    string `yaml:"model"`
}

// Budget limits a run.
type Budget struct {
	Steps     int `yaml:"steps" validate:"range=1 100"`           // of all plans together
	Replans   int `yaml:"replans" validate:"range=0 20"`          // plans after the first one
	Retries   int `yaml:"retries" validate:"range=0 100"`         // repeated calls, of all steps together
	TimeoutMS int `yaml:"timeout_ms" validate:"range=1 86400000"` // without the time that a gate waits
}

func defaultOrchestratorConfig() Orchestrator {
	return Orchestrator{
		Verifier: Verifier{Kind: contract.VerifierDeterministic}, EndpointsAllowed: StringList{}, OnGate: GateWait, GateTTLS: 3600,
		Budgets: Budget{Steps: 20, Replans: 2, Retries: 3, TimeoutMS: 300_000},
	}
}

// Values of Orchestrator.OnGate.
const (
	GateWait  = "wait"
	GateBlock = "block"
)

func (c *Orchestrator) validate() error {
	for _, endpoint := range c.EndpointsAllowed {
		if u, err := url.Parse(endpoint); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return fmt.Errorf("orchestrator.endpoints_allowed: %q is not an http or https URL", endpoint)
		}
	}
	return nil
}
