package fleet

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/store"
)

// Drain lets an instance finish its tasks without getting new ones. name is "" for
// contract.DefaultInstance.
func (f *Fleet) Drain(ctx context.Context, agentID, name string, caller *contract.Caller) (contract.Lease, error) {
	key := instanceKey{agentID, cmp.Or(name, contract.DefaultInstance)}
	f.writing.Lock()
	defer f.writing.Unlock()
	if err := f.authorizeOwner(key, caller); err != nil {
		return contract.Lease{}, err
	}
	i, err := f.findOrSync(ctx, key, caller)
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
		r.drain(i, row.Value.instance(key, row.Revision))
		lease = leaseOf(i, f.cfg.grantOf(agentID))
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
		if err := f.syncAgent(ctx, agentID); err != nil {
			return err
		}
		f.mu.Lock()
		names = f.roster.instanceNames(agentID)
		f.mu.Unlock()
	}
	for _, name := range append(names, name) { // also if there is none: the error must not depend on it
		if err := f.authorizeOwner(instanceKey{agentID, name}, caller); err != nil {
			return err
		}
	}
	found := false
	for _, name := range names {
		removed, err := f.removeInstance(ctx, instanceKey{agentID, name}, caller)
		if err != nil {
			return err
		}
		if !removed {
			continue
		}
		f.cfg.Logger.InfoContext(ctx, "agent left", "agent", agentID, "instance", name)
		f.cfg.OnChange(ctx, Change{ChangeLeave, agentID, name, caller})
		found = true
	}
	if !found {
		return f.notRegistered(instanceKey{agentID, name})
	}
	return nil
}

// maxRemovals bounds how often removeInstance tries again because another process has
// stored a later registration.
const maxRemovals = 10

// removeInstance removes an instance, and reports whether there was one. If another process
// has stored a later registration, that one is removed, unless the caller may not do so.
// The caller of the function holds writing.
func (f *Fleet) removeInstance(ctx context.Context, key instanceKey, caller *contract.Caller) (bool, error) {
	for range maxRemovals {
		i, err := f.findOrSync(ctx, key, caller)
		if i == nil || err != nil {
			return false, err
		}
		err = f.registrations.DeleteRevision(ctx, key.String(), i.revision)
		switch {
		case err == nil:
			f.changeRoster(func(r *roster, _ time.Time) { r.remove(i) })
			return true, nil
		case !errors.Is(err, store.ErrConflict):
			return false, f.storeError(ctx, err)
		}
		if err := f.syncInstance(ctx, key); err != nil {
			return false, err
		}
		if err := f.authorizeOwner(key, caller); err != nil {
			return false, err
		}
	}
	return false, f.storeError(ctx, store.ErrConflict)
}

// SetDisabled takes an agent of any origin out of routing, or back in. It returns
// contract.CodeNotFound for an unknown agent.
func (f *Fleet) SetDisabled(ctx context.Context, agentID string, disabled bool, caller *contract.Caller) error {
	f.writing.Lock()
	defer f.writing.Unlock()
	if err := f.syncAgent(ctx, agentID); err != nil {
		return err
	}
	f.mu.Lock()
	known := f.roster.agents[agentID] != nil || f.isDeclared(agentID) || f.disabledIDs[agentID]
	before := f.disabledIDs[agentID]
	f.mu.Unlock()
	if !known {
		return &contract.Error{Code: contract.CodeNotFound, Message: "there is no such agent"}
	}
	if disabled == before && !f.cfg.isShared() { // else another process may just have changed it
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
