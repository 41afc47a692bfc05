package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

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
// contains that of the instance's registration, or "*" for any. The registration is
// checked already: see capabilities.CheckRegistration.
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
	if err := f.syncRegistration(ctx, key, r.Endpoint.Protocol, caller); err != nil {
		return Registered{}, err
	}
	if err := f.checkEndpoint(key, &r.Endpoint); err != nil {
		return Registered{}, err
	}
	f.mu.Lock()
	current, err := f.roster.findReplaced(key, ifMatch)
	f.mu.Unlock()
	if err != nil {
		return Registered{}, err
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
		registered.Lease = leaseOf(r.put(record.instance(key, revision), now), grant)
	})
	f.cfg.Logger.InfoContext(ctx, "agent registered", "agent", agentID, "instance", key.name, "replaced", !registered.Created)
	if slices.Contains(registered.Lease.Reasons, contract.ReasonNothingGranted) {
		f.cfg.Logger.WarnContext(ctx, "a registered agent gets no tasks: its grant contains none of its intents", "agent", agentID, "instance", key.name)
	}
	f.cfg.OnChange(ctx, Change{ChangeRegister, agentID, key.name, caller})
	return registered, nil
}

// syncRegistration applies what another process may just have stored about the agent: all
// instances if this one is new or changes its protocol, because they are compared then. The
// caller of the function holds writing.
func (f *Fleet) syncRegistration(ctx context.Context, key instanceKey, protocol string, caller *contract.Caller) error {
	if !f.cfg.isShared() {
		return nil
	}
	f.mu.Lock()
	i := f.roster.find(key)
	f.mu.Unlock()
	if i != nil && i.registration.Endpoint.Protocol == protocol {
		return f.syncInstance(ctx, key)
	}
	return cmp.Or(f.syncAgent(ctx, key.agentID), f.authorizeOwner(key, caller))
}

// checkEndpoint returns an error if the agent cannot be reached at the endpoint, or if its
// other instances have another protocol, because pulled tasks must be stored before they
// are offered, and others need not be.
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

// findReplaced returns the instance that a registration replaces, or nil if there is none.
// It checks the ETag, and that the agent may have another instance.
func (r *roster) findReplaced(key instanceKey, ifMatch string) (*instance, error) {
	current := r.find(key)
	switch {
	case ifMatch != "" && (current == nil || !matchesETag(ifMatch, current.revision)):
		return nil, errPrecondition()
	case current == nil && r.isFull(key.agentID):
		return nil, &contract.Error{
			Code:    contract.CodeConflict,
			Message: fmt.Sprintf("%s has %d instances, which is the limit: let some leave or expire", key.agentID, maxInstances),
		}
	}
	return current, nil
}

// hasContent reports whether the instance has registered the same already.
func (i *instance) hasContent(r *registrationRecord) bool {
	return !i.draining && i.issuer == r.Issuer && reflect.DeepEqual(i.registration, r.Registration)
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
			// Another process may just have registered the agent for another issuer. An operator,
			// whose record has no issuer, may replace any.
			if stored.Issuer != "" && record.Issuer != "" && stored.Issuer != record.Issuer {
				return errOtherIssuer(key)
			}
			*stored = *record
			return nil
		})
		if forbidden, ok := errors.AsType[*contract.Error](err); ok {
			return 0, cmp.Or(f.syncInstance(ctx, key), error(forbidden))
		}
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
