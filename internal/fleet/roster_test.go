package fleet

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/contract"
)

// modelInstance is an instance of the reference implementation, which checks every lease at each
// step.
type modelInstance struct {
	state     contract.AgentState
	ttl       time.Duration
	expiresAt time.Time
	expiredAt time.Time // the time of its expiry
}

type model map[instanceKey]*modelInstance

func (m model) advance(now time.Time) {
	for key, i := range m {
		switch {
		case i.state != contract.AgentExpired && !i.expiresAt.After(now):
			i.state, i.expiredAt = contract.AgentExpired, now
		case i.state == contract.AgentExpired && !i.expiredAt.Add(keepExpired).After(now):
			delete(m, key)
		}
	}
}

// For any sequence of operations, the roster has the instances and states of a reference
// implementation that checks every lease at each step.
func TestRoster_AgreesWithModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, m := newRoster(), model{}
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		revision := uint64(0)
		drawKey := func(t *rapid.T) instanceKey {
			return instanceKey{rapid.SampledFrom([]string{"a", "b"}).Draw(t, "agent"), rapid.SampledFrom([]string{"one", "two", "three"}).Draw(t, "instance")}
		}
		t.Repeat(map[string]func(*rapid.T){
			"register": func(t *rapid.T) {
				key, ttl := drawKey(t), rapid.IntRange(2, 900).Draw(t, "ttl")
				revision++
				r.put(&instance{key: key, revision: revision, registration: contract.Registration{LeaseTTLS: ttl}}, now)
				d := time.Duration(ttl) * time.Second
				m[key] = &modelInstance{state: contract.AgentActive, ttl: d, expiresAt: now.Add(d)}
			},
			"heartbeat": func(t *rapid.T) {
				key := drawKey(t)
				i, want := r.find(key), m[key]
				if (i == nil) != (want == nil) {
					t.Fatalf("%v: got registered %v, want %v", key, i != nil, want != nil)
				}
				if i == nil {
					return
				}
				if changed := r.renew(i, now); changed != (want.state == contract.AgentExpired) {
					t.Fatalf("%v: got the state changed by the renewal: %v", key, changed)
				}
				if want.state == contract.AgentExpired {
					want.state = i.state() // active, or draining as before
				}
				want.expiresAt = now.Add(want.ttl)
			},
			"drain": func(t *rapid.T) {
				key := drawKey(t)
				if i := r.find(key); i != nil {
					revision++
					r.drain(i, &instance{key: key, registration: i.registration, revision: revision, draining: true})
					if m[key].state == contract.AgentActive {
						m[key].state = contract.AgentDraining
					}
				}
			},
			"leave": func(t *rapid.T) {
				key := drawKey(t)
				if i := r.find(key); i != nil {
					r.remove(i)
				}
				delete(m, key)
			},
			"wait": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(1, 1000).Draw(t, "seconds")) * time.Second)
				before := describeModel(m)
				m.advance(now)
				expired, removed := r.advance(now)
				changed := len(expired)+len(removed) > 0
				if want := !cmp.Equal(before, describeModel(m)); changed != want {
					t.Fatalf("advance: got changed %v, want %v", changed, want)
				}
			},
			"": func(t *rapid.T) {
				if diff := cmp.Diff(describeModel(m), describeEntries(r)); diff != "" {
					t.Fatalf("instances (-want +got):\n%s", diff)
				}
				count := 0
				for _, a := range r.agents {
					count += len(a.instances)
				}
				if len(r.timers) != count {
					t.Fatalf("got %d timers of %d instances", len(r.timers), count)
				}
				for key, i := range m {
					if at := r.nextTimer(); at.After(i.expiresAt) && i.state != contract.AgentExpired {
						t.Fatalf("got the next timer at %v, after %v expires at %v", at, key, i.expiresAt)
					}
				}
			},
		})
	})
}

func describeModel(m model) []string {
	var list []string
	for key, i := range m {
		list = append(list, fmt.Sprintf("%s/%s %s", key.agentID, key.name, i.state))
	}
	slices.Sort(list)
	return list
}

// describeEntries returns the instances as the registry receives them.
func describeEntries(r *roster) []string {
	var list []string
	for _, e := range r.entries() {
		for _, i := range e.Instances {
			list = append(list, fmt.Sprintf("%s/%s %s", e.ID, i.Name, i.State))
		}
	}
	slices.Sort(list)
	return list
}

// The entry of an agent is the declaration of the latest registration in the best state.
func TestRoster_EntryIsOfLatestInstance(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r := newRoster()
	put := func(name string, revision uint64, ttl, limit int) *instance {
		return r.put(&instance{key: instanceKey{"a", name}, revision: revision, registration: contract.Registration{
			Description: name, LeaseTTLS: ttl, MaxInFlight: limit, Endpoint: contract.Endpoint{URL: "http://" + name, Idempotent: limit > 0},
		}}, now)
	}
	want := func(state contract.AgentState, description string, limit int) {
		t.Helper()
		e := r.entries()[0]
		got := []any{e.ID, e.Origin, e.State, e.Description, e.Endpoint.URL, e.MaxInFlight, e.Endpoint.Idempotent}
		if diff := cmp.Diff([]any{"a", contract.OriginRegistration, state, description, "http://" + description, limit, len(e.Instances) == 1}, got); diff != "" {
			t.Errorf("entry (-want +got):\n%s", diff)
		}
	}
	two := put("two", 7, 30, 5)
	want(contract.AgentActive, "two", 5)
	put("one", 8, 20, 0)
	want(contract.AgentActive, "one", 5+contract.DefaultMaxInFlight)
	r.advance(now.Add(25 * time.Second))
	want(contract.AgentActive, "two", 5)
	r.drain(two, &instance{registration: two.registration, revision: 9, draining: true})
	want(contract.AgentDraining, "two", 5)
	r.advance(now.Add(35 * time.Second))
	want(contract.AgentExpired, "two", 5+contract.DefaultMaxInFlight)
	if _, removed := r.advance(now.Add(time.Hour)); len(removed) != 2 || len(r.entries()) != 0 {
		t.Errorf("got %v removed and %d agents left, want two removed and none left", removed, len(r.entries()))
	}
}

// An instance may be removed while a change of it is written to the store.
func TestRoster_IgnoresRemovedInstances(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r := newRoster()
	i := r.put(&instance{key: instanceKey{"a", "one"}}, now)
	r.advance(now.Add(time.Hour))
	r.advance(now.Add(2 * time.Hour))
	r.drain(i, &instance{revision: 7, draining: true})
	r.remove(i)
	again := r.put(&instance{key: instanceKey{"a", "one"}}, now)
	r.remove(i)
	if r.find(again.key) != again || again.draining {
		t.Error("got the instance with the same key changed by the removed one")
	}
}
