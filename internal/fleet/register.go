package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/store"
)

// Registered is the outcome of Register.
type Registered struct {
	Lease   contract.Lease
	ETag    string // of the registration
	Created bool   // there was none of this instance
}

// Register adds an instance of the agent, or replaces what it has declared, and begins
// its lease. If ifMatch is not "", it is the value of If-Match: a list of ETags that
// contains that of the instance's registration, or "*" for any. The registration is checked already: see
// capabilities.CheckRegistration.
//
// Errors are contract.CodeForbidden without a grant, contract.CodeConflict if the
// operator declares the agent, contract.CodeInvalidRequest if its address cannot be
// called, and contract.CodePreconditionFailed.
func (f *Fleet) Register(ctx context.Context, agentID string, r contract.Registration, caller *contract.Caller, ifMatch string) (Registered, error) {
	key := instanceKey{agentID, cmp.Or(r.Instance, contract.DefaultInstance)}
	f.writing.Lock()
	defer f.writing.Unlock()
	grant, err := f.authorize(key, caller)
	if err != nil {
		return Registered{}, err
	}
	if err := f.checkEndpoint(key, &r.Endpoint); err != nil {
		return Registered{}, err
	}
	if ifMatch != "" && f.isShared() { // it may be the ETag of what another process has just written
		if err := f.syncInstance(ctx, key); err != nil {
			return Registered{}, err
		}
	}
	f.mu.Lock()
	current, full := f.roster.find(key), f.roster.isFull(agentID)
	f.mu.Unlock()
	switch {
	case ifMatch != "" && (current == nil || !matchesETag(ifMatch, current.revision)):
		return Registered{}, errPrecondition()
	case current == nil && full:
		return Registered{}, &contract.Error{
			Code:    contract.CodeConflict,
			Message: fmt.Sprintf("%s has %d instances, which is the limit: let some leave or expire", agentID, maxInstances),
		}
	}
	record := registrationRecord{Registration: r}
	if caller.Subject == agentID { // else it is an operator
		record.Issuer = caller.Issuer
	}
	if current != nil && current.hasContent(&record) {
		if lease, err := f.renewLease(key, grant); err == nil { // else it was removed meanwhile
			return Registered{Lease: lease, ETag: etagOf(current.revision)}, nil
		}
	}
	f.mu.Lock()
	err = f.roster.checkQuota(key, &record)
	f.mu.Unlock()
	if err != nil {
		return Registered{}, err
	}
	revision, err := f.storeRegistration(ctx, key, &record, current, ifMatch)
	if err != nil {
		return Registered{}, err
	}
	registered := Registered{ETag: etagOf(revision), Created: current == nil}
	f.changeRoster(func(r *roster, now time.Time) {
		registered.Lease = f.leaseOf(r.put(record.instance(key, revision), now), grant)
	})
	f.cfg.Logger.InfoContext(ctx, "agent registered", "agent", agentID, "instance", key.name, "replaced", !registered.Created)
	if slices.Contains(registered.Lease.Reasons, contract.ReasonNothingGranted) {
		f.cfg.Logger.WarnContext(ctx, "a registered agent gets no tasks: its grant contains none of its intents", "agent", agentID, "instance", key.name)
	}
	f.cfg.OnChange(ctx, Change{ChangeRegister, agentID, key.name, caller})
	return registered, nil
}

// checkEndpoint returns an error if the agent cannot be reached at the endpoint, or if its
// other instances have another protocol: then it would depend on the instance what is
// recorded before a task is given out.
func (f *Fleet) checkEndpoint(key instanceKey, e *contract.Endpoint) error {
	f.mu.Lock()
	other := f.roster.findOtherProtocol(key, e.Protocol)
	f.mu.Unlock()
	if other != nil {
		return &contract.Error{Code: contract.CodeConflict, Message: fmt.Sprintf(
			"instance %s of %s has the protocol %s, and all instances of an agent have the same: let it leave first",
			other.key.name, key.agentID, other.registration.Endpoint.Protocol)}
	}
	if e.Protocol != contract.ProtocolHTTP {
		return nil
	}
	if err := f.cfg.CheckAddress(e.URL); err != nil {
		return &contract.Error{
			Code: contract.CodeInvalidRequest, Message: "the registration is not valid",
			Details: []contract.ErrorDetail{{Pointer: "/endpoint/url", Detail: err.Error()}},
		}
	}
	return nil
}

// hasContent reports whether the instance has registered the same already.
func (i *instance) hasContent(r *registrationRecord) bool {
	return !i.draining && i.issuer == r.Issuer && reflect.DeepEqual(i.registration, r.Registration)
}

// anyETag is the value of If-Match for any registration.
const anyETag = "*"

// matchesETag reports whether the value of If-Match contains the ETag of the revision, by
// strong comparison (RFC 9110 §13.1.1).
func matchesETag(ifMatch string, revision uint64) bool {
	for candidate := range strings.SplitSeq(ifMatch, ",") {
		candidate = strings.TrimSpace(candidate)
		if candidate == anyETag || candidate == etagOf(revision) {
			return true
		}
	}
	return false
}

func errPrecondition() error {
	return &contract.Error{Code: contract.CodePreconditionFailed, Message: "If-Match is not the ETag of this registration"}
}

// storeRegistration writes the record and returns its revision. With an ETag it replaces
// only the current registration, because another process may write one at the same
// time; without, the last write wins.
func (f *Fleet) storeRegistration(ctx context.Context, key instanceKey, record *registrationRecord, current *instance, ifMatch string) (uint64, error) {
	if ifMatch != "" && ifMatch != anyETag {
		revision, err := f.registrations.Replace(ctx, key.String(), current.revision, record)
		if errors.Is(err, store.ErrConflict) {
			return 0, cmp.Or(f.syncInstance(ctx, key), errPrecondition())
		}
		return revision, f.storeError(ctx, err)
	}
	for {
		row, err := f.registrations.Update(ctx, key.String(), func(stored *registrationRecord) error {
			*stored = *record
			return nil
		})
		if !errors.Is(err, store.ErrNotFound) {
			return row.Revision, f.storeError(ctx, err)
		}
		if ifMatch == anyETag {
			return 0, errPrecondition()
		}
		revision, err := f.registrations.Create(ctx, key.String(), record)
		if !errors.Is(err, store.ErrExists) { // else another process was faster
			return revision, f.storeError(ctx, err)
		}
	}
}

// checkQuota rejects a record with which the registrations of the agent would exceed
// maxAgentBytes.
func (r *roster) checkQuota(key instanceKey, record *registrationRecord) error {
	total := record.size()
	if a := r.agents[key.agentID]; a != nil {
		for _, i := range a.instances {
			if i.key != key {
				total += i.size
			}
		}
	}
	if total <= maxAgentBytes {
		return nil
	}
	return &contract.Error{
		Code:    contract.CodeQuotaExceeded,
		Message: fmt.Sprintf("the registrations of %s would take %d bytes; the limit is %d: declare less, or let instances leave", key.agentID, total, maxAgentBytes),
	}
}

// Heartbeat renews the lease of an instance; "" = contract.DefaultInstance. It returns
// contract.CodeNotFound if the instance is not registered: then it must register again.
func (f *Fleet) Heartbeat(ctx context.Context, agentID, name string, caller *contract.Caller) (contract.Lease, error) {
	key := instanceKey{agentID, cmp.Or(name, contract.DefaultInstance)}
	grant, err := f.authorize(key, caller)
	if err != nil {
		return contract.Lease{}, err
	}
	lease, err := f.renewLease(key, grant)
	if err == nil || !f.isShared() {
		return lease, err
	}
	f.writing.Lock() // another process may just have registered it
	_, err = f.findOrSync(ctx, key)
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
	if f.isShared() {
		f.beats.add(key)
	}
	return f.leaseOf(i, grant), nil
}

// Drain lets an instance finish its tasks without getting new ones. name is "" for
// contract.DefaultInstance.
func (f *Fleet) Drain(ctx context.Context, agentID, name string, caller *contract.Caller) (contract.Lease, error) {
	key := instanceKey{agentID, cmp.Or(name, contract.DefaultInstance)}
	f.writing.Lock()
	defer f.writing.Unlock()
	if err := f.authorizeOwner(key, caller); err != nil {
		return contract.Lease{}, err
	}
	i, err := f.findOrSync(ctx, key)
	if err != nil {
		return contract.Lease{}, err
	}
	if i == nil {
		return contract.Lease{}, f.notRegistered(key)
	}
	row, err := f.registrations.Update(ctx, key.String(), func(stored *registrationRecord) error {
		stored.Draining = true
		return nil
	})
	switch {
	case errors.Is(err, store.ErrNotFound): // it has expired for good meanwhile
		return contract.Lease{}, f.notRegistered(key)
	case err != nil:
		return contract.Lease{}, f.storeError(ctx, err)
	}
	var lease contract.Lease
	f.changeRoster(func(r *roster, _ time.Time) {
		r.drain(i, row.Revision)
		lease = f.leaseOf(i, f.grantOf(agentID))
	})
	f.cfg.Logger.InfoContext(ctx, "agent drains", "agent", agentID, "instance", key.name)
	f.cfg.OnChange(ctx, Change{ChangeDrain, agentID, key.name, caller})
	return lease, nil
}

// Deregister removes an instance, or all instances if name is "". It removes none if the
// caller may not remove one of them, and returns contract.CodeNotFound if there is none.
func (f *Fleet) Deregister(ctx context.Context, agentID, name string, caller *contract.Caller) error {
	f.writing.Lock()
	defer f.writing.Unlock()
	names := []string{name}
	if name == "" {
		names = f.instanceNames(agentID)
	}
	for _, name := range append(names, name) { // also if there is none: the error must not depend on it
		if err := f.authorizeOwner(instanceKey{agentID, name}, caller); err != nil {
			return err
		}
	}
	found := false
	for _, name := range names {
		key := instanceKey{agentID, name}
		i, err := f.findOrSync(ctx, key)
		if err != nil {
			return err
		}
		if i == nil {
			continue
		}
		if err := f.registrations.Delete(ctx, key.String()); err != nil {
			return f.storeError(ctx, err)
		}
		f.changeRoster(func(r *roster, _ time.Time) { r.remove(i) })
		f.cfg.Logger.InfoContext(ctx, "agent left", "agent", agentID, "instance", name)
		f.cfg.OnChange(ctx, Change{ChangeLeave, agentID, name, caller})
		found = true
	}
	if !found {
		return f.notRegistered(instanceKey{agentID, name})
	}
	return nil
}

func (f *Fleet) instanceNames(agentID string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var names []string
	if a := f.roster.agents[agentID]; a != nil {
		for name := range a.instances {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// SetDisabled takes an agent of any origin out of routing, or back in. It returns
// contract.CodeNotFound for an unknown agent.
func (f *Fleet) SetDisabled(ctx context.Context, agentID string, disabled bool, caller *contract.Caller) error {
	f.writing.Lock()
	defer f.writing.Unlock()
	f.mu.Lock()
	known := f.roster.agents[agentID] != nil || f.isDeclared(agentID) || f.disabledIDs[agentID]
	before := f.disabledIDs[agentID]
	f.mu.Unlock()
	if !known {
		return &contract.Error{Code: contract.CodeNotFound, Message: "there is no such agent"}
	}
	if disabled == before && !f.isShared() { // else another process may just have changed it
		return nil
	}
	var err error
	if disabled {
		_, err = f.disabled.Create(ctx, agentID, &disabledRecord{By: caller.Subject, At: f.cfg.Now().UTC()})
		if errors.Is(err, store.ErrExists) {
			err = nil
		}
	} else {
		err = f.disabled.Delete(ctx, agentID)
	}
	if err != nil {
		return f.storeError(ctx, err)
	}
	f.changeDisabled(agentID, disabled)
	f.cfg.Logger.InfoContext(ctx, "agent disabled or enabled", "agent", agentID, "disabled", disabled, "by", caller.Subject)
	kind := ChangeEnable
	if disabled {
		kind = ChangeDisable
	}
	f.cfg.OnChange(ctx, Change{kind, agentID, "", caller})
	return nil
}

// Leases returns the leases of the agent's instances, sorted by name.
func (f *Fleet) Leases(agentID string) []contract.Lease {
	names, grant := f.instanceNames(agentID), f.grantOf(agentID)
	f.mu.Lock()
	defer f.mu.Unlock()
	leases := make([]contract.Lease, 0, len(names))
	for _, name := range names {
		if i := f.roster.find(instanceKey{agentID, name}); i != nil {
			leases = append(leases, f.leaseOf(i, grant))
		}
	}
	return leases
}

// leaseOf describes the lease of an instance, whose agent has the grant or none (nil).
// The caller holds mu.
func (f *Fleet) leaseOf(i *instance, grant *contract.Grant) contract.Lease {
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
			Message: key.agentID + " is declared in the operator's registry file, which has precedence: remove it there, or register another id",
		}
	}
	grant := f.grantOf(key.agentID)
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
	if a := f.roster.agents[key.agentID]; a != nil {
		for _, i := range a.instances {
			if i.issuer != "" && i.issuer != caller.Issuer {
				return &contract.Error{Code: contract.CodeForbidden, Message: key.agentID + " is registered with a token of another issuer"}
			}
		}
	}
	return nil
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
func (f *Fleet) grantOf(agentID string) *contract.Grant {
	if g, ok := f.cfg.Operator().Grants[agentID]; ok {
		return &g
	}
	return nil
}

// notRegistered returns the error for an instance that is not registered, or for an agent
// without an instance if the name is "". The caller does not hold mu.
func (f *Fleet) notRegistered(key instanceKey) error {
	const most = 10 // names in the text
	text := fmt.Sprintf("agent %s is not registered", key.agentID)
	if key.name != "" {
		text = fmt.Sprintf("instance %s of %s", key.name, text)
	}
	if names := f.instanceNames(key.agentID); len(names) > 0 {
		text += "; its instances: " + strings.Join(names[:min(len(names), most)], ", ")
		if len(names) > most {
			text += ", …"
		}
	}
	return &contract.Error{Code: contract.CodeNotFound, Message: text}
}

// etagOf returns the ETag of a registration.
func etagOf(revision uint64) string { return fmt.Sprintf(`"%d"`, revision) }

// storeError returns the error for a change that could not be stored.
func (f *Fleet) storeError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	return store.CallerError(ctx, f.cfg.Logger, "the registration cannot be stored", err)
}
