package visibility

import "github.com/caprouter/caprouter/contract"

// StoredRequest describes a request whose visibility is decided.
type StoredRequest struct {
	Owner *contract.Caller // its scopes are not considered
	// Agents got a task of the request. The list survives the erasure of the
	// request's content.
	Agents []string
	// Response loads the request's current response. It is called only if the
	// other fields do not decide.
	Response func() (*contract.Response, error)
}

// MaySeeRequest reports whether the request exists for the caller.
func MaySeeRequest(caller *contract.Caller, request StoredRequest) bool {
	switch {
	case caller.SeesAll(), request.Owner.SamePrincipal(caller):
		return true
	case !request.Owner.SameTenant(caller):
		return false
	case caller.AllAgents:
		return true
	case !maySeeAgents(caller, request.Agents):
		return false
	}
	resp, err := request.Response()
	if err != nil {
		return false // its agents are unknown
	}
	return maySeeTasks(caller, resp.Tasks) && maySeePlan(caller, resp)
}

// MayEndRequest reports whether the caller may cancel or erase the request of
// the owner. To be allowed to see it is not enough.
func MayEndRequest(caller, owner *contract.Caller) bool {
	return owner.SamePrincipal(caller) || caller.SeesAll() && caller.HasScope(contract.ScopeRouteSubmit)
}

// MaySeeTenant reports whether the caller may see what belongs to the tenant of
// the owner, for example its tickets.
func MaySeeTenant(caller, owner *contract.Caller) bool {
	return caller.SeesAll() || owner.SameTenant(caller)
}

func maySeeTasks(caller *contract.Caller, tasks []contract.TaskReport) bool {
	for i := range tasks {
		if id := tasks[i].AgentID; id != "" && !MaySeeAgent(caller, id) {
			return false
		}
		for k := range tasks[i].FailedOver {
			if !MaySeeAgent(caller, tasks[i].FailedOver[k].AgentID) {
				return false
			}
		}
	}
	return true
}

// maySeePlan reports whether the caller may see all chosen agents and, if the
// request has not ended, all standbys, because these may still get a task.
func maySeePlan(caller *contract.Caller, resp *contract.Response) bool {
	d, ended := resp.Decision, resp.Status.Terminal()
	if d == nil {
		return ended
	}
	return maySeeAgents(caller, d.Chosen) && (ended || maySeeAgents(caller, d.Standby))
}

func maySeeAgents(caller *contract.Caller, agents []string) bool {
	for _, id := range agents {
		if !MaySeeAgent(caller, id) {
			return false
		}
	}
	return true
}
