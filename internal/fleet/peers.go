package fleet

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/strictjson"
)

const (
	// heartbeatTopic is that of the messages with the heartbeats that a process has
	// accepted: an array of keys of records.
	heartbeatTopic = "heartbeats"
	// heartbeatPause is the time between two messages.
	heartbeatPause = 200 * time.Millisecond
	// maxHeartbeats bounds a message to less than 1 MiB.
	maxHeartbeats = 4000
	// reconcileInterval is how often all records are read. The store keeps the marker
	// of a deleted record for a minute, so that a process that was disconnected for
	// longer does not receive it.
	reconcileInterval = time.Minute
)

// Peers are the other processes that use the bucket. A *store.Store implements it.
type Peers interface {
	Broadcast(topic string, data []byte) error
	Subscribe(ctx context.Context, topic string, fn func(data []byte)) error
}

// isShared reports whether other processes may change the bucket.
func (c *Config) isShared() bool { return c.Peers != nil }

// followPeers applies what other processes store and hear until ctx ends.
func (f *Fleet) followPeers(ctx context.Context) error {
	g := run.New(ctx)
	g.Go("follow registrations", func(ctx context.Context) error {
		return ignoreEnd(ctx, f.registrations.Watch(ctx, func(row store.Row[registrationRecord], err error) error {
			f.applyRow(ctx, row, err)
			return nil
		}))
	})
	g.Go("follow disabled agents", func(ctx context.Context) error {
		return ignoreEnd(ctx, f.disabled.Watch(ctx, func(row store.Row[disabledRecord], err error) error {
			f.applyDisabled(row.Key, row.Value != nil || err != nil)
			return nil
		}))
	})
	g.Go("receive heartbeats", func(ctx context.Context) error {
		return ignoreEnd(ctx, f.cfg.Peers.Subscribe(ctx, heartbeatTopic, f.receiveHeartbeats))
	})
	g.Go("send heartbeats", f.sendHeartbeats)
	g.Go("compare with the store", func(ctx context.Context) error {
		for range run.Ticks(ctx, reconcileInterval) {
			if err := f.reconcile(ctx); err != nil && ctx.Err() == nil {
				f.cfg.Logger.WarnContext(ctx, "the registrations cannot be compared with the store", "error", err)
			}
		}
		return nil
	})
	return g.Wait()
}

func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // stopped
	}
	return err
}

// applyRow applies a record that was written or deleted (no value), unless the roster
// has it already. The records that this process writes are received as well.
func (f *Fleet) applyRow(ctx context.Context, row store.Row[registrationRecord], err error) {
	key, ok := parseKey(row.Key)
	if err != nil || !ok {
		f.cfg.Logger.ErrorContext(ctx, "ignoring a registration that cannot be read", "key", row.Key, "error", err)
		return
	}
	f.writing.Lock() // otherwise a change of this process could undo a later one
	defer f.writing.Unlock()
	f.applyRecord(key, row.Value, row.Revision)
}

// applyRecord applies a record, nil if it was deleted. The caller holds writing.
func (f *Fleet) applyRecord(key instanceKey, record *registrationRecord, revision uint64) {
	f.mu.Lock()
	current := f.roster.find(key)
	f.mu.Unlock()
	switch {
	case current != nil && current.revision >= revision, current == nil && record == nil:
	case record == nil:
		f.changeRoster(func(r *roster, _ time.Time) { r.remove(current) })
	default:
		f.changeRoster(func(r *roster, now time.Time) { r.put(record.instance(key, revision), now) })
	}
}

func (f *Fleet) applyDisabled(agentID string, disabled bool) {
	f.writing.Lock()
	defer f.writing.Unlock()
	f.mu.Lock()
	before := f.disabledIDs[agentID]
	f.mu.Unlock()
	if before != disabled {
		f.changeDisabled(agentID, disabled)
	}
}

// changeDisabled changes the state in memory. The caller holds writing.
func (f *Fleet) changeDisabled(agentID string, disabled bool) {
	f.changeRoster(func(*roster, time.Time) {
		if disabled {
			f.disabledIDs[agentID] = true
		} else {
			delete(f.disabledIDs, agentID)
		}
	})
}

// syncInstance applies the record of an instance as it is stored, for example because
// another process may just have written it. The caller holds writing.
func (f *Fleet) syncInstance(ctx context.Context, key instanceKey) error {
	row, err := f.registrations.Get(ctx, key.String())
	switch {
	case err == nil:
		f.applyRecord(key, row.Value, row.Revision)
	case errors.Is(err, store.ErrNotFound):
		f.applyRecord(key, nil, math.MaxUint64)
	default:
		return f.storeError(ctx, err)
	}
	return nil
}

// syncAgent applies the records of all instances of an agent that another process may just
// have written. The caller holds writing.
func (f *Fleet) syncAgent(ctx context.Context, agentID string) error {
	if !f.cfg.isShared() {
		return nil
	}
	keys, err := f.registrations.KeysBelow(ctx, agentID+".")
	if err != nil {
		return f.storeError(ctx, err)
	}
	for _, text := range keys {
		key, ok := parseKey(text)
		if !ok {
			continue // followPeers logs it
		}
		if err := f.syncInstance(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// findOrSync returns the instance, nil if it is not registered. If another process has
// just registered it, it was not known when the caller was authorized, so the caller is
// authorized again. The caller of the function holds writing.
func (f *Fleet) findOrSync(ctx context.Context, key instanceKey, caller *contract.Caller) (*instance, error) {
	for synced := false; ; synced = true {
		f.mu.Lock()
		i := f.roster.find(key)
		f.mu.Unlock()
		if i != nil && synced {
			if err := f.authorizeOwner(key, caller); err != nil {
				return nil, err
			}
		}
		if i != nil || synced || !f.cfg.isShared() {
			return i, nil
		}
		if err := f.syncInstance(ctx, key); err != nil {
			return nil, err
		}
	}
}

// reconcile removes what other processes have deleted. Records that they have written
// come by the watch, however long this process was disconnected.
func (f *Fleet) reconcile(ctx context.Context) error {
	f.mu.Lock()
	instances, disabled := f.roster.keys(), maps.Clone(f.disabledIDs)
	f.mu.Unlock()
	stored, err := f.registrations.Keys(ctx)
	if err != nil {
		return err
	}
	for _, text := range stored {
		if key, ok := parseKey(text); ok {
			delete(instances, key)
		}
	}
	for key := range instances { // a record of the same key may have been written meanwhile
		f.writing.Lock()
		err := f.syncInstance(ctx, key)
		f.writing.Unlock()
		if err != nil {
			return err
		}
	}
	if stored, err = f.disabled.Keys(ctx); err != nil {
		return err
	}
	for _, id := range stored {
		delete(disabled, id)
	}
	for id := range disabled {
		if err := f.syncDisabled(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// syncDisabled reads whether an agent is disabled.
func (f *Fleet) syncDisabled(ctx context.Context, agentID string) error {
	f.writing.Lock()
	defer f.writing.Unlock()
	_, err := f.disabled.Get(ctx, agentID)
	if errors.Is(err, store.ErrNotFound) {
		f.changeDisabled(agentID, false)
		return nil
	}
	return err
}

// heartbeats are those that other processes do not know yet.
type heartbeats struct {
	mu    sync.Mutex
	keys  map[string]bool // of records
	added chan struct{}   // holds a token if there are some
}

// add has the heartbeat sent to the other processes.
func (h *heartbeats) add(key instanceKey) {
	h.mu.Lock()
	h.keys[key.String()] = true
	h.mu.Unlock()
	select {
	case h.added <- struct{}{}:
	default: // the keys will be taken
	}
}

// take returns the keys since the last call.
func (h *heartbeats) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	keys := slices.Collect(maps.Keys(h.keys))
	clear(h.keys)
	return keys
}

// sendHeartbeats sends the accepted heartbeats in batches until ctx ends.
func (f *Fleet) sendHeartbeats(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.beats.added:
		}
		for batch := range slices.Chunk(f.beats.take(), maxHeartbeats) {
			data, err := strictjson.Marshal(batch)
			if err == nil {
				err = f.cfg.Peers.Broadcast(heartbeatTopic, data)
			}
			if err != nil { // the next heartbeats prolong the lease as well
				f.cfg.Logger.DebugContext(ctx, "heartbeats cannot be sent to the other replicas", "error", err)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(heartbeatPause):
		}
	}
}

// receiveHeartbeats renews the leases of instances whose heartbeats another process has
// accepted.
func (f *Fleet) receiveHeartbeats(data []byte) {
	var keys []string
	if err := strictjson.Unmarshal(data, &keys); err != nil {
		f.cfg.Logger.Warn("ignoring heartbeats of another replica", "error", err)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, text := range keys {
		key, ok := parseKey(text)
		i := f.roster.find(key)
		if ok && i != nil && f.roster.renew(i, f.cfg.Now()) {
			f.definition = nil
			f.wakeRun()
		}
	}
}
