package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/test/internal/process"
)

// testbed runs one router after the other on the same data directory, with callers
// and agents that survive them.
type testbed struct {
	testbedConfig
	config  string       // path
	server  *storeServer // nil: the store is embedded
	ledger  *ledger
	rng     *lockedRand
	current *currentRouter
	agents  *fakeAgents
	callers *fakeCallers
	group   *run.Group

	router     *process.Process // nil while no router runs
	startTimes []time.Duration  // until the router listened
	stopErrors []string
}

// testbedConfig specifies the routers of a testbed.
type testbedConfig struct {
	binary, dir string
	seed        uint64
	maxBytes    string // of the store; "" = the default
	external    bool   // the store is a NATS server
	powerFails  bool   // a kill also loses what was not synced
}

// newTestbed starts the agents and the external store. close stops everything.
func newTestbed(ctx context.Context, cfg testbedConfig) (*testbed, error) {
	t := &testbed{
		testbedConfig: cfg,
		ledger:        newLedger(), rng: newLockedRand(cfg.seed), current: newCurrentRouter(), group: run.New(ctx),
	}
	t.ledger.trims = cfg.maxBytes != ""
	t.callers = &fakeCallers{ledger: t.ledger, current: t.current}
	if err := t.prepare(ctx); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

func (t *testbed) prepare(ctx context.Context) (err error) {
	if t.agents, err = startAgents(ctx, t.group, t.ledger, t.rng, t.current); err != nil {
		return err
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
	t.config, err = writeConfig(t.dir, t.agents.base, strings.Join(store, ", "))
	return err
}

func (t *testbed) close() error {
	err := t.killRouter()
	if t.server != nil {
		err = errors.Join(err, t.server.end((*process.Process).Kill))
	}
	t.group.Stop(nil)
	return errors.Join(err, t.group.Wait())
}

// startRouter starts a router if none runs.
func (t *testbed) startRouter(ctx context.Context) error {
	if t.router != nil {
		return t.router.CheckRunning()
	}
	p, err := process.LaunchRouter(ctx, t.binary, t.config)
	if err != nil {
		return err
	}
	took, err := p.WaitForLog(ctx, process.LogListening, process.StartTimeout)
	if err != nil {
		return errors.Join(err, p.Kill())
	}
	t.router = p
	t.startTimes = append(t.startTimes, took)
	t.current.setAddr(p.Addr())
	return nil
}

// killRouter kills the router if one runs.
func (t *testbed) killRouter() error { return t.endRouter(t.killProcess) }

func (t *testbed) killProcess(p *process.Process) error {
	err := p.Kill()
	if t.powerFails {
		err = errors.Join(err, failPower(dataDir(t.dir)))
	}
	return err
}

// stopRouter shuts the router down gracefully. A failure becomes a violation.
func (t *testbed) stopRouter(ctx context.Context) {
	if err := t.endRouter(func(p *process.Process) error { return p.Stop(ctx) }); err != nil {
		t.stopErrors = append(t.stopErrors, err.Error())
	}
}

func (t *testbed) endRouter(end func(*process.Process) error) error {
	if t.router == nil {
		return nil
	}
	err := end(t.router)
	t.current.clearAddr()
	t.router = nil
	return err
}

// runChecks stops the router and the store, and adds all checks and the counters of the
// ledger to the report.
func (t *testbed) runChecks(ctx context.Context, r *report) error {
	t.stopRouter(ctx)
	if t.server != nil {
		if err := t.server.moveInto(ctx, dataDir(t.dir)); err != nil {
			return err
		}
	}
	audited, err := readAudit(ctx, dataDir(t.dir))
	if err != nil {
		return err
	}
	if t.maxBytes != "" && audited.trimmed == 0 && audited.evicted == 0 {
		return errors.New("the store was never full")
	}
	audit := checkResult{name: "the audit log does not verify"}
	if out, err := process.RunCommand(ctx, t.binary, "audit", "verify", "--data-dir", dataDir(t.dir)); err != nil {
		audit.violations = append(audit.violations, fmt.Sprintf("%v: %s", err, out))
	}
	r.checks = slices.Concat(t.ledger.runChecks(), t.ledger.checkAudit(audited), []checkResult{audit, {name: "a graceful shutdown failed", violations: t.stopErrors}})
	t.ledger.addFigures(r)
	r.addFigure("requests in the audit log, records trimmed, evictions", "%d, %d, %d", len(audited.byID), audited.trimmed, audited.evicted)
	return nil
}

const concurrentReads = 16

// fetchRequests fetches each request once.
func (t *testbed) fetchRequests(ctx context.Context, ids []string) {
	run.ForEach(ctx, concurrentReads, len(ids), func(ctx context.Context, i int) { t.callers.fetchRequest(ctx, ids[i]) })
}

// awaitEnds fetches open requests until all have ended or the limit has passed.
func (t *testbed) awaitEnds(ctx context.Context, limit time.Duration) {
	awaitCondition(ctx, limit, func() bool {
		t.ledger.acceptExecuted()
		t.fetchRequests(ctx, t.ledger.openRequests())
		return len(t.ledger.openRequests()) == 0
	})
}

// awaitCondition polls until done reports true, and reports whether it did within the
// limit.
func awaitCondition(ctx context.Context, limit time.Duration, done func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for !done() {
		if !process.Sleep(ctx, 20*time.Millisecond) {
			return false
		}
	}
	return true
}

// followRemaining reads the events of every request without a final event.
func (t *testbed) followRemaining(ctx context.Context) {
	ids := t.ledger.withoutFinalEvent()
	run.ForEach(ctx, concurrentReads, len(ids), func(ctx context.Context, i int) {
		ctx, cancel := context.WithTimeout(ctx, process.IOTimeout)
		defer cancel()
		t.callers.followEvents(ctx, ids[i])
	})
}

// currentRouter is an HTTP client that connects to the running router, whatever host
// a URL names, because the port of the router changes with each start.
type currentRouter struct {
	addr   atomic.Pointer[string] // nil while no router runs
	client *http.Client
}

var errRouterDown = errors.New("the router is down")

func newCurrentRouter() *currentRouter {
	c := &currentRouter{}
	var dialer net.Dialer
	c.client = &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 64,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			addr := c.addr.Load()
			if addr == nil {
				return nil, errRouterDown
			}
			return dialer.DialContext(ctx, network, *addr)
		},
	}}
	return c
}

func (c *currentRouter) setAddr(addr string) { c.addr.Store(&addr) }

func (c *currentRouter) clearAddr() {
	c.addr.Store(nil)
	c.client.CloseIdleConnections()
}

// lockedRand is a source of random numbers for several goroutines. The same seed
// yields the same sequence, but the scheduler decides which goroutine gets which number.
type lockedRand struct {
	mu     sync.Mutex
	random *rand.Rand
}

func newLockedRand(seed uint64) *lockedRand {
	return &lockedRand{random: rand.New(rand.NewPCG(seed, seed))} //nolint:gosec // not used for secrets
}

// intN returns a number from 0 to n-1.
func (r *lockedRand) intN(n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.random.IntN(n)
}

// oneIn reports true once in n times on average.
func (r *lockedRand) oneIn(n int) bool { return r.intN(n) == 0 }

// durationUpTo returns a duration from 0 to limit.
func (r *lockedRand) durationUpTo(limit time.Duration) time.Duration {
	return time.Duration(r.intN(int(limit) + 1))
}
