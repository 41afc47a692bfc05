package orchestrator

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/caprouter/caprouter/contract"
)

// Effects of the policy.
const (
	EffectAllow = "allow"
	EffectDeny  = "deny"
	EffectGate  = "gate" // a person decides
)

// Enforcer decides whether a call may be made. It is called before every call.
type Enforcer interface {
	Judge(call *JudgedCall) PolicyVerdict
}

// JudgedCall is a call that the policy judges. Texts of tools and outputs are data.
type JudgedCall struct {
	Server    Server
	Action    string
	Arguments json.RawMessage // with the values of references
	Tool      *Tool           // nil if the server does not list it any more
	// Earlier are the calls of the run before this one, in their order. A call that is made
	// at the same time has no result.
	Earlier []contract.ToolOutput
}

// PolicyVerdict is the decision about a call.
type PolicyVerdict struct {
	Effect string
	Rule   string // the name of the rule that decided
	Reason string // for a person
}

// judge returns the verdict of the goal's constraints and of the policy.
func (x *execution) judge(c *preparedCall, earlier []contract.ToolOutput) PolicyVerdict {
	limits := &x.rec.Goal.Constraints
	if pattern, ok := matchesAny(limits.Deny, c.plan.Action); ok {
		return PolicyVerdict{Effect: EffectDeny, Rule: "constraints.deny", Reason: fmt.Sprintf("the goal excludes %s", pattern)}
	}
	if _, ok := matchesAny(limits.Allow, c.plan.Action); !ok && len(limits.Allow) > 0 {
		return PolicyVerdict{Effect: EffectDeny, Rule: "constraints.allow", Reason: "the goal does not permit the tool"}
	}
	call := &JudgedCall{Action: c.plan.Action, Arguments: c.input, Tool: c.tool, Earlier: earlier}
	if c.tool != nil {
		call.Server = x.servers[c.tool.Server]
	}
	return x.o.cfg.Enforcer.Judge(call)
}

// permits reports whether the goal's constraints permit an action.
func (x *execution) permits(action string) bool {
	limits := &x.rec.Goal.Constraints
	_, denied := matchesAny(limits.Deny, action)
	_, allowed := matchesAny(limits.Allow, action)
	return !denied && (allowed || len(limits.Allow) == 0)
}

// matchesAny returns the first pattern that matches the action. A pattern may end in *.
func matchesAny(patterns []string, action string) (string, bool) {
	for _, pattern := range patterns {
		prefix, wildcard := strings.CutSuffix(pattern, "*")
		if pattern == action || wildcard && strings.HasPrefix(action, prefix) {
			return pattern, true
		}
	}
	return "", false
}
