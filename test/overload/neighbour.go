package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/test/internal/process"
)

const (
	floodCallers   = 64                    // tokens of the tenant that floods the router
	floodWorkers   = 4                     // of each operation
	floodPause     = 20 * time.Millisecond // of a worker, after each request
	quietCallers   = 4                     // tokens of the other tenant
	quietPerSecond = 40                    // its requests
	quietRecords   = 30                    // what it stores of each kind before the flood
	floodRounds    = 5                     // of the tenant alone and then beside the flood, by turns
	roundPause     = 2 * time.Second       // after a flood, until what it left behind has ended
)

// neighbourResult contains the measurements of a tenant beside another one.
type neighbourResult struct {
	alone, beside distribution
	bare          [2]distribution // of the bare server with the same load at the same time
	stages        [2]*stageTimes  // alone and beside
	counts        outcomeCounts   // beside
	flood         *traffic
	kept, missing int // records and keys from before the flood
}

func (n *neighbourResult) success() float64 {
	return float64(n.counts[outcomeGood]) / float64(max(1, n.counts.countSent()+n.counts[outcomeUnsent]))
}

// measureNeighbour measures a tenant alone and while another one floods the router with
// every operation at once, by turns, so that a machine that is busy for a while slows
// both. Then it looks for all that the tenant had stored before. The bare server has the
// same load at the same time, because the flood also takes the CPUs from this process.
func (w *testbed) measureNeighbour(ctx context.Context, r *report) error {
	router, secret, err := w.startTenantRouter(ctx, "neighbour")
	if err != nil {
		return err
	}
	quiet := newTenant("quiet", router.Addr(), quietCallers, secret)
	records, err := storeRecords(ctx, quiet)
	if err != nil {
		return err
	}
	s := &subject{name: "quiet tenant", addr: router.Addr(), want: contract.StatusCompleted, connections: maxConnections, failures: &failureLog{}}
	for i := range quietCallers {
		s.requests = append(s.requests, quiet.request(i, "POST", routePath, "", routeBody))
	}
	lasts := clampDuration(w.opts.duration/3, 5*time.Second, 20*time.Second) / floodRounds
	logProgress("quiet tenant: alone for %s, then beside a flood for as long, %d times", lasts, floodRounds)
	flood := newTraffic(newTenant("loud", router.Addr(), floodCallers, secret), w.opts.flood, floodPause, w.failures)
	n := &neighbourResult{stages: [2]*stageTimes{{}, {}}, flood: flood, kept: len(records)}
	bare := w.newSubject("bare server", w.bare, routeBody, contract.StatusCompleted)
	sched := schedule{{quietPerSecond, lasts}}
	others := []func(context.Context){
		func(context.Context) {},
		func(ctx context.Context) { flood.run(ctx, floodWorkers) },
	}
	var got, gotBare [2][]sample // alone and beside
	for range floodRounds {
		for i, other := range others {
			s.stages = n.stages[i]
			var samples, samplesBare []sample
			err := runBeside(ctx, other, func(ctx context.Context) (err error) {
				samples, samplesBare, err = runBoth(ctx, sched, s, bare)
				return err
			})
			if err != nil {
				return err
			}
			got[i], gotBare[i] = append(got[i], samples...), append(gotBare[i], samplesBare...)
		}
		if !resilience.Sleep(ctx, roundPause) {
			return ctx.Err()
		}
	}
	n.alone, n.beside, n.counts = latencies(got[0], outcomeGood), latencies(got[1], outcomeGood), countOutcomes(got[1])
	n.bare = [2]distribution{latencies(gotBare[0], outcomeGood), latencies(gotBare[1], outcomeGood)}
	r.neighbour = n
	for _, rec := range records {
		if err := rec.find(ctx, quiet); err != nil {
			r.neighbour.missing++
			w.failures.record("after the flood: %v", err)
		}
	}
	_, refused := s.failures.list()
	for _, why := range refused {
		w.failures.record("beside the flood: %s", why)
	}
	return ctx.Err()
}

// startTenantRouter starts a router with a small store for callers of several tenants,
// whose tokens the secret signs.
func (w *testbed) startTenantRouter(ctx context.Context, name string) (*process.Process, tokenSecret, error) {
	secret := newTokenSecret()
	config, err := writeTenantConfig(filepath.Join(w.dir, name), w.agent.Addr(), secret)
	if err != nil {
		return nil, "", err
	}
	router, err := process.StartRouter(ctx, w.binary, config)
	if err != nil {
		return nil, "", err
	}
	w.others = append(w.others, router)
	return router, secret, nil
}

// runBoth runs an open loop against two servers at the same time.
func runBoth(ctx context.Context, sched schedule, first, second *subject) (a, b []sample, err error) {
	group := run.New(ctx)
	group.Go(first.name, func(ctx context.Context) (err error) {
		a, err = first.runOpenLoop(ctx, sched)
		return err
	})
	group.Go(second.name, func(ctx context.Context) (err error) {
		b, err = second.runOpenLoop(ctx, sched)
		return err
	})
	err = group.Wait()
	return a, b, err
}

// runBeside calls fn while other runs, and then stops other.
func runBeside(ctx context.Context, other func(context.Context), fn func(context.Context) error) error {
	group := run.New(ctx)
	group.Go("beside", func(ctx context.Context) error {
		other(ctx)
		return nil
	})
	err := fn(ctx)
	group.Stop(nil)
	return errors.Join(err, group.Wait())
}

// storedRecord is something that a tenant has stored.
type storedRecord struct {
	key, body, header string // of the request
	requestID         string
	ticketID          string
}

// storeRecords stores synchronous and asynchronous requests with idempotency keys, and
// tickets.
func storeRecords(ctx context.Context, t *tenant) (records []storedRecord, err error) {
	for i := range 3 * quietRecords {
		rec := storedRecord{key: fmt.Sprintf("%s-key-%d", t.name, i), body: fmt.Sprintf(`{"content":{"prompt":"code review of python module %d"}}`, i)}
		switch i % 3 {
		case 1:
			rec.header = "Prefer: respond-async\r\n"
		case 2:
			rec.body = fmt.Sprintf(`{"content":{"prompt":%q}}`, unservedPrompt(1_000_000+i))
		}
		got, status, err := rec.send(ctx, t)
		if err != nil {
			return nil, err
		}
		if status != http.StatusOK && status != http.StatusAccepted {
			return nil, fmt.Errorf("store a record of tenant %s: status %d", t.name, status)
		}
		rec.requestID = got.RequestID
		if got.Data.Proposal != nil {
			rec.ticketID = got.Data.Proposal.TicketID
		}
		records = append(records, rec)
		// Less than the rate limit of one caller.
		if !resilience.Sleep(ctx, 60*time.Millisecond) {
			return nil, ctx.Err()
		}
	}
	return records, nil
}

func (s *storedRecord) send(ctx context.Context, t *tenant) (*contract.Response, int, error) {
	r, err := t.call(ctx, "POST", routePath, s.header+"Idempotency-Key: "+s.key+"\r\n", s.body)
	if err != nil {
		return nil, 0, err
	}
	var got contract.Response
	if r.status != http.StatusOK && r.status != http.StatusAccepted {
		return &got, r.status, nil
	}
	return &got, r.status, strictjson.UnmarshalAllowUnknown(r.body, &got)
}

// find returns an error if the request, its key or its ticket is missing.
func (s *storedRecord) find(ctx context.Context, t *tenant) error {
	var errs []error
	for _, path := range []string{"/api/v1/requests/" + s.requestID, "/api/v1/tickets/" + s.ticketID} {
		if strings.HasSuffix(path, "/") {
			continue // it has no ticket
		}
		r, err := t.call(ctx, "GET", path, "", "")
		if err == nil && r.status != http.StatusOK {
			err = fmt.Errorf("%s: %d: %.200s", path, r.status, r.body)
		}
		errs = append(errs, err)
	}
	got, status, err := s.send(ctx, t)
	if err == nil && (status != http.StatusOK || got.RequestID != s.requestID) {
		err = fmt.Errorf("key %s: status %d with request %s, not %s", s.key, status, got.RequestID, s.requestID)
	}
	resilience.Sleep(ctx, 60*time.Millisecond)
	return errors.Join(append(errs, err)...)
}
