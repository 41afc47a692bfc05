package orchestrations

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/orchestrator"
)

// ModelConfig are the planners and verifiers that the operator permits.
type ModelConfig struct {
	// Planner and Verifier are the operator's; Kind "" = no planner, and the deterministic
	// verifier.
	Planner, Verifier contract.RunModel
	EndpointsAllowed  []string // that callers may choose; never with the operator's key
	// Open returns the planner and the verifier of a model. A model whose endpoint is the
	// caller's gets no key. Errors are *orchestrator.PlanError.
	Open func(m contract.RunModel, ownEndpoint bool) (Model, error)
}

// Model plans and verifies with a language model.
type Model interface {
	orchestrator.Planner
	orchestrator.Verifier
}

// NewModels returns the planners and verifiers of a Service.
func NewModels(cfg ModelConfig) Models {
	cfg.Verifier.Kind = cmp.Or(cfg.Verifier.Kind, contract.VerifierDeterministic)
	return &models{cfg}
}

type models struct{ cfg ModelConfig }

// Describe implements Models.
func (m *models) Describe(c *contract.GoalConstraints) (planner, verifier contract.RunModel, err error) {
	forbidden := &contract.Error{Code: contract.CodeForbidden, Message: "the endpoint of a model is not permitted"}
	for pointer, endpoint := range map[string]string{"/constraints/planner_endpoint": c.PlannerEndpoint, "/constraints/verifier_endpoint": c.VerifierEndpoint} {
		if endpoint != "" && !slices.Contains(m.cfg.EndpointsAllowed, endpoint) {
			forbidden.Add(pointer, "is not in orchestrator.endpoints_allowed")
		}
	}
	if len(forbidden.Details) > 0 {
		return planner, verifier, forbidden
	}
	return m.planner(c), m.verifier(c), nil
}

func (m *models) planner(c *contract.GoalConstraints) contract.RunModel {
	if c.PlannerKind == contract.PlannerStatic || c.PlannerKind == "" && len(c.Plan) > 0 {
		return contract.RunModel{Kind: contract.PlannerStatic}
	}
	return choose(m.cfg.Planner, contract.RunModel{Kind: c.PlannerKind, Endpoint: c.PlannerEndpoint, Model: c.PlannerModel})
}

func (m *models) verifier(c *contract.GoalConstraints) contract.RunModel {
	if c.VerifierKind == contract.VerifierDeterministic {
		return contract.RunModel{Kind: contract.VerifierDeterministic}
	}
	return choose(m.cfg.Verifier, contract.RunModel{Kind: c.VerifierKind, Endpoint: c.VerifierEndpoint, Model: c.VerifierModel})
}

// choose returns the model that the caller asks for. What it leaves open is as the operator
// has configured it, unless that belongs to another kind.
func choose(operator, caller contract.RunModel) contract.RunModel {
	if caller.Kind != "" && caller.Kind != operator.Kind {
		return caller
	}
	return contract.RunModel{
		Kind: operator.Kind, Endpoint: cmp.Or(caller.Endpoint, operator.Endpoint), Model: cmp.Or(caller.Model, operator.Model),
		PromptVersion: operator.PromptVersion,
	}
}

// Planner implements orchestrator.Models.
func (m *models) Planner(c *contract.GoalConstraints) (orchestrator.Planner, error) {
	chosen := m.planner(c)
	if chosen.Kind == contract.PlannerStatic {
		return orchestrator.Static{Raw: c.Plan}, nil
	}
	return m.open(chosen, c.PlannerEndpoint)
}

// Verifier implements orchestrator.Models.
func (m *models) Verifier(c *contract.GoalConstraints) (orchestrator.Verifier, error) {
	chosen := m.verifier(c)
	if chosen.Kind == contract.VerifierDeterministic {
		return orchestrator.Deterministic{}, nil
	}
	return m.open(chosen, c.VerifierEndpoint)
}

func (m *models) open(chosen contract.RunModel, callersEndpoint string) (Model, error) {
	if chosen.Kind == "" {
		return nil, &orchestrator.PlanError{
			Reason: contract.ReasonPlannerNotConfigured, Message: "no planner is configured: set orchestrator.planner.kind, or send a plan with planner_kind static",
		}
	}
	if m.cfg.Open == nil {
		return nil, &orchestrator.PlanError{Reason: contract.ReasonPlannerNotConfigured, Message: fmt.Sprintf("no model of kind %s is configured", chosen.Kind)}
	}
	return m.cfg.Open(chosen, callersEndpoint == "")
}
