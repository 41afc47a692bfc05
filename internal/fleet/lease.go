package fleet

import (
	"cmp"
	"context"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
)

// Heartbeat renews the lease of an instance; "" = contract.DefaultInstance. It returns
// contract.CodeNotFound if the instance is not registered: then it must register again.
func (f *Fleet) Heartbeat(ctx context.Context, agentID, name string, caller *contract.Caller) (contract.Lease, error) {
	key := instanceKey{agentID, cmp.Or(name, contract.DefaultInstance)}
	grant, err := f.authorize(key, caller)
	if err != nil {
		return contract.Lease{}, err
	}
	lease, err := f.renewLease(key, grant)
	if err == nil || !f.cfg.isShared() {
		return lease, err
	}
	f.writing.Lock() // another process may just have registered it
	_, err = f.findOrSync(ctx, key, caller)
	f.writing.Unlock()
	if err != nil {
		return contract.Lease{}, err
	}
	return f.renewLease(key, grant)
}

// renewLease begins the lease of the instance anew.
func (f *Fleet) renewLease(key instanceKey, grant *contract.Grant) (contract.Lease, error) {
	f.mu.Lock()
	i := f.roster.find(key)
	if i == nil {
		f.mu.Unlock()
		return contract.Lease{}, f.notRegistered(key)
	}
	defer f.mu.Unlock()
	if f.roster.renew(i, f.cfg.Now()) {
		f.definition = nil
		f.wakeRun()
	}
	if f.cfg.isShared() {
		f.beats.add(key)
	}
	return leaseOf(i, grant), nil
}

// Leases returns the leases of the agent's instances, sorted by name.
func (f *Fleet) Leases(agentID string) []contract.Lease {
	grant := f.cfg.grantOf(agentID)
	f.mu.Lock()
	defer f.mu.Unlock()
	names := f.roster.instanceNames(agentID)
	leases := make([]contract.Lease, 0, len(names))
	for _, name := range names {
		if i := f.roster.find(instanceKey{agentID, name}); i != nil {
			leases = append(leases, leaseOf(i, grant))
		}
	}
	return leases
}

// leaseOf describes the lease of an instance, whose agent has the grant or none (nil).
// The caller holds mu.
func leaseOf(i *instance, grant *contract.Grant) contract.Lease {
	limited, refused := capabilities.LimitToGrant(i.registration.Entry(i.key.agentID), grant)
	if refused == nil {
		refused = []string{}
	}
	reasons := []string{}
	if len(limited.Match.Intent) == 0 {
		reasons = append(reasons, contract.ReasonNothingGranted)
	}
	return contract.Lease{
		AgentID: i.key.agentID, Instance: i.key.name, State: i.state(), Reasons: reasons, ExpiresAt: i.expiresAt.UTC(),
		HeartbeatS: float64(i.ttl().Milliseconds()/contract.HeartbeatsPerLease) / 1000, Granted: limited.Match, Refused: refused,
	}
}
