package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/test/internal/process"
	"github.com/caprouter/caprouter/test/internal/workload"
)

// testbed runs one router after the other on the same data directory, with callers
// and agents that survive them. With a cluster as the store it does so for several data
// directories at the same time.
type testbed struct {
	testbedConfig
	server  *storeServer         // of an external store
	cluster *process.NATSCluster // of replicas
	ledger  *workload.Ledger
	rng     *workload.Rand
	routers *workload.Routers
	agents  *workload.Agents
	load    *workload.Load
	group   *run.Group

	replicas   []*workload.Replica
	stopErrors []string
}

// testbedConfig specifies the routers of a testbed.
type testbedConfig struct {
	binary, dir string
	seed        uint64
	maxBytes    string // of the store; "" = the default
	external    bool   // the store is a NATS server
	clusterSize int    // routers that share a cluster of NATS servers; 0 = one router alone
	powerFails  bool   // a kill also loses what was not synced
}

// newTestbed starts the agents and the external store. close stops everything.
func newTestbed(ctx context.Context, cfg testbedConfig) (*testbed, error) {
	t := &testbed{
		testbedConfig: cfg,
		ledger:        workload.NewLedger(), rng: workload.NewRand(cfg.seed), routers: workload.NewRouters(), group: run.New(ctx),
	}
	t.ledger.Trims = cfg.maxBytes != ""
	if err := t.prepare(ctx); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

func (t *testbed) prepare(ctx context.Context) (err error) {
	if t.agents, err = workload.StartAgents(ctx, t.group, t.ledger, t.rng, t.routers); err != nil {
		return err
	}
	t.agents.StartPullers()
	t.load = &workload.Load{
		Callers: &workload.Callers{Ledger: t.ledger, Routers: t.routers}, Ledger: t.ledger, Agents: t.agents, Rand: t.rng,
		MaxOrders: maxOrders, Fill: t.maxBytes != "",
	}
	var store []string
	if t.external {
		if t.server, err = startStoreServer(ctx, filepath.Join(t.dir, "server")); err != nil {
			return err
		}
		store = append(store, "url: "+t.server.url())
	}
	if t.maxBytes != "" {
		store = append(store, "retention: { max_bytes: "+t.maxBytes+" }")
	}
	if t.clusterSize == 0 {
		return t.addReplica(t.dir, store)
	}
	binary, err := process.BuildNATS(ctx, t.dir)
	if err != nil {
		return err
	}
	if t.cluster, err = process.StartNATSCluster(ctx, binary, t.dir, workload.ClusterServers); err != nil {
		return err
	}
	if store, err = workload.ClusterStore(t.cluster, t.dir); err != nil {
		return err
	}
	for i := range t.clusterSize {
		if err := t.addReplica(filepath.Join(t.dir, fmt.Sprintf("replica%d", i+1)), store); err != nil {
			return err
		}
	}
	return nil
}

func (t *testbed) addReplica(dir string, store []string) error {
	config, err := workload.Config{AgentsURL: t.agents.Base, Store: strings.Join(store, ", ")}.Write(dir)
	t.replicas = append(t.replicas, &workload.Replica{Binary: t.binary, Config: config, Routers: t.routers})
	return err
}

func (t *testbed) close() error {
	err := t.killAll()
	if t.server != nil {
		err = errors.Join(err, t.server.end((*process.Process).Kill))
	}
	if t.cluster != nil {
		err = errors.Join(err, t.cluster.Close())
	}
	t.group.Stop(nil)
	return errors.Join(err, t.group.Wait())
}

// startRouters starts a router for each replica that has none.
func (t *testbed) startRouters(ctx context.Context) error {
	for _, r := range t.replicas {
		if err := r.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// killRouter kills the router of one replica if it runs.
func (t *testbed) killRouter() error {
	return t.replicas[t.rng.IntN(len(t.replicas))].End(t.killProcess)
}

// killAll kills all routers that run.
func (t *testbed) killAll() error {
	var errs []error
	for _, r := range t.replicas {
		errs = append(errs, r.End(t.killProcess))
	}
	return errors.Join(errs...)
}

func (t *testbed) killProcess(p *process.Process) error {
	err := p.Kill()
	if t.powerFails {
		err = errors.Join(err, failPower(workload.DataDir(t.dir)))
	}
	return err
}

// stopRouters shuts the routers down gracefully. A failure becomes a violation.
func (t *testbed) stopRouters(ctx context.Context) {
	for _, r := range t.replicas {
		if err := r.End(func(p *process.Process) error { return p.Stop(ctx) }); err != nil {
			t.stopErrors = append(t.stopErrors, err.Error())
		}
	}
}

// startTimes returns how long routers took until they listened.
func (t *testbed) startTimes() (times []time.Duration) {
	for _, r := range t.replicas {
		times = append(times, r.StartTimes...)
	}
	return times
}

// runChecks stops the router and the store, and adds all checks and the counters of the
// ledger to the report.
func (t *testbed) runChecks(ctx context.Context, r *workload.Report) error {
	t.stopRouters(ctx)
	if t.cluster != nil {
		r.Checks = append(t.ledger.RunChecks(), workload.VerifyReplicas(ctx, t.replicas), t.checkStops())
		t.ledger.AddFigures(r)
		return nil
	}
	if t.server != nil {
		if err := t.server.moveInto(ctx, workload.DataDir(t.dir)); err != nil {
			return err
		}
	}
	audited, err := workload.ReadAudit(ctx, workload.DataDir(t.dir))
	if err != nil {
		return err
	}
	if t.maxBytes != "" && audited.Trimmed == 0 && audited.Evicted == 0 {
		return errors.New("the store was never full")
	}
	r.Checks = slices.Concat(t.ledger.RunChecks(), t.ledger.CheckAudit(audited),
		[]workload.CheckResult{t.verifyAudit(ctx), t.checkStops()})
	t.ledger.AddFigures(r)
	r.AddFigure("requests in the audit log, records trimmed, evictions", "%d, %d, %d", audited.CountRequests(), audited.Trimmed, audited.Evicted)
	return nil
}

// verifyAudit verifies the audit log of the router.
func (t *testbed) verifyAudit(ctx context.Context) workload.CheckResult {
	check := workload.CheckResult{Name: "the audit log does not verify"}
	if out, err := process.RunCommand(ctx, t.binary, "audit", "verify", "--data-dir", workload.DataDir(t.dir)); err != nil {
		check.Violations = append(check.Violations, fmt.Sprintf("%v: %s", err, out))
	}
	return check
}

func (t *testbed) checkStops() workload.CheckResult {
	return workload.CheckResult{Name: "a graceful shutdown failed", Violations: t.stopErrors}
}
