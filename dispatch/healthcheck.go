package dispatch

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/run"
)

// HealthChecker is a Target that can check the health of an agent without a task.
type HealthChecker interface {
	// CheckHealth returns an error unless the agent answers its health check by the deadline
	// of ctx. The Endpoint of the entry is that of the instance.
	CheckHealth(ctx context.Context, agent *contract.RegistryEntry) error
}

const (
	healthCheckTick    = time.Second
	maxHealthChecks    = 32 // at the same time
	healthCheckTimeout = 5 * time.Second
)

// RunHealthChecks checks the health of the agents that declare an interval, until ctx ends.
//
// A failed health check counts as a failed call for the circuit breaker of the instance.
// A successful one does not count, because an agent that is up may still fail its tasks.
// When a breaker would admit a task as its trial, the instance must pass a health check
// first, so that no task is lost to an instance that is still down. This health check does
// not wait for the interval.
func (d *Dispatcher) RunHealthChecks(ctx context.Context) error {
	g := run.New(ctx)
	d.setChecksRunning(true)
	defer d.setChecksRunning(false)
	p := healthCheckRun{due: map[instanceKey]time.Time{}, free: make(chan struct{}, maxHealthChecks), ended: make(chan struct{}, 1)}
	ticks := time.NewTicker(healthCheckTick)
	defer ticks.Stop()
	var freed chan struct{} // p.ended if health checks wait for others to end
	for {
		select {
		case <-ctx.Done():
			return g.Wait()
		case <-ticks.C:
		case <-freed:
		}
		freed = nil
		if waiting := d.startChecks(g, &p, time.Now()); waiting {
			freed = p.ended
		}
	}
}

func (d *Dispatcher) setChecksRunning(running bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.checksRunning = running
}

// isChecked reports whether RunHealthChecks checks the agent at the endpoint. The caller
// holds mu.
func (d *Dispatcher) isChecked(entry *contract.RegistryEntry, endpoint *contract.Endpoint) bool {
	target, _ := d.findTarget(entry.ID, endpoint)
	_, ok := target.(HealthChecker)
	return ok && d.checksRunning && entry.Health.IntervalS > 0
}

// awaitedChecks returns the instances that get no task before they pass a health check, if
// their circuit breakers admit it now.
func (d *Dispatcher) awaitedChecks() map[instanceKey]bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	var awaited map[instanceKey]bool
	for id, a := range d.active {
		for _, s := range a.instances {
			if s.awaitsHealthCheck && s.admitsCall() {
				if awaited == nil {
					awaited = map[instanceKey]bool{}
				}
				awaited[instanceKey{id, s.name, s.endpoint.URL}] = true
			}
		}
	}
	return awaited
}

// healthCheckRun is what RunHealthChecks remembers between two ticks.
type healthCheckRun struct {
	due   map[instanceKey]time.Time // when the next health check of an instance starts
	free  chan struct{}             // holds a token for each health check in progress
	ended chan struct{}             // holds a token if a health check has ended
}

// instanceKey identifies an instance at an address.
type instanceKey struct{ agentID, instance, url string }

// checkedAgents returns the agents in force that declare an interval of health checks.
func (d *Dispatcher) checkedAgents() []*contract.RegistryEntry {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.agents == nil {
		return nil
	}
	return d.agents.checked
}

// dueCheck is a health check that may start now.
type dueCheck struct {
	key   instanceKey
	at    time.Time
	entry *contract.RegistryEntry
	in    contract.Instance
}

// startChecks starts the health checks that are due and reports whether some must wait for
// others to end. Those that are due the longest start first, so that an agent whose
// health checks take long delays those of the others, but does not prevent them.
func (d *Dispatcher) startChecks(g *run.Group, p *healthCheckRun, now time.Time) (waiting bool) {
	due := d.dueChecks(p, now)
	slices.SortStableFunc(due, func(x, y dueCheck) int { return x.at.Compare(y.at) })
	for _, check := range due {
		select {
		case p.free <- struct{}{}:
		default:
			return true // the others stay due
		}
		interval := checkInterval(check.entry)
		p.due[check.key] = now.Add(interval)
		g.Go("check the health of an agent", func(ctx context.Context) error {
			defer func() {
				<-p.free
				select {
				case p.ended <- struct{}{}:
				default: // the loop has not seen the end of another health check yet
				}
			}()
			ctx, cancel := context.WithTimeout(ctx, min(interval, healthCheckTimeout))
			defer cancel()
			d.checkInstance(ctx, check.entry, &check.in)
			return nil
		})
	}
	return false
}

func checkInterval(entry *contract.RegistryEntry) time.Duration {
	return time.Duration(entry.Health.IntervalS) * time.Second
}

// dueChecks returns the health checks that are due, and makes p.due contain the instances
// in force.
func (d *Dispatcher) dueChecks(p *healthCheckRun, now time.Time) (due []dueCheck) {
	next, awaited := make(map[instanceKey]time.Time, len(p.due)), d.awaitedChecks()
	for _, entry := range d.checkedAgents() {
		var buf [1]contract.Instance
		for _, in := range listInstances(entry, &buf) {
			if !takesTasks(in.State) {
				continue
			}
			key := instanceKey{entry.ID, in.Name, in.Endpoint.URL}
			at, known := p.due[key]
			if !known { // spread, so that agents that join together are not checked together
				at = now.Add(rand.N(checkInterval(entry))) //nolint:gosec // no secret
			}
			if awaited[key] && at.After(now) {
				at = now
			}
			if next[key] = at; !at.After(now) {
				due = append(due, dueCheck{key, at, entry, in})
			}
		}
	}
	p.due = next
	return due
}

// checkInstance checks the health of one instance, unless its circuit breaker is open.
func (d *Dispatcher) checkInstance(ctx context.Context, entry *contract.RegistryEntry, in *contract.Instance) {
	target, _ := d.findTarget(entry.ID, &in.Endpoint)
	checker, ok := target.(HealthChecker)
	if !ok {
		return
	}
	call := d.beginCheck(entry, in)
	if call == nil {
		return
	}
	health := HealthUnknown
	passed := false
	defer func() { d.endCheck(call, health, passed) }()
	err := checker.CheckHealth(ctx, atInstance(entry, in))
	if passed = err == nil; !passed && ctx.Err() != context.Canceled {
		health = HealthBad
	}
}

// beginCheck asks the circuit breaker of the instance to admit a health check; nil = it is
// open, or another registry is in force.
func (d *Dispatcher) beginCheck(entry *contract.RegistryEntry, in *contract.Instance) *instanceCall {
	d.mu.Lock()
	defer d.mu.Unlock()
	if row := d.agents.findRow(entry.ID); row == nil || row.entry != entry {
		return nil
	}
	a := d.addActive(entry)
	state := a.addState(in)
	state.healthChecks++
	a.calls++
	call := &instanceCall{agent: a, instance: state, endpoint: in.Endpoint}
	if !state.admitsCall() {
		d.leaveCheck(call)
		return nil
	}
	d.admitLocked(call, state)
	return call
}

func (d *Dispatcher) endCheck(call *instanceCall, h Health, passed bool) {
	d.recordHealth(call, h)
	d.mu.Lock()
	defer d.mu.Unlock()
	if passed && call.permit.IsTrial() && call.instance.breaker == call.breaker {
		call.instance.awaitsHealthCheck, call.instance.passedHealthCheck = false, true
	}
	d.leaveCheck(call)
}

// leaveCheck ends what beginCheck has begun. The caller holds mu.
func (d *Dispatcher) leaveCheck(call *instanceCall) {
	call.instance.healthChecks--
	call.agent.dropStateIfIdle(call.instance)
	call.agent.calls--
	d.dropIfIdle(call.agent)
}
