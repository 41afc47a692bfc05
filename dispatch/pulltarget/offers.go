package pulltarget

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/caprouter/caprouter/internal/broadcast"
)

// Offer names a task that an agent may pull.
type Offer struct {
	AgentID, RequestID, TaskID string
}

// Offers are the tasks that agents may pull, as far as this process knows: those of the
// requests that it executes, and those that other processes have announced. They are
// safe for concurrent use.
type Offers struct {
	mu     sync.Mutex
	agents map[string]*agentOffers
	byTask map[string]*offer
	polled map[string]time.Time // when the latest poll of an agent began, or ended
	swept  time.Time            // when expired announcements were last removed
}

// agentOffers are the offers for one agent, oldest first.
type agentOffers struct {
	list    []*offer
	changes broadcast.Signal // a waiting lease must look again
	polls   int              // that wait for an offer
}

// offer is an Offer that is listed.
type offer struct {
	Offer
	taken     bool      // a lease looks at it
	notBefore time.Time // the task cannot be leased earlier
	expires   time.Time // of an announcement; zero = it is listed until Remove
}

// announcementTTL is how long the announcement of another process counts. It is longer
// than the longest pause between two of them.
const announcementTTL = 2 * maxPollInterval

// NewOffers returns Offers without any.
func NewOffers() *Offers {
	return &Offers{agents: map[string]*agentOffers{}, byTask: map[string]*offer{}, polled: map[string]time.Time{}}
}

// Add lists a task of a request that this process executes.
func (o *Offers) Add(task Offer) { o.put(task, time.Time{}) }

// Announced lists a task of a request that another process executes.
func (o *Offers) Announced(task Offer, now time.Time) {
	o.put(task, now.Add(announcementTTL))
	o.mu.Lock()
	defer o.mu.Unlock()
	if now.Sub(o.swept) < announcementTTL {
		return
	}
	o.swept = now
	for id, a := range o.agents { // perhaps no agent polls here
		o.removeExpired(id, a, now)
	}
}

func (o *Offers) put(task Offer, expires time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if l := o.byTask[task.TaskID]; l != nil {
		if !l.expires.IsZero() {
			l.expires = expires
		}
		return
	}
	a, l := o.agentOf(task.AgentID), &offer{Offer: task, expires: expires}
	a.list, o.byTask[task.TaskID] = append(a.list, l), l
	a.changes.Broadcast()
}

// Remove ends what Add has begun.
func (o *Offers) Remove(task Offer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if l := o.byTask[task.TaskID]; l != nil {
		o.remove(l)
	}
}

// remove removes an offer that is listed. The caller holds mu.
func (o *Offers) remove(l *offer) {
	delete(o.byTask, l.TaskID)
	a := o.agents[l.AgentID]
	a.list = slices.DeleteFunc(a.list, func(other *offer) bool { return other == l })
	o.dropIfIdle(l.AgentID, a)
}

// removeExpired removes the announcements that have expired. The caller holds mu.
func (o *Offers) removeExpired(agentID string, a *agentOffers, now time.Time) {
	a.list = slices.DeleteFunc(a.list, func(l *offer) bool {
		expired := !l.taken && !l.expires.IsZero() && l.expires.Before(now)
		if expired {
			delete(o.byTask, l.TaskID)
		}
		return expired
	})
	o.dropIfIdle(agentID, a)
}

func (o *Offers) agentOf(id string) *agentOffers {
	a := o.agents[id]
	if a == nil {
		a = &agentOffers{}
		o.agents[id] = a
	}
	return a
}

func (o *Offers) dropIfIdle(id string, a *agentOffers) {
	if len(a.list) == 0 && a.polls == 0 {
		delete(o.agents, id)
	}
}

// beginPoll keeps the agent listed until endPoll.
func (o *Offers) beginPoll(agentID string, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.agentOf(agentID).polls++
	if len(o.polled) >= maxPolled {
		maps.DeleteFunc(o.polled, func(_ string, last time.Time) bool { return now.Sub(last) > time.Hour })
	}
	o.polled[agentID] = now
}

// maxPolled is the number of agents from which the times of polls more than an hour ago are
// forgotten: ids of agents that registered themselves may never occur again.
const maxPolled = 10_000

func (o *Offers) endPoll(agentID string, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	a := o.agents[agentID]
	a.polls--
	o.polled[agentID] = now
	o.dropIfIdle(agentID, a)
}

// Polls returns how many polls of the agent wait at this process, and when the latest one
// was seen; the zero time if there was none since the start.
func (o *Offers) Polls(agentID string) (waiting int, last time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if a := o.agents[agentID]; a != nil {
		waiting = a.polls
	}
	return waiting, o.polled[agentID]
}

// take returns the oldest offer that can be leased now, to be followed by endTake.
// If there is none, it returns when to look again: at a time, which may be zero, or
// when the channel is closed.
func (o *Offers) take(agentID string, now time.Time) (taken *offer, next time.Time, changed <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	a := o.agentOf(agentID) // a poll keeps it
	o.removeExpired(agentID, a, now)
	for _, l := range a.list {
		switch {
		case l.taken:
		case l.notBefore.After(now):
			if next.IsZero() || l.notBefore.Before(next) {
				next = l.notBefore
			}
		default:
			l.taken = true
			return l, time.Time{}, nil
		}
	}
	return nil, next, a.changes.Next()
}

// endTake ends take: other leases may take the offer from a time on; zero = never.
func (o *Offers) endTake(l *offer, next time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.byTask[l.TaskID] != l { // it was removed, and perhaps listed anew
		return
	}
	if l.taken, l.notBefore = false, next; next.IsZero() {
		o.remove(l)
		return
	}
	if a := o.agents[l.AgentID]; a != nil {
		a.changes.Broadcast()
	}
}
