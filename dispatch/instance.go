package dispatch

import (
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/resilience"
)

// instanceState is the state of an instance that has tasks in flight or has failed.
// The only instance of an agent of the file has the name "". The dispatcher's mu
// guards it.
type instanceState struct {
	name              string
	endpoint          contract.Endpoint   // to which breaker applies
	inFlight          int                 // tasks
	healthChecks      int                 // in progress
	listed            bool                // in the entry in force
	counted           bool                // listed as active, so that its tasks count for the limit of the agent
	breaker           *resilience.Breaker // nil = no failure since the last success
	trialInFlight     bool                // of the breaker
	awaitsHealthCheck bool                // the breaker has opened, and no health check has succeeded since
	passedHealthCheck bool                // a health check has succeeded since the breaker opened
	openUntil         int64               // Unix milliseconds: how long the matcher prefers other agents
}

// isIdle reports whether the state contains no information.
func (s *instanceState) isIdle() bool {
	return s.inFlight == 0 && s.healthChecks == 0 && (s.breaker == nil || !s.listed)
}

func (s *instanceState) closeBreaker() {
	s.breaker, s.trialInFlight, s.awaitsHealthCheck, s.passedHealthCheck, s.openUntil = nil, false, false, false, 0
}

// breakerState returns the state of the circuit breaker, also for nil.
func (s *instanceState) breakerState() (state string, openUntil time.Time) {
	if s == nil || s.breaker == nil {
		return resilience.Closed, time.Time{}
	}
	return s.breaker.State(), s.breaker.OpenUntil()
}

// admitsTask reports whether the circuit breaker admits a task now.
func (s *instanceState) admitsTask() bool { return s.admitsCall() && !s.awaitsHealthCheck }

// admitsCall reports whether the circuit breaker admits a task or a health check now.
func (s *instanceState) admitsCall() bool {
	state, _ := s.breakerState()
	return state == resilience.Closed || state == resilience.HalfOpen && !s.trialInFlight
}

// choice is the instance that gets a task.
type choice struct {
	index  int // of the instance; -1 = none can take the task
	target Target
	others bool   // another instance could take the task, too
	reason string // why none can
}

// chooseInstance returns the least busy instance that can take the task now, or the
// reason why none can. The first one from turn on wins a tie. The caller holds mu.
func (d *Dispatcher) chooseInstance(dl *delivery, list []contract.Instance, turn int) choice {
	c := choice{index: -1}
	var blocked rejections
	a := dl.agent
	leastBusy, leastLimit, leastDistance := 0, 1, 0
	for i := range list {
		in := &list[i]
		if !takesTasks(in.State) || dl.hasTried(in.Name) {
			continue
		}
		target, reason := d.findTarget(dl.entry.ID, &in.Endpoint)
		if target == nil {
			c.reason = reason
			continue
		}
		state, inFlight, limit := a.findState(in.Name), 0, limitOrDefault(in.MaxInFlight)
		if state != nil {
			inFlight = state.inFlight
			if !state.admitsTask() {
				_, until := state.breakerState()
				blocked.addBreaker(until)
				continue
			}
		}
		if len(dl.entry.Instances) > 0 && inFlight >= limit { // otherwise the limit is the agent's
			blocked.full = true
			continue
		}
		distance := (i + len(list) - turn%len(list)) % len(list)
		busy, least := inFlight*leastLimit, leastBusy*limit // as parts of the limits
		c.others = c.index >= 0
		if c.index < 0 || busy < least || busy == least && distance < leastDistance {
			c.index, c.target = i, target
			leastBusy, leastLimit, leastDistance = inFlight, limit, distance
		}
	}
	if c.index < 0 && c.reason == "" {
		c.reason = blocked.describe(dl.entry.ID)
	}
	return c
}

// rejections are the reasons why instances cannot take a task.
type rejections struct {
	full, open bool
	until      time.Time // the earliest end of an open circuit breaker
}

func (r *rejections) addBreaker(until time.Time) {
	if !r.open || !until.IsZero() && (r.until.IsZero() || until.Before(r.until)) {
		r.until = until
	}
	r.open = true
}

func (r *rejections) describe(agentID string) string {
	switch {
	case r.full && r.open:
		return agentID + " has no instance for the task: each is at its limit of tasks in flight (max_in_flight), or has failed repeatedly"
	case r.full:
		return agentID + " is at its limit of tasks in flight (max_in_flight)"
	case r.open:
		return breakerDetail(agentID, r.until)
	}
	return agentID + " has no active instance"
}

// isDown reports whether the circuit breaker has opened, and nothing has shown since that the
// instance works: neither a task nor a health check has succeeded. The state half-open alone
// shows nothing, because it begins when the time has passed.
func (s *instanceState) isDown() bool {
	state, _ := s.breakerState()
	return state != resilience.Closed && (state == resilience.Open || !s.passedHealthCheck)
}

// recordHealth records the outcome of a call that was sent to an instance, and logs that its
// circuit breaker opens or closes. A trial that fails is not logged: the breaker opens again.
func (d *Dispatcher) recordHealth(call *instanceCall, h Health) {
	d.mu.Lock()
	agent, instance := call.agent.entry.ID, call.instance.name
	before, _ := call.instance.breakerState()
	d.recordLocked(call, h)
	after, until := call.instance.breakerState()
	d.mu.Unlock()
	switch {
	case before == resilience.Closed && after == resilience.Open:
		d.log.Warn("circuit breaker opened", "agent", agent, "instance", instance, "open_until", until.UTC())
	case before != resilience.Closed && after == resilience.Closed:
		d.log.Info("circuit breaker closed", "agent", agent, "instance", instance)
	}
}

// recordLocked is recordHealth for a caller that holds mu, without the log.
func (d *Dispatcher) recordLocked(call *instanceCall, h Health) {
	state := call.instance
	if !state.endpoint.Equal(&call.endpoint) || call.permit.IsTrial() && state.breaker != call.breaker {
		return // a reload has changed the address, and closed the breaker
	}
	if call.permit.IsTrial() {
		state.trialInFlight = false
	}
	if state.breaker == nil {
		if h != HealthBad {
			return
		}
		state.breaker = resilience.NewBreaker(d.breaker)
	}
	switch h {
	case HealthGood:
		state.breaker.RecordSuccess(call.permit)
	case HealthBad:
		state.breaker.RecordFailure(call.permit)
	default:
		state.breaker.Release(call.permit)
	}
	if state.breaker.IsFresh() {
		state.closeBreaker()
	} else if !state.trialInFlight {
		state.openUntil = 0
		if until := state.breaker.OpenUntil(); !until.IsZero() {
			state.passedHealthCheck = false
			if state.awaitsHealthCheck = d.isChecked(call.agent.entry, &call.endpoint); state.awaitsHealthCheck {
				until = until.Add(healthCheckTick) // by then the health check has begun
			}
			state.openUntil = until.UnixMilli()
		}
	}
	call.agent.publishOpenUntil()
}
