package orchestrator

import (
	"context"
	"encoding/json"

	"github.com/caprouter/caprouter/contract"
)

// Static is the planner whose plan is part of the request.
type Static struct{ Raw json.RawMessage }

// Plan implements Planner.
func (s Static) Plan(context.Context, *PlanRequest) (*contract.Plan, error) {
	if len(s.Raw) == 0 {
		return nil, &PlanError{Reason: contract.ReasonPlannerNotConfigured, Message: "the planner static needs constraints.plan"}
	}
	plan, mistakes := ParsePlan(s.Raw)
	if len(mistakes) > 0 {
		return nil, &PlanError{Reason: contract.ReasonPlanInvalid, Message: "the plan is not valid", Details: mistakes}
	}
	return plan, nil
}
