package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"time"

	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/test/internal/process"
	"github.com/caprouter/caprouter/test/internal/workload"
)

const (
	replicaCount = 2
	loadPause    = 400 * time.Millisecond // of a caller, at most
)

// testbed is a cluster of NATS servers with replicas, callers and agents.
type testbed struct {
	cluster  *process.NATSCluster
	replicas []*workload.Replica
	routers  *workload.Routers // the balancer of all replicas
	ledger   *workload.Ledger
	agents   *workload.Agents
	load     *workload.Load
	group    *run.Group
}

// newTestbed starts everything. close stops it.
func newTestbed(ctx context.Context, opts options, dir string) (*testbed, error) {
	t := &testbed{ledger: workload.NewLedger(), routers: workload.NewRouters(), group: run.New(ctx)}
	if err := t.prepare(ctx, opts, dir); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

func (t *testbed) prepare(ctx context.Context, opts options, dir string) (err error) {
	random := workload.NewRand(opts.seed)
	if t.agents, err = workload.StartAgents(ctx, t.group, t.ledger, random, t.routers); err != nil {
		return err
	}
	t.agents.StartPullers()
	t.load = &workload.Load{
		Callers: &workload.Callers{Ledger: t.ledger, Routers: t.routers}, Ledger: t.ledger, Agents: t.agents, Rand: random,
		MaxOrders: math.MaxInt, MaxPause: loadPause,
	}
	binary, err := process.BuildNATS(ctx, dir)
	if err != nil {
		return err
	}
	if t.cluster, err = process.StartNATSCluster(ctx, binary, dir, workload.ClusterServers); err != nil {
		return err
	}
	store, err := workload.ClusterStore(t.cluster, dir)
	if err != nil {
		return err
	}
	for i := range replicaCount {
		config, err := workload.Config{AgentsURL: t.agents.Base, Store: strings.Join(store, ", "), Registry: workload.Grants()}.
			Write(filepath.Join(dir, fmt.Sprintf("replica%d", i+1)))
		if err != nil {
			return err
		}
		r := &workload.Replica{Binary: opts.binary, Config: config, Routers: t.routers}
		t.replicas = append(t.replicas, r)
		if err := r.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (t *testbed) close() error {
	var errs []error
	for _, r := range t.replicas {
		errs = append(errs, r.Kill())
	}
	if t.cluster != nil {
		errs = append(errs, t.cluster.Close())
	}
	t.group.Stop(nil)
	return errors.Join(append(errs, t.group.Wait())...)
}
