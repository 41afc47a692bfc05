package workload

import (
	"context"
	"errors"
	"time"

	"github.com/caprouter/caprouter/test/internal/process"
)

// Replica is a router that is started again after each end, with the same configuration
// and data directory. While it runs, Routers contains it.
type Replica struct {
	Binary, Config string // paths
	Routers        *Routers
	Process        *process.Process // nil while no router runs
	StartTimes     []time.Duration  // until the router listened
}

// Start starts a router if none runs, and waits until it listens. If one runs, it
// returns an error if the router has exited.
func (r *Replica) Start(ctx context.Context) error {
	if r.Process != nil {
		return r.Process.CheckRunning()
	}
	p, err := process.LaunchRouter(ctx, r.Binary, r.Config)
	if err != nil {
		return err
	}
	took, err := p.WaitForLog(ctx, process.LogListening, process.StartTimeout)
	if err != nil {
		return errors.Join(err, p.DumpStacks()) // in its log: what it waits for
	}
	r.Process, r.StartTimes = p, append(r.StartTimes, took)
	r.Routers.Add(p.Addr())
	return nil
}

// Kill kills the router if one runs.
func (r *Replica) Kill() error { return r.End((*process.Process).Kill) }

// Stop shuts the router down gracefully if one runs. The balancer sends it no more
// requests from then on.
func (r *Replica) Stop(ctx context.Context) error {
	if r.Process != nil {
		r.Routers.Remove(r.Process.Addr())
	}
	return r.End(func(p *process.Process) error { return p.Stop(ctx) })
}

// End ends the router if one runs.
func (r *Replica) End(end func(*process.Process) error) error {
	if r.Process == nil {
		return nil
	}
	err := end(r.Process)
	r.Routers.Remove(r.Process.Addr())
	r.Process = nil
	return err
}
