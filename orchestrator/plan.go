package orchestrator

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway/schema"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

// planJSON is a plan as a planner writes it. No other keys are accepted.
type planJSON struct {
	Steps []stepJSON `json:"steps"`
}

type stepJSON struct {
	ID              string                      `json:"id"`
	Action          string                      `json:"action,omitempty"`
	MCPAction       string                      `json:"mcp_action,omitempty"` // another name of action
	Arguments       json.RawMessage             `json:"arguments,omitempty"`
	Entities        json.RawMessage             `json:"entities,omitempty"` // another name of arguments
	Rationale       string                      `json:"rationale,omitempty"`
	DependsOn       []string                    `json:"depends_on,omitempty"`
	SuccessCriteria []contract.SuccessCriterion `json:"success_criteria,omitempty"`
}

// ParsePlan decodes a plan. Pointers of the mistakes begin at the plan.
func ParsePlan(raw json.RawMessage) (*contract.Plan, []contract.ErrorDetail) {
	if len(raw) > contract.MaxPlanBytes {
		return nil, []contract.ErrorDetail{{Detail: fmt.Sprintf("is %d bytes long; at most %d are taken", len(raw), contract.MaxPlanBytes)}}
	}
	var in planJSON
	if err := strictjson.Unmarshal(raw, &in); err != nil {
		return nil, describeMistakes(err, raw, &in)
	}
	plan := &contract.Plan{Steps: make([]contract.PlanStep, len(in.Steps))}
	var mistakes []contract.ErrorDetail
	for i := range in.Steps {
		s := &in.Steps[i]
		if s.Action != "" && s.MCPAction != "" {
			mistakes = append(mistakes, contract.ErrorDetail{Pointer: fmt.Sprintf("/steps/%d/mcp_action", i), Detail: "is another name of action: use one of them"})
		}
		if s.Arguments != nil && s.Entities != nil {
			mistakes = append(mistakes, contract.ErrorDetail{Pointer: fmt.Sprintf("/steps/%d/entities", i), Detail: "is another name of arguments: use one of them"})
		}
		step := contract.PlanStep{
			ID: s.ID, Action: s.Action + s.MCPAction, Arguments: s.Arguments, Rationale: s.Rationale,
			DependsOn: s.DependsOn, SuccessCriteria: s.SuccessCriteria,
		}
		if step.Arguments == nil {
			step.Arguments = s.Entities
		}
		if step.Arguments == nil {
			step.Arguments = json.RawMessage("{}")
		}
		plan.Steps[i] = step
	}
	return plan, mistakes
}

// describeMistakes returns the mistakes of a plan that cannot be decoded.
func describeMistakes(err error, raw json.RawMessage, in *planJSON) (details []contract.ErrorDetail) {
	first, ok := errors.AsType[*strictjson.Error](err)
	if !ok {
		return []contract.ErrorDetail{{Detail: err.Error()}}
	}
	for _, e := range strictjson.Mistakes(raw, in, first) {
		details = append(details, contract.ErrorDetail{Pointer: e.Pointer, Detail: e.Detail})
	}
	return details
}

// PlanRules are the limits of a plan.
type PlanRules struct {
	MaxSteps     int
	NeedCriteria bool // at least one step needs success criteria
}

var validStepID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// CheckPlan returns the mistakes in a plan without regard to tools: limits, ids,
// dependencies, references and criteria. Pointers begin at the plan.
func CheckPlan(plan *contract.Plan, rules PlanRules) []contract.ErrorDetail {
	var c planCheck
	limit := min(rules.MaxSteps, contract.MaxPlanSteps)
	switch n := len(plan.Steps); {
	case n == 0:
		c.add("/steps", "must have at least one step")
	case n > limit:
		c.add("/steps", fmt.Sprintf("has %d steps; at most %d are executed", n, limit))
		return c.mistakes
	}
	index := map[string]int{}
	hasCriteria := false
	for i := range plan.Steps {
		s := &plan.Steps[i]
		c.checkStep(i, s, index)
		hasCriteria = hasCriteria || len(s.SuccessCriteria) > 0
	}
	for i := range plan.Steps {
		c.checkDependencies(i, &plan.Steps[i], index)
	}
	if len(c.mistakes) == 0 {
		c.checkCycles(plan)
	}
	if rules.NeedCriteria && !hasCriteria {
		c.add("/steps", "have no success_criteria, which the deterministic verifier needs")
	}
	return c.mistakes
}

// planCheck collects the mistakes in a plan.
type planCheck struct{ mistakes []contract.ErrorDetail }

func (c *planCheck) add(pointer, detail string) {
	c.mistakes = append(c.mistakes, contract.ErrorDetail{Pointer: pointer, Detail: detail})
}

func (c *planCheck) checkStep(i int, s *contract.PlanStep, index map[string]int) {
	at := fmt.Sprintf("/steps/%d", i)
	first, repeated := index[s.ID]
	switch {
	case !validStepID.MatchString(s.ID):
		c.add(at+"/id", "must be 1 to 64 letters, digits, underscores and hyphens")
	case repeated:
		c.add(at+"/id", fmt.Sprintf("is the id of step %d as well", first))
	default:
		index[s.ID] = i
	}
	if server, tool, ok := strings.Cut(s.Action, "."); !ok || server == "" || tool == "" {
		c.add(at+"/action", "must name a server and a tool, for example weather.query")
	}
	if kindOf(s.Arguments) != '{' {
		c.add(at+"/arguments", "must be an object")
	}
	if len(s.Rationale) > contract.MaxRationaleSize {
		c.add(at+"/rationale", fmt.Sprintf("is longer than %d bytes", contract.MaxRationaleSize))
	}
	if len(s.SuccessCriteria) > contract.MaxStepCriteria {
		c.add(at+"/success_criteria", fmt.Sprintf("has %d criteria; at most %d are taken", len(s.SuccessCriteria), contract.MaxStepCriteria))
		return
	}
	for n := range s.SuccessCriteria {
		if detail := checkCriterion(&s.SuccessCriteria[n]); detail != "" {
			c.add(fmt.Sprintf("%s/success_criteria/%d", at, n), detail)
		}
	}
}

// checkDependencies checks depends_on and the references of a step.
func (c *planCheck) checkDependencies(i int, s *contract.PlanStep, index map[string]int) {
	at := fmt.Sprintf("/steps/%d", i)
	for n, id := range s.DependsOn {
		switch _, ok := index[id]; {
		case !ok:
			c.add(fmt.Sprintf("%s/depends_on/%d", at, n), fmt.Sprintf("there is no step %.70q", id))
		case id == s.ID:
			c.add(fmt.Sprintf("%s/depends_on/%d", at, n), "is the step itself")
		}
	}
	refs, mistakes := referencesOf(s.Arguments, at+"/arguments")
	c.mistakes = append(c.mistakes, mistakes...)
	for _, id := range slices.Sorted(maps.Keys(refs)) {
		other, ok := index[id]
		for _, pointer := range refs[id] {
			switch {
			case !ok:
				c.add(pointer, fmt.Sprintf("refers to step %q, which does not exist", id))
			case other >= i:
				c.add(pointer, fmt.Sprintf("refers to step %q, which is not an earlier step", id))
			}
		}
	}
}

// checkCycles reports a step that depends on itself through others.
func (c *planCheck) checkCycles(plan *contract.Plan) {
	done := map[string]bool{}
	for range plan.Steps {
		for i := range plan.Steps {
			if isReady(&plan.Steps[i], done) {
				done[plan.Steps[i].ID] = true
			}
		}
	}
	for i := range plan.Steps {
		if !done[plan.Steps[i].ID] {
			c.add(fmt.Sprintf("/steps/%d/depends_on", i), fmt.Sprintf("step %q depends on itself through other steps", plan.Steps[i].ID))
			return
		}
	}
}

// isReady reports whether all steps that the step depends on are done.
func isReady(s *contract.PlanStep, done map[string]bool) bool {
	for _, id := range dependenciesOf(s) {
		if !done[id] {
			return false
		}
	}
	return true
}

// dependenciesOf returns the steps that a step depends on: depends_on and its references.
func dependenciesOf(s *contract.PlanStep) []string {
	ids := slices.Clone(s.DependsOn)
	refs, _ := referencesOf(s.Arguments, "")
	for id := range refs {
		ids = append(ids, id)
	}
	return ids
}

// checkTools returns the mistakes in a plan for these tools: unknown actions, and
// arguments that do not match the schema of the tool. Arguments with references are
// checked when their values are known. The reason is that of the first mistake. available are
// the servers that the caller permits, all if there are none.
func checkTools(plan *contract.Plan, tools []*Tool, available []string) (contract.RunReason, []contract.ErrorDetail) {
	var c planCheck
	var reason contract.RunReason
	byAction := map[string]*Tool{}
	names := make([]string, len(tools))
	for i, t := range tools {
		byAction[t.Action()], names[i] = t, t.Action()
	}
	for i := range plan.Steps {
		s := &plan.Steps[i]
		t := byAction[s.Action]
		if t == nil {
			detail := fmt.Sprintf("there is no tool %.70q, or it may not be called", s.Action)
			if server, _, _ := strings.Cut(s.Action, "."); len(available) > 0 && !slices.Contains(available, server) {
				detail = fmt.Sprintf("the server of %.70q is not in available_servers (--server)", s.Action)
			}
			if near := strictyaml.Nearest(s.Action, names); near != "" {
				detail += fmt.Sprintf("; did you mean %s?", near)
			}
			c.add(fmt.Sprintf("/steps/%d/action", i), detail)
			if reason == "" {
				reason = contract.ReasonPlanInvalid
			}
			continue
		}
		before := len(c.mistakes)
		c.checkArguments(i, s, t)
		if len(c.mistakes) > before && reason == "" {
			reason = contract.ReasonSchemaInvalid
		}
	}
	return reason, c.mistakes
}

func (c *planCheck) checkArguments(i int, s *contract.PlanStep, t *Tool) {
	if refs, _ := referencesOf(s.Arguments, ""); len(refs) > 0 || t.InputSchema == nil {
		return
	}
	at := fmt.Sprintf("/steps/%d/arguments", i)
	compiled, err := schema.Compile(t.InputSchema)
	if err != nil {
		c.add(at, "cannot be checked: the schema of the tool "+err.Error())
		return
	}
	err = compiled.Validate(s.Arguments)
	if invalid, ok := errors.AsType[*schema.InvalidError](err); ok {
		for _, d := range invalid.Details {
			c.add(at+d.Pointer, d.Detail)
		}
	} else if err != nil {
		c.add(at, err.Error())
	}
}
