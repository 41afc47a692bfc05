package router

import (
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/audit"
)

// ownerOf is the principal whose request a record of the trail is of.
func ownerOf(rec *audit.Record) *contract.Caller {
	return &contract.Caller{Tenant: rec.Tenant, Subject: rec.Subject, Issuer: rec.Issuer}
}

// mayEnd reports whether the caller may cancel or erase the request: it is its own,
// or the caller sees all. That somebody may see a request is not enough.
func (f *found) mayEnd(caller *contract.Caller) bool {
	return f.owner.Is(caller) || caller.SeesAll() && caller.HasScope(contract.ScopeRouteSubmit)
}

func notYours(what string) error {
	return &contract.Error{Code: contract.CodeForbidden, Message: "only who sent the request, or an administrator, may " + what + " it"}
}

// visibleTo reports whether the request is there for the caller: its own always
// is, one of another tenant never. One of another principal of the tenant is,
// where the caller may know of every agent that works on it.
func (f *found) visibleTo(caller *contract.Caller, id string) bool {
	switch {
	case caller.SeesAll(), f.owner.Is(caller):
		return true
	case !f.owner.SameTenant(caller):
		return false
	case caller.AllAgents:
		return true
	}
	for _, rec := range []*audit.Record{f.outcome, f.decision} {
		if rec != nil && !maySee(caller, rec.Agents) { // also of what was erased
			return false
		}
	}
	resp, err := f.response(id)
	if err != nil {
		return false // nobody knows who worked on it
	}
	return maySee(caller, working(nil, resp.Tasks)) && mayFollow(caller, resp)
}

// mayFollow reports whether the caller may know of every agent that was chosen
// and, of a request that goes on, of every one that may still get a task.
func mayFollow(caller *contract.Caller, resp *contract.Response) bool {
	d, ended := resp.Decision, resp.Status.Terminal()
	if d == nil {
		return ended
	}
	return maySee(caller, d.Chosen) && (ended || maySee(caller, d.Standby))
}

func maySee(caller *contract.Caller, agents []string) bool {
	for _, id := range agents {
		if !caller.MaySee(id) {
			return false
		}
	}
	return true
}
