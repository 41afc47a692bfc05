package replicas

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Member is one replica.
type Member struct {
	Name    string // stable over restarts
	Owner   string // id of its process
	Version string // of its program
	Started time.Time
	Live    bool
	Keys    []byte // its public keys as a JWK set; nil = none, or it is Alone
}

// Membership is the set of the processes that share a store, as this one sees it. Its
// methods may be called from any goroutine.
type Membership struct {
	link link
	self Member

	view atomic.Pointer[view]

	mu           sync.Mutex
	onMemberDead []func()
}

// view is an immutable state of the membership.
type view struct {
	members []Member
	live    map[string]bool // by owner, without this process
}

// link connects a membership with the other processes.
type link interface {
	close(ctx context.Context) error
}

// noLink is the link of an embedded store, which has no other processes.
type noLink struct{}

func (noLink) close(context.Context) error { return nil }

// Alone returns the membership of an embedded store: every other owner is dead.
func Alone(name, owner, version string) *Membership {
	m := &Membership{link: noLink{}, self: Member{Name: name, Owner: owner, Version: version, Started: time.Now(), Live: true}}
	m.view.Store(&view{members: []Member{m.self}})
	return m
}

// Name returns the name of this replica, which it keeps over restarts.
func (m *Membership) Name() string { return m.self.Name }

// IsLive reports whether the process with this owner id is not known to have ended. It
// is true for this process, and false for an owner without a row.
func (m *Membership) IsLive(owner string) bool {
	return owner == m.self.Owner || m.view.Load().live[owner]
}

// Members returns all replicas, this one included, sorted by name: the live ones, and
// those that were live within the last hour. The caller must not change the result.
func (m *Membership) Members() []Member { return m.view.Load().members }

// CountLive returns the number of live replicas, this one included.
func (m *Membership) CountLive() int { return len(m.view.Load().live) + 1 }

// OnMemberDead registers a function that is called after an owner was found to be dead, and
// must not block. IsLive returns false for it by then.
func (m *Membership) OnMemberDead(fn func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.onMemberDead = append(m.onMemberDead, fn)
}

// Close ends the membership: the others treat this process as dead, so it must have
// handed over its work before.
func (m *Membership) Close(ctx context.Context) error { return m.link.close(ctx) }

// publish makes the state of the tracker and this process's own row visible.
func (m *Membership) publish(t *tracker, own *row) {
	v := &view{members: []Member{m.self}, live: map[string]bool{}}
	v.members[0].Keys = own.Keys
	for name, p := range t.peers {
		v.members = append(v.members, Member{
			Name: name, Owner: p.row.Owner, Version: p.row.Version, Started: p.row.Started, Live: p.live, Keys: p.row.Keys,
		})
		if p.live {
			v.live[p.row.Owner] = true
		}
	}
	slices.SortFunc(v.members, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
	m.view.Store(v)
}

// reportDead calls the registered functions.
func (m *Membership) reportDead() {
	m.mu.Lock()
	list := slices.Clone(m.onMemberDead)
	m.mu.Unlock()
	for _, fn := range list {
		fn()
	}
}
