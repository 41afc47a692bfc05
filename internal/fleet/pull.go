package fleet

import (
	"cmp"
	"context"
	"fmt"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
)

// CheckPull returns an error unless the caller is the agent, and an instance of it may
// pull tasks now; "" = contract.DefaultInstance. An agent that the operator's file declares
// has no instances.
//
// Errors are contract.CodeForbidden for another caller, contract.CodeNotFound if the
// instance is not registered, and contract.CodeConflict if it gets no tasks.
func (f *Fleet) CheckPull(ctx context.Context, agentID, name string, caller *contract.Caller) error {
	key := instanceKey{agentID, cmp.Or(name, contract.DefaultInstance)}
	if caller.Subject != agentID && !caller.AllScopes { // an operator does not get the texts of callers
		return &contract.Error{
			Code: contract.CodeForbidden, Message: fmt.Sprintf("the token is for %s and not for the agent %s: an agent pulls its own tasks only", caller.Subject, agentID),
		}
	}
	if err := f.authorizeOwner(key, caller); err != nil {
		return err
	}
	f.mu.Lock()
	declared, disabled := f.isDeclared(agentID), f.disabledIDs[agentID]
	i := f.roster.find(key)
	f.mu.Unlock()
	switch {
	case disabled:
		return noTasks(agentID + " is disabled")
	case declared:
		return checkDeclaredPull(f.cfg.Operator(), agentID)
	case i == nil && f.cfg.isShared(): // another process may just have registered it
		f.writing.Lock()
		defer f.writing.Unlock()
		var err error
		if i, err = f.findOrSync(ctx, key, caller); err != nil {
			return err
		}
	}
	if i == nil {
		return f.notRegistered(key)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch state := i.state(); {
	case i.registration.Endpoint.Protocol != contract.ProtocolPull:
		return noTasks(fmt.Sprintf("instance %s of %s is registered with the protocol %s", key.name, agentID, i.registration.Endpoint.Protocol))
	case state != contract.AgentActive:
		return noTasks(fmt.Sprintf("instance %s of %s is %s", key.name, agentID, state))
	}
	return nil
}

func checkDeclaredPull(d *capabilities.Definition, agentID string) error {
	for _, a := range d.Agents {
		if a.ID == agentID && a.Endpoint.Protocol != contract.ProtocolPull {
			return noTasks(agentID + " is declared in the registry file without the protocol pull")
		}
	}
	return nil
}

func noTasks(reason string) error {
	return &contract.Error{Code: contract.CodeConflict, Message: reason + ": it gets no tasks to pull"}
}
