package dispatch

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/run"
)

// Prober is a Target that can check the health of an agent without a task.
type Prober interface {
	// Probe returns an error unless the agent answers its health check by the deadline
	// of ctx. The Endpoint of the entry is that of the instance.
	Probe(ctx context.Context, agent *contract.RegistryEntry) error
}

const (
	probeTick    = time.Second
	maxProbes    = 32 // at the same time
	probeTimeout = 5 * time.Second
)

// RunProbes checks the health of the agents that declare an interval, until ctx ends.
//
// A failed probe counts as a failed call for the circuit breaker of the instance. A
// successful one does not count, because an agent that is up may still fail its tasks.
// When a breaker would admit a task as its trial, the instance must pass a probe
// first, so that no task is lost to an instance that is still down. This probe does not
// wait for the interval.
func (d *Dispatcher) RunProbes(ctx context.Context) error {
	g := run.New(ctx)
	d.setProbes(true)
	defer d.setProbes(false)
	p := probeRun{due: map[probeKey]time.Time{}, free: make(chan struct{}, maxProbes), ended: make(chan struct{}, 1)}
	ticks := time.NewTicker(probeTick)
	defer ticks.Stop()
	var freed chan struct{} // p.ended if probes wait for others to end
	for {
		select {
		case <-ctx.Done():
			return g.Wait()
		case <-ticks.C:
		case <-freed:
		}
		freed = nil
		if waiting := d.startProbes(g, &p, time.Now()); waiting {
			freed = p.ended
		}
	}
}

func (d *Dispatcher) setProbes(running bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.probes = running
}

// isProbed reports whether probes check the health of the agent at the endpoint. The
// caller holds mu.
func (d *Dispatcher) isProbed(entry *contract.RegistryEntry, endpoint *contract.Endpoint) bool {
	target, _ := d.findTarget(entry.ID, endpoint)
	_, ok := target.(Prober)
	return ok && d.probes && entry.Health.IntervalS > 0
}

// awaitedProbes returns the instances that get no task before they pass a probe, if
// their circuit breakers admit it now.
func (d *Dispatcher) awaitedProbes() map[probeKey]bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	var awaited map[probeKey]bool
	for id, a := range d.active {
		for _, s := range a.instances {
			if s.mustPass && s.admitsCall() {
				if awaited == nil {
					awaited = map[probeKey]bool{}
				}
				awaited[probeKey{id, s.name, s.endpoint.URL}] = true
			}
		}
	}
	return awaited
}

// probeRun is what RunProbes remembers between two ticks.
type probeRun struct {
	due   map[probeKey]time.Time // when the next probe of an instance starts
	free  chan struct{}          // holds a token for each probe in progress
	ended chan struct{}          // holds a token if a probe has ended
}

// probeKey identifies an instance at an address.
type probeKey struct{ agentID, instance, url string }

// probedAgents returns the agents in force that declare an interval of probes.
func (d *Dispatcher) probedAgents() []*contract.RegistryEntry {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.agents == nil {
		return nil
	}
	return d.agents.probed
}

// dueProbe is a probe that may start now.
type dueProbe struct {
	key   probeKey
	at    time.Time
	entry *contract.RegistryEntry
	in    contract.Instance
}

// startProbes starts the probes that are due and reports whether some must wait for
// others to end. Those that are due the longest start first, so that an agent whose
// probes take long delays those of the others, but does not prevent them.
func (d *Dispatcher) startProbes(g *run.Group, p *probeRun, now time.Time) (waiting bool) {
	due := d.dueProbes(p, now)
	slices.SortStableFunc(due, func(x, y dueProbe) int { return x.at.Compare(y.at) })
	for _, probe := range due {
		select {
		case p.free <- struct{}{}:
		default:
			return true // the others stay due
		}
		interval := probeInterval(probe.entry)
		p.due[probe.key] = now.Add(interval)
		g.Go("probe an agent", func(ctx context.Context) error {
			defer func() {
				<-p.free
				select {
				case p.ended <- struct{}{}:
				default: // the loop has not seen the end of another probe yet
				}
			}()
			ctx, cancel := context.WithTimeout(ctx, min(interval, probeTimeout))
			defer cancel()
			d.probeInstance(ctx, probe.entry, &probe.in)
			return nil
		})
	}
	return false
}

func probeInterval(entry *contract.RegistryEntry) time.Duration {
	return time.Duration(entry.Health.IntervalS) * time.Second
}

// dueProbes returns the probes that are due, and makes p.due contain the instances in
// force.
func (d *Dispatcher) dueProbes(p *probeRun, now time.Time) (due []dueProbe) {
	next, awaited := make(map[probeKey]time.Time, len(p.due)), d.awaitedProbes()
	for _, entry := range d.probedAgents() {
		var buf [1]contract.Instance
		for _, in := range listInstances(entry, &buf) {
			if !takesTasks(in.State) {
				continue
			}
			key := probeKey{entry.ID, in.Name, in.Endpoint.URL}
			at, known := p.due[key]
			if !known { // spread, so that agents that join together are not probed together
				at = now.Add(rand.N(probeInterval(entry))) //nolint:gosec // no secret
			}
			if awaited[key] && at.After(now) {
				at = now
			}
			if next[key] = at; !at.After(now) {
				due = append(due, dueProbe{key, at, entry, in})
			}
		}
	}
	p.due = next
	return due
}

// probeInstance checks the health of one instance, unless its circuit breaker is open.
func (d *Dispatcher) probeInstance(ctx context.Context, entry *contract.RegistryEntry, in *contract.Instance) {
	target, _ := d.findTarget(entry.ID, &in.Endpoint)
	prober, ok := target.(Prober)
	if !ok {
		return
	}
	s := d.beginProbe(entry, in)
	if s == nil {
		return
	}
	health := HealthUnknown
	passed := false
	defer func() { d.endProbe(s, health, passed) }()
	err := prober.Probe(ctx, atInstance(entry, in))
	if passed = err == nil; !passed && ctx.Err() != context.Canceled {
		health = HealthBad
	}
}

// beginProbe asks the circuit breaker of the instance to admit a probe; nil = it is
// open, or another registry is in force.
func (d *Dispatcher) beginProbe(entry *contract.RegistryEntry, in *contract.Instance) *delivery {
	d.mu.Lock()
	defer d.mu.Unlock()
	if row := d.agents.findRow(entry.ID); row == nil || row.entry != entry {
		return nil
	}
	a := d.addActive(entry)
	state := a.addState(in)
	state.probes++
	a.calls++
	s := &delivery{entry: entry, agent: a, instance: state, endpoint: in.Endpoint}
	if !state.admitsCall() {
		d.leaveProbe(s)
		return nil
	}
	d.admitLocked(s, state)
	return s
}

func (d *Dispatcher) endProbe(s *delivery, h Health, passed bool) {
	d.recordHealth(s, h)
	d.mu.Lock()
	defer d.mu.Unlock()
	if passed && s.permit.IsProbe() && s.instance.breaker == s.breaker {
		s.instance.mustPass = false
	}
	d.leaveProbe(s)
}

// leaveProbe ends what beginProbe has begun. The caller holds mu.
func (d *Dispatcher) leaveProbe(s *delivery) {
	s.instance.probes--
	s.agent.dropStateIfIdle(s.instance)
	s.agent.calls--
	d.dropIfIdle(s.agent)
}
