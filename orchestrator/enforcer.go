package orchestrator

import (
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/orchestrator/policy"
)

// Enforcer decides whether a call may be made. It is called before every call.
// *policy.Policy implements it.
type Enforcer interface {
	Judge(call *policy.Call) policy.Verdict
}

// judge returns the verdict about a call. earlier are the calls of the run before it; one
// that is made at the same time has no result.
func (x *execution) judge(c *preparedCall, earlier []contract.ToolOutput) policy.Verdict {
	goal := &x.rec.Goal
	call := &policy.Call{
		Action: c.plan.Action, Arguments: c.input, Goal: goal.Goal, EnvContext: goal.EnvContext,
		Allow: goal.Constraints.Allow, Deny: goal.Constraints.Deny,
	}
	call.Server, call.Tool, _ = strings.Cut(c.plan.Action, ".")
	if t := c.tool; t != nil {
		server := x.servers[t.Server]
		call.Server, call.Tool, call.Description, call.InputSchema = t.Server, t.Name, t.Description, t.InputSchema
		call.Annotations, call.Transport, call.Host = policy.ParseAnnotations(t.Annotations), server.Transport, server.Host
	}
	for i := range earlier {
		call.Earlier = append(call.Earlier, policy.Step{
			Action: earlier[i].Action, Arguments: earlier[i].Arguments, Output: outputValue(earlier[i].Result),
		})
	}
	return x.o.cfg.Enforcer.Judge(call)
}

// permits reports whether the goal's constraints permit an action, so that a planner does
// not plan with a tool that the policy would deny.
func (x *execution) permits(action string) bool {
	limits := &x.rec.Goal.Constraints
	return !policy.MatchesAny(limits.Deny, action) && (len(limits.Allow) == 0 || policy.MatchesAny(limits.Allow, action))
}
