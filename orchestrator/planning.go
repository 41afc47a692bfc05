package orchestrator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/plaintext"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// plan makes a plan.
func (x *execution) plan(ctx context.Context) error {
	if err := x.ensureTools(ctx); err != nil {
		return x.abort(ctx, err)
	}
	rules := PlanRules{MaxSteps: x.o.cfg.Budgets.Steps - len(x.rec.Outputs), NeedCriteria: x.rec.Verifier.Kind == contract.VerifierDeterministic}
	plan, err := x.makePlan(ctx, rules)
	if err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the end of the context ends the run
		}
		failed, ok := errors.AsType[*PlanError](err)
		if !ok {
			return x.abort(ctx, err)
		}
		return x.rejectPlan(failed)
	}
	raw, err := strictjson.Marshal(plan)
	if err != nil {
		return x.abort(ctx, err)
	}
	sum := sha256.Sum256(raw)
	event := EventPlanReady
	if x.rec.Goal.Constraints.PlanOnly {
		event = EventPlanReturned
	}
	return x.advance(event, contract.RunEvent{Detail: plaintext.CountNoun(len(plan.Steps), "step")}, func(r *Record) {
		r.Plans++
		r.Plan, r.Hash, r.Steps = plan, hex.EncodeToString(sum[:]), make([]Step, len(plan.Steps))
	})
}

// makePlan returns a valid plan.
func (x *execution) makePlan(ctx context.Context, rules PlanRules) (*contract.Plan, error) {
	if rules.MaxSteps <= 0 {
		return nil, &PlanError{Reason: contract.ReasonStepBudget, Message: fmt.Sprintf("the budget of %d steps is used up", x.o.cfg.Budgets.Steps)}
	}
	planner, err := x.o.cfg.Models.Planner(&x.rec.Goal.Constraints)
	if err != nil {
		return nil, err
	}
	usable := slices.DeleteFunc(slices.Clone(x.tools.list), func(t *Tool) bool { return t.Error != "" || !x.rec.permits(t.Action()) })
	plan, err := planner.Plan(ctx, &PlanRequest{
		Goal: x.rec.Goal.Goal, EnvContext: x.rec.Goal.EnvContext, Tools: usable, MaxSteps: rules.MaxSteps, NeedCriteria: rules.NeedCriteria,
		Previous: x.rec.Plan, Outputs: x.rec.Outputs, Problems: x.rec.Errors,
	})
	if err != nil {
		return nil, err
	}
	if mistakes := CheckPlan(plan, rules); len(mistakes) > 0 {
		return nil, &PlanError{Reason: contract.ReasonPlanInvalid, Message: "the plan is not valid", Details: mistakes}
	}
	available := x.rec.Goal.AvailableServers
	if x.rec.Agent != "" { // the caller has not written the goal
		available = nil
	}
	// A tool that the caller excludes is known: it is the policy that denies its call.
	if reason, mistakes := checkTools(plan, x.tools.list, available); len(mistakes) > 0 {
		return nil, &PlanError{Reason: reason, Message: "the plan does not match the tools", Details: mistakes}
	}
	return plan, nil
}

// rejectPlan asks for another plan, or ends the run.
func (x *execution) rejectPlan(failed *PlanError) error {
	failure := contract.RunError{Reason: failed.Reason, Message: failed.Message, Details: failed.Details}
	repairable := failed.Reason == contract.ReasonPlanInvalid || failed.Reason == contract.ReasonSchemaInvalid
	if !repairable || !x.mayReplan(x.rec.Plans+1) {
		return x.fail(EventPlanFailed, failure)
	}
	return x.advance(EventPlanRejected, contract.RunEvent{Detail: failed.Error()}, func(r *Record) {
		r.Plans++
		r.Plan, r.Steps, r.Hash = nil, nil, ""
		r.Errors = append(r.Errors, failure)
	})
}

// mayReplan reports whether the budget permits another plan after a number of plans, which
// only a model makes.
func (x *execution) mayReplan(plans int) bool {
	return x.rec.Planner.Kind != contract.PlannerStatic && plans <= x.o.cfg.Budgets.Replans
}
