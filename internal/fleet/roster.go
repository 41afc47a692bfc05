package fleet

import (
	"cmp"
	"container/heap"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/caprouter/caprouter/contract"
)

// keepExpired is how long an expired registration is shown, from when this process noticed
// it: a process that was suspended may have heartbeats to read.
const keepExpired = 10 * time.Minute

// instanceKey identifies an instance.
type instanceKey struct{ agentID, name string }

// instance is one registration with its lease.
type instance struct {
	key          instanceKey
	registration contract.Registration
	issuer       string // of the token that registered it
	revision     uint64 // of its record in the store; grows with each write
	draining     bool
	size         int // of its record in bytes

	expired   bool
	expiresAt time.Time
	expiredAt time.Time // when advance found that it had expired: later than expiresAt after a suspension
	timer     time.Time // when advance looks at it: not after nextChange
	index     int       // in the queue
}

func (i *instance) state() contract.AgentState {
	switch {
	case i.expired:
		return contract.AgentExpired
	case i.draining:
		return contract.AgentDraining
	}
	return contract.AgentActive
}

// setContent takes over what the record of next contains.
func (i *instance) setContent(next *instance) {
	i.registration, i.issuer, i.revision, i.draining, i.size = next.registration, next.issuer, next.revision, next.draining, next.size
}

func (i *instance) ttl() time.Duration {
	return time.Duration(cmp.Or(i.registration.LeaseTTLS, contract.DefaultLeaseTTLS)) * time.Second
}

// nextChange returns when the passing of time changes the state of the instance.
func (i *instance) nextChange() time.Time {
	if i.expired {
		return i.expiredAt.Add(keepExpired)
	}
	return i.expiresAt
}

// roster contains the registrations. It has no clock and no lock: its methods take the
// time, and one goroutine at a time uses it.
type roster struct {
	agents map[string]*agent
	timers timerQueue
}

// agent is the instances of one agent, and the entry that they declare together.
type agent struct {
	instances map[string]*instance
	entry     *contract.RegistryEntry // nil = must be built
}

func newRoster() *roster { return &roster{agents: map[string]*agent{}} }

func (r *roster) find(k instanceKey) *instance {
	if a := r.agents[k.agentID]; a != nil {
		return a.instances[k.name]
	}
	return nil
}

// instanceNames returns the names of the agent's instances, sorted.
func (r *roster) instanceNames(agentID string) []string {
	a := r.agents[agentID]
	if a == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(a.instances))
}

// isFull reports whether the agent may have no more instances.
func (r *roster) isFull(agentID string) bool {
	a := r.agents[agentID]
	return a != nil && len(a.instances) >= maxInstances
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

// findOtherProtocol returns another instance of the agent that has another protocol, and
// has not expired; nil = there is none.
func (r *roster) findOtherProtocol(k instanceKey, protocol string) *instance {
	if a := r.agents[k.agentID]; a != nil {
		for _, i := range a.instances {
			if i.key != k && !i.expired && i.registration.Endpoint.Protocol != protocol {
				return i
			}
		}
	}
	return nil
}

// put adds the instance, or replaces the content of the one with the same key, and
// begins a whole lease. It returns the instance of the roster.
func (r *roster) put(next *instance, now time.Time) *instance {
	a := r.agents[next.key.agentID]
	if a == nil {
		a = &agent{instances: map[string]*instance{}}
		r.agents[next.key.agentID] = a
	}
	a.entry = nil
	i := a.instances[next.key.name]
	if i == nil {
		i = &instance{key: next.key, index: -1}
		a.instances[next.key.name] = i
	}
	i.setContent(next)
	i.expired, i.expiresAt = false, now.Add(i.ttl())
	r.setTimer(i)
	return i
}

// renew begins the lease of an instance anew. It reports whether the state has
// changed: the instance had expired.
func (r *roster) renew(i *instance, now time.Time) (changed bool) {
	changed = i.expired
	i.expired, i.expiresAt = false, now.Add(i.ttl())
	if changed { // otherwise advance finds the lease renewed
		r.agents[i.key.agentID].entry = nil
		r.setTimer(i)
	}
	return changed
}

// setTimer has advance look at the instance when the passing of time changes it.
func (r *roster) setTimer(i *instance) {
	i.timer = i.nextChange()
	if i.index < 0 {
		heap.Push(&r.timers, i)
	} else {
		heap.Fix(&r.timers, i.index)
	}
}

// drain lets the instance get no new tasks, unless it was removed. next is the record as
// it was written, with what another process may have registered before.
func (r *roster) drain(i, next *instance) {
	if r.find(i.key) != i {
		return
	}
	i.setContent(next)
	r.agents[i.key.agentID].entry = nil
}

// remove removes the instance, unless it was removed already.
func (r *roster) remove(i *instance) {
	if r.find(i.key) != i {
		return
	}
	heap.Remove(&r.timers, i.index)
	a := r.agents[i.key.agentID]
	delete(a.instances, i.key.name)
	a.entry = nil
	if len(a.instances) == 0 {
		delete(r.agents, i.key.agentID)
	}
}

// advance applies the passing of time: it returns the instances whose lease ends now,
// and those that expired long ago, which it removes.
func (r *roster) advance(now time.Time) (expired []instanceKey, removed []*instance) {
	for len(r.timers) > 0 && !r.timers[0].timer.After(now) {
		i := r.timers[0]
		if !i.nextChange().After(now) { // not renewed since
			if i.expired {
				r.remove(i)
				removed = append(removed, i)
				continue
			}
			i.expired, i.expiredAt = true, now
			r.agents[i.key.agentID].entry = nil
			expired = append(expired, i.key)
		}
		r.setTimer(i)
	}
	return expired, removed
}

// keys returns the keys of all instances.
func (r *roster) keys() map[instanceKey]bool {
	keys := map[instanceKey]bool{}
	for _, a := range r.agents {
		for _, i := range a.instances {
			keys[i.key] = true
		}
	}
	return keys
}

// nextTimer returns when advance may have something to do; zero = never.
func (r *roster) nextTimer() time.Time {
	if len(r.timers) == 0 {
		return time.Time{}
	}
	return r.timers[0].timer
}

// entries returns the entry of every agent, in no order.
func (r *roster) entries() []*contract.RegistryEntry {
	list := make([]*contract.RegistryEntry, 0, len(r.agents))
	for id, a := range r.agents {
		if a.entry == nil {
			a.entry = a.buildEntry(id)
		}
		list = append(list, a.entry)
	}
	return list
}

// buildEntry returns what the latest registration declares, of the instances in the
// best state, with the addresses of all instances. The agent is idempotent only if
// every instance is, because a task may be sent to any of them again.
func (a *agent) buildEntry(id string) *contract.RegistryEntry {
	instances := slices.SortedFunc(maps.Values(a.instances), func(x, y *instance) int { return strings.Compare(x.key.name, y.key.name) })
	latest := slices.MaxFunc(instances, func(x, y *instance) int {
		return cmp.Or(cmp.Compare(rank(x.state()), rank(y.state())), cmp.Compare(x.revision, y.revision))
	})
	e := latest.registration.Entry(id)
	e.State, e.MaxInFlight = latest.state(), 0
	for _, i := range instances {
		e.Instances = append(e.Instances, contract.Instance{
			Name: i.key.name, Endpoint: i.registration.Endpoint, MaxInFlight: i.registration.MaxInFlight, State: i.state(),
		})
		e.Endpoint.Idempotent = e.Endpoint.Idempotent && i.registration.Endpoint.Idempotent
		if i.state() == latest.state() {
			e.MaxInFlight += cmp.Or(i.registration.MaxInFlight, contract.DefaultMaxInFlight)
		}
	}
	return e
}

// rank orders the states of instances, the best one highest.
func rank(s contract.AgentState) int {
	return slices.Index([]contract.AgentState{contract.AgentExpired, contract.AgentDraining, contract.AgentActive}, s)
}

// timerQueue is a heap of instances, the earliest timer first. A heartbeat leaves the
// timer as it is, so that it costs no change of the heap.
type timerQueue []*instance

// Len implements heap.Interface.
func (q timerQueue) Len() int { return len(q) }

// Less implements heap.Interface.
func (q timerQueue) Less(i, j int) bool { return q[i].timer.Before(q[j].timer) }

// Swap implements heap.Interface.
func (q timerQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push implements heap.Interface.
func (q *timerQueue) Push(v any) {
	i := v.(*instance) //nolint:forcetypeassert // setTimer pushes nothing else
	i.index = len(*q)
	*q = append(*q, i)
}

// Pop implements heap.Interface.
func (q *timerQueue) Pop() any {
	last := len(*q) - 1
	i := (*q)[last]
	(*q)[last] = nil
	*q, i.index = (*q)[:last], -1
	return i
}
