package orchestrations

import (
	"cmp"
	"errors"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/orchestrator"
)

// describeModels returns the planner and the verifier of a run: those that the constraints
// name, otherwise those of the operator.
func (s *Service) describeModels(c *contract.GoalConstraints) (planner, verifier contract.RunModel, err error) {
	planner = chooseModel(s.cfg.Planner, contract.RunModel{Kind: c.PlannerKind, Endpoint: c.PlannerEndpoint, Model: c.PlannerModel})
	if c.PlannerKind == "" && len(c.Plan) > 0 || planner.Kind == contract.PlannerStatic {
		planner = contract.RunModel{Kind: contract.PlannerStatic}
	}
	verifier = chooseModel(s.cfg.Verifier, contract.RunModel{Kind: c.VerifierKind, Endpoint: c.VerifierEndpoint, Model: c.VerifierModel})
	verifier.Kind = cmp.Or(verifier.Kind, contract.VerifierDeterministic)
	if verifier.Kind == contract.VerifierDeterministic {
		verifier = contract.RunModel{Kind: contract.VerifierDeterministic}
	}
	return planner, verifier, s.checkEndpoints(c)
}

// chooseModel returns the model of the operator, unless the caller has chosen another kind or
// endpoint.
func chooseModel(operator, caller contract.RunModel) contract.RunModel {
	if caller.Endpoint != "" || caller.Kind != "" && caller.Kind != operator.Kind {
		return contract.RunModel{Kind: cmp.Or(caller.Kind, operator.Kind), Endpoint: caller.Endpoint, Model: caller.Model, PromptVersion: operator.PromptVersion}
	}
	operator.Model = cmp.Or(caller.Model, operator.Model)
	return operator
}

// checkEndpoints rejects endpoints of models that the operator does not permit, before
// anything is stored or sent.
func (s *Service) checkEndpoints(c *contract.GoalConstraints) error {
	forbidden := &contract.Error{Code: contract.CodeForbidden, Message: "the endpoint of a model is not permitted"}
	check := func(pointer, endpoint string, open func() error) {
		if endpoint == "" {
			return
		}
		if e, ok := errors.AsType[*orchestrator.PlanError](open()); ok {
			forbidden.Add(pointer, e.Message)
		}
	}
	check("/constraints/planner_endpoint", c.PlannerEndpoint, func() error { _, err := s.cfg.Models.Planner(c); return err })
	check("/constraints/verifier_endpoint", c.VerifierEndpoint, func() error { _, err := s.cfg.Models.Verifier(c); return err })
	if len(forbidden.Details) > 0 {
		return forbidden
	}
	return nil
}
