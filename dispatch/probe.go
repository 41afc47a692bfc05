package dispatch

import (
	"context"
	"math/rand/v2"
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
// first, so that no task is lost to an instance that is still down.
func (d *Dispatcher) RunProbes(ctx context.Context) error {
	g := run.New(ctx)
	free := make(chan struct{}, maxProbes)
	ticks := time.NewTicker(probeTick)
	defer ticks.Stop()
	due := map[probeKey]time.Time{}
	for {
		select {
		case <-ctx.Done():
			return g.Wait()
		case now := <-ticks.C:
			next := make(map[probeKey]time.Time, len(due))
			for _, entry := range d.probedAgents() {
				d.scheduleProbes(g, free, entry, now, due, next)
			}
			due = next
		}
	}
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

// scheduleProbes starts the probes of the entry that are due, and sets the times of the
// next ones.
func (d *Dispatcher) scheduleProbes(
	g *run.Group, free chan struct{}, entry *contract.RegistryEntry, now time.Time, due, next map[probeKey]time.Time,
) {
	var buf [1]contract.Instance
	interval := time.Duration(entry.Health.IntervalS) * time.Second
	list := listInstances(entry, &buf)
	for i := range list {
		in := list[i]
		if !takesTasks(in.State) {
			continue
		}
		key := probeKey{entry.ID, in.Name, in.Endpoint.URL}
		at, known := due[key]
		if !known { // spread, so that agents that join together are not probed together
			at = now.Add(rand.N(interval)) //nolint:gosec // no secret
		}
		next[key] = at
		if at.After(now) {
			continue
		}
		select {
		case free <- struct{}{}:
		default:
			continue // it stays due
		}
		next[key] = now.Add(interval)
		g.Go("probe an agent", func(ctx context.Context) error {
			defer func() { <-free }()
			ctx, cancel := context.WithTimeout(ctx, min(interval, probeTimeout))
			defer cancel()
			d.probeInstance(ctx, entry, &in)
			return nil
		})
	}
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
	defer func() { d.endProbe(s, health) }()
	if err := prober.Probe(ctx, atInstance(entry, in)); err != nil && ctx.Err() != context.Canceled {
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
	s := &delivery{entry: entry, agent: a, instance: state, endpoint: in.Endpoint, breaker: state.breaker}
	if !state.admitsCall() {
		d.leaveProbe(s)
		return nil
	}
	if state.breaker != nil {
		s.permit, _ = state.breaker.Allow() // admitsCall was true
		if s.permit.IsProbe() {
			state.probing, state.openUntil = true, d.breaker.Now().Add(d.breaker.OpenFor).UnixMilli()
			a.publishOpenUntil()
		}
	}
	return s
}

func (d *Dispatcher) endProbe(s *delivery, h Health) {
	d.recordHealth(s, h)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.leaveProbe(s)
}

// leaveProbe ends what beginProbe has begun. The caller holds mu.
func (d *Dispatcher) leaveProbe(s *delivery) {
	s.instance.probes--
	s.agent.dropStateIfIdle(s.instance)
	s.agent.calls--
	d.dropIfIdle(s.agent)
}
