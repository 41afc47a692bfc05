package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/store"
)

// Limits of one agent, so that it leaves room for others.
const (
	maxInstances  = 100
	maxAgentBytes = 1 << 20 // of its registrations as JSON
)

// Config configures a Fleet. Bucket and Operator are required.
type Config struct {
	Bucket *store.Bucket
	// Operator returns the definition that the operator has written. Its grants
	// limit what agents may register, and its agents cannot register themselves.
	Operator func() *capabilities.Definition
	// CheckAddress returns why the address of an agent cannot be called; nil = every
	// address can.
	CheckAddress func(url string) error
	// Peers are the other processes that use the bucket, which must be opened with
	// KeyTTL then; nil = there are none.
	Peers Peers
	// OnChange is called after a change by a caller was stored. Nil = none.
	OnChange func(ctx context.Context, change Change)
	Now      func() time.Time // nil = time.Now
	Logger   *slog.Logger     // nil = silent
}

// Change is a change of a registration, or of what operators decide about an agent.
type Change struct {
	Kind     ChangeKind
	AgentID  string
	Instance string // "" = the agent
	Caller   *contract.Caller
}

// ChangeKind is the kind of a Change.
type ChangeKind string

// The kinds of changes. A heartbeat is none.
const (
	ChangeRegister ChangeKind = "register"
	ChangeDrain    ChangeKind = "drain"
	ChangeLeave    ChangeKind = "leave"
	ChangeDisable  ChangeKind = "disable"
	ChangeEnable   ChangeKind = "enable"
)

// Fleet holds the registrations of one store. It implements registry.Source, and is
// safe for concurrent use.
type Fleet struct {
	cfg           Config
	registrations *store.Table[registrationRecord]
	disabled      *store.Table[disabledRecord]

	writing sync.Mutex // of the store and the roster together; before mu

	mu          sync.Mutex
	roster      *roster
	disabledIDs map[string]bool
	operator    *capabilities.Definition // that declared is of
	declared    map[string]bool          // ids of the operator's agents
	definition  *capabilities.Definition // nil = must be built
	notify      func()

	wake chan struct{} // holds a token if Run must look at the roster

	beats heartbeats
}

// Open reads the registrations of the bucket. Each of them begins a whole lease.
func Open(ctx context.Context, cfg Config) (*Fleet, error) {
	if cfg.Bucket == nil || cfg.Operator == nil {
		return nil, errors.New("fleet: a bucket and the operator's definition are needed")
	}
	if cfg.CheckAddress == nil {
		cfg.CheckAddress = func(string) error { return nil }
	}
	if cfg.OnChange == nil {
		cfg.OnChange = func(context.Context, Change) {}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	f := &Fleet{
		cfg: cfg, roster: newRoster(), disabledIDs: map[string]bool{}, notify: func() {}, wake: make(chan struct{}, 1),
		beats:         heartbeats{keys: map[string]bool{}, added: make(chan struct{}, 1)},
		registrations: store.NewTable(cfg.Bucket, store.TableConfig[registrationRecord]{Prefix: "instance."}),
		disabled:      store.NewTable(cfg.Bucket, store.TableConfig[disabledRecord]{Prefix: "disabled."}),
	}
	now := cfg.Now()
	err := f.registrations.Scan(ctx, func(row store.Row[registrationRecord], err error) error {
		key, ok := parseKey(row.Key)
		if err != nil || !ok { // one damaged record must not prevent the service of the others
			cfg.Logger.Error("ignoring a registration that cannot be read", "key", row.Key, "error", err)
			return nil
		}
		f.roster.put(row.Value.instance(key, row.Revision), now)
		return nil
	})
	if err == nil {
		err = f.disabled.Scan(ctx, func(row store.Row[disabledRecord], _ error) error {
			f.disabledIDs[row.Key] = true // also if the record, which only names the operator, cannot be read
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read the registrations: %w", err)
	}
	return f, nil
}

// State implements registry.Source.
func (f *Fleet) State() (*capabilities.Definition, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.definition == nil {
		f.definition = &capabilities.Definition{Agents: f.roster.entries(), Disabled: make(map[string]bool, len(f.disabledIDs))}
		for id := range f.disabledIDs {
			f.definition.Disabled[id] = true
		}
	}
	return f.definition, nil
}

// Notify implements registry.Source.
func (f *Fleet) Notify(changed func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notify = changed
}

// Pauses between two notifications, so that many registrations at once build a few
// versions of the registry. While a version takes long to build, at most one fifth of
// the time is spent on it.
const (
	minNotifyPause = 10 * time.Millisecond
	notifyShare    = 4
)

// Run implements registry.Source: it ends leases, follows the other processes, and
// reports changes to the registry.
func (f *Fleet) Run(ctx context.Context) error {
	if !f.cfg.isShared() {
		return f.watchRoster(ctx)
	}
	g := run.New(ctx)
	g.Go("watch the roster", f.watchRoster)
	g.Go("follow the other replicas", f.followPeers)
	return g.Wait()
}

// watchRoster ends leases, and reports changes to the registry, until ctx ends.
func (f *Fleet) watchRoster(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.wake:
		case <-timer.C:
		}
		f.endLeases(ctx)
		pause := minNotifyPause
		began := time.Now()
		if f.notifyChange() {
			pause = max(pause, notifyShare*time.Since(began))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		timer.Reset(f.untilNextTimer())
	}
}

// notifyChange has the registry read the latest definition, unless it has already. It
// reports whether there was one to read.
func (f *Fleet) notifyChange() bool {
	f.mu.Lock()
	notify, changed := f.notify, f.definition == nil
	f.mu.Unlock()
	if changed {
		notify() // without the lock, because it calls State
	}
	return changed
}

// untilNextTimer returns how long no lease ends.
func (f *Fleet) untilNextTimer() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := f.roster.nextTimer()
	if next.IsZero() {
		return time.Hour
	}
	return max(0, next.Sub(f.cfg.Now()))
}

// endLeases ends the leases that have run out, and deletes registrations that expired
// long ago.
func (f *Fleet) endLeases(ctx context.Context) {
	f.mu.Lock()
	expired, removed := f.roster.advance(f.cfg.Now())
	if len(expired)+len(removed) > 0 {
		f.definition = nil
	}
	f.mu.Unlock()
	for _, key := range expired {
		f.cfg.Logger.WarnContext(ctx, "an agent expired: no heartbeat for its lease", "agent", key.agentID, "instance", key.name)
	}
	for _, i := range removed {
		f.deleteRecord(ctx, i.key, i.revision)
	}
}

// deleteRecord deletes the record of a registration that the roster no longer has,
// unless the instance has registered again meanwhile. If it fails, the registration
// expires once more after a restart.
func (f *Fleet) deleteRecord(ctx context.Context, key instanceKey, revision uint64) {
	f.writing.Lock()
	defer f.writing.Unlock()
	f.mu.Lock()
	again := f.roster.find(key) != nil
	f.mu.Unlock()
	if again {
		return
	}
	err := f.registrations.DeleteRevision(ctx, key.String(), revision)
	if errors.Is(err, store.ErrConflict) { // registered again at another process
		if err = f.syncInstance(ctx, key); err == nil {
			return
		}
	}
	if err != nil {
		f.cfg.Logger.WarnContext(ctx, "an expired registration cannot be deleted", "agent", key.agentID, "instance", key.name, "error", err)
		return
	}
	f.cfg.Logger.InfoContext(ctx, "expired registration deleted", "agent", key.agentID, "instance", key.name)
}

// changeRoster changes the roster, and has the registry read it.
func (f *Fleet) changeRoster(change func(r *roster, now time.Time)) {
	f.mu.Lock()
	change(f.roster, f.cfg.Now())
	f.definition = nil
	f.mu.Unlock()
	f.wakeRun()
}

func (f *Fleet) wakeRun() {
	select {
	case f.wake <- struct{}{}:
	default: // Run has not begun to look at the roster
	}
}
