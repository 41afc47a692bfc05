package fleet

import (
	"fmt"

	"github.com/caprouter/caprouter/contract"
)

// authorize returns the grant of the agent if the caller may register the instance.
func (f *Fleet) authorize(key instanceKey, caller *contract.Caller) (*contract.Grant, error) {
	if err := f.authorizeOwner(key, caller); err != nil {
		return nil, err
	}
	f.mu.Lock()
	declared := f.isDeclared(key.agentID)
	f.mu.Unlock()
	if declared {
		return nil, &contract.Error{
			Code:    contract.CodeConflict,
			Message: key.agentID + " is declared in the operator's registry file, which has precedence, so that it needs no registration: remove it there, or register another id",
		}
	}
	grant := f.cfg.grantOf(key.agentID)
	if grant == nil {
		return nil, &contract.Error{
			Code: contract.CodeForbidden,
			Message: fmt.Sprintf("the operator's registry file grants nothing to %s: add it there, for example grants: {%s: {intents: […], domains: […]}}",
				key.agentID, key.agentID),
		}
	}
	return grant, nil
}

// authorizeOwner checks that the caller is the agent, or may act for every agent.
func (f *Fleet) authorizeOwner(key instanceKey, caller *contract.Caller) error {
	if caller.AllScopes || caller.HasScope(contract.ScopeAdmin) {
		return nil
	}
	if caller.Subject != key.agentID {
		return &contract.Error{
			Code:    contract.CodeForbidden,
			Message: fmt.Sprintf("the token is for %s and not for the agent %s: an agent registers itself only", caller.Subject, key.agentID),
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	// Subjects are unique for one issuer only.
	if a := f.roster.agents[key.agentID]; a != nil && a.hasOtherIssuer(caller.Issuer) {
		return errOtherIssuer(key)
	}
	return nil
}

// hasOtherIssuer reports whether an instance was registered with a token of another issuer.
func (a *agent) hasOtherIssuer(issuer string) bool {
	for _, i := range a.instances {
		if i.issuer != "" && i.issuer != issuer {
			return true
		}
	}
	return false
}

// IsAgent reports whether the caller is an agent: whether its subject is the id of one that
// the operator's file declares or grants, or that is registered. An agent that has a grant
// stays one when it has left, because its token may still be used. If its registration has
// another issuer, the caller is not the agent.
func (f *Fleet) IsAgent(caller *contract.Caller) bool {
	id := caller.Subject
	if caller.AllScopes {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	registered := f.roster.agents[id]
	if registered != nil && registered.hasOtherIssuer(caller.Issuer) {
		return false
	}
	return registered != nil || f.isDeclared(id) || f.cfg.grantOf(id) != nil
}

func errOtherIssuer(key instanceKey) *contract.Error {
	return &contract.Error{Code: contract.CodeForbidden, Message: key.agentID + " is registered with a token of another issuer"}
}

// isDeclared reports whether the operator's file declares the agent. The caller holds
// mu.
func (f *Fleet) isDeclared(agentID string) bool {
	if d := f.cfg.Operator(); d != f.operator {
		f.operator, f.declared = d, make(map[string]bool, len(d.Agents))
		for _, a := range d.Agents {
			f.declared[a.ID] = true
		}
	}
	return f.declared[agentID]
}

// grantOf returns the grant of the agent, nil if it has none.
func (c *Config) grantOf(agentID string) *contract.Grant {
	if g, ok := c.Operator().Grants[agentID]; ok {
		return &g
	}
	return nil
}
