package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/test/internal/workload"
)

const (
	callers     = 4
	prompts     = 50
	workers     = 16 // that register or send heartbeats
	reloadPause = time.Second
	listLimit   = time.Minute // until all agents are listed
)

// tally counts answers. It is safe for concurrent use.
type tally struct {
	mu       sync.Mutex
	done     int
	times    []time.Duration
	failed   []string
	versions map[string]bool // of the registry, in decisions
}

func (t *tally) add(began time.Time, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done++
	if err != nil {
		t.failed = append(t.failed, err.Error())
		return
	}
	t.times = append(t.times, time.Since(began))
}

func (t *tally) String() string {
	if len(t.times) == 0 {
		return fmt.Sprint(t.done)
	}
	slices.Sort(t.times)
	return fmt.Sprintf("%d; p50 %.1f ms, p99 %.1f ms", t.done, t.percentile(50), t.percentile(99))
}

// percentile returns a percentile of the sorted times, in milliseconds.
func (t *tally) percentile(p int) float64 {
	return float64(t.times[(len(t.times)-1)*p/100].Microseconds()) / 1000
}

// measure runs all phases: register the agents, fill the cache, route without and with
// load, and check.
func measure(ctx context.Context, opts options, dir string) (_ *workload.Report, err error) {
	t, err := newTestbed(ctx, opts, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.close(context.WithoutCancel(ctx))) }()
	r := &workload.Report{Title: fmt.Sprintf("%d agents that send heartbeats, %d that join, %s", opts.agents, opts.joining, opts.duration)}

	began, registered, beats, joined := time.Now(), &tally{}, &tally{}, &tally{}
	t.forEachAgent(ctx, 0, opts.agents, registered, t.register)
	r.AddFigure("agents registered before", "%s; %.0f a second", registered, float64(opts.agents)/time.Since(began).Seconds())
	lives, over := context.WithCancel(ctx)
	defer over()
	var warm, quiet, busy *tally
	var asked, reloads int64
	run.ForEach(ctx, 2, 2, func(ctx context.Context, i int) {
		if i == 0 {
			t.keepLeases(ctx, lives, beats)
			return
		}
		defer over()
		warm = t.route(ctx, 2*prompts, 0)
		asked = t.asked.Load()
		quiet = t.route(ctx, 0, opts.duration/3)
		busy, reloads = t.routeUnderLoad(ctx, joined)
		asked = t.asked.Load() - asked
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.AddFigure("requests, with heartbeats only", "%s", quiet)
	r.AddFigure("requests, while agents join and the file is reloaded", "%s", busy)
	r.AddFigure("agents joined", "%s", joined)
	r.AddFigure("reloads", "%d", reloads)
	r.AddFigure("heartbeats", "%s", beats)
	listed, took := t.awaitListed(ctx)
	r.AddFigure("agents listed after the last one joined", "%d, after %d ms", listed, took.Milliseconds())
	r.AddFigure("memory of the router", "%.0f MiB", t.router.RSSMiB())
	log, err := os.ReadFile(filepath.Join(dir, "router.log"))
	if err != nil {
		return nil, err
	}
	t.addChecks(r, string(log), asked, listed, map[string]*tally{"registrations": registered, "warm": warm, "quiet": quiet, "load": busy, "joined": joined, "heartbeats": beats})
	return r, nil
}

func (t *testbed) addChecks(r *workload.Report, log string, asked int64, listed int, tallies map[string]*tally) {
	versions := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(tallies)) {
		r.Checks = append(r.Checks, workload.CheckResult{Name: "failed, " + name, Violations: tallies[name].failed})
		maps.Copy(versions, tallies[name].versions)
	}
	check := func(name string, ok bool, format string, values ...any) {
		c := workload.CheckResult{Name: name}
		if !ok {
			c.Violations = []string{fmt.Sprintf(format, values...)}
		}
		r.Checks = append(r.Checks, c)
	}
	learned, expired := strings.Count(log, `"msg":"examples learned"`), strings.Count(log, `"msg":"an agent expired`)
	check("the lexical model was trained again", learned == 1 && len(versions) == 1, "%d trainings, %d versions of the catalogue", learned, len(versions))
	check("a cached prompt was sent to the model", asked == 0, "%d calls", asked)
	check("a lease ended", expired == 0, "%d leases", expired)
	want := t.opts.agents + t.opts.joining + 1
	check("an agent is missing", listed == want, "%d agents, want %d", listed, want)
}

// forEachAgent calls fn for the agents from first on.
func (t *testbed) forEachAgent(ctx context.Context, first, n int, results *tally, fn func(context.Context, int) error) {
	run.ForEach(ctx, workers, n, func(ctx context.Context, i int) {
		if ctx.Err() == nil {
			began := time.Now()
			results.add(began, fn(ctx, first+i))
		}
	})
}

// keepLeases sends heartbeats of all agents, evenly over the time, until the context lives
// ends.
func (t *testbed) keepLeases(ctx, lives context.Context, beats *tally) {
	const batches = 100 // of one round
	pause := time.Second * leaseSeconds / heartbeatsPerLease / batches
	for n := 0; resilience.Sleep(lives, pause); n++ {
		first := t.opts.agents * (n % batches) / batches
		end := t.opts.agents * (n%batches + 1) / batches
		t.forEachAgent(ctx, first, end-first, beats, func(ctx context.Context, i int) error {
			return t.call(ctx, http.MethodPost, "/api/v1/agents/"+agentID(i)+"/heartbeat", "{}", nil, http.StatusOK)
		})
	}
}

// route sends requests with the same prompts again and again, n of them, or for a time.
func (t *testbed) route(ctx context.Context, n int, limit time.Duration) *tally {
	results := &tally{versions: map[string]bool{}}
	end := time.Now().Add(limit)
	run.ForEach(ctx, callers, callers, func(ctx context.Context, caller int) {
		for i := caller; ctx.Err() == nil && (i < n || time.Now().Before(end)); i += callers {
			began := time.Now()
			results.add(began, t.routeOne(ctx, i%prompts, results))
		}
	})
	return results
}

func (t *testbed) routeOne(ctx context.Context, prompt int, results *tally) error {
	var resp contract.Response
	body := fmt.Sprintf(`{"content":{"prompt":"how many words are in text number %d"}}`, prompt)
	if err := t.call(ctx, http.MethodPost, "/api/v1/route", body, &resp, http.StatusOK); err != nil {
		return err
	}
	if resp.Status != contract.StatusCompleted || resp.Decision == nil {
		return fmt.Errorf("request %s ended as %s", resp.RequestID, resp.Status)
	}
	results.mu.Lock()
	defer results.mu.Unlock()
	results.versions[resp.Decision.RegistryVersion] = true
	return nil
}

// routeUnderLoad routes while agents join, and while the registry file is reloaded.
func (t *testbed) routeUnderLoad(ctx context.Context, joined *tally) (busy *tally, reloads int64) {
	lives, over := context.WithCancel(ctx)
	defer over()
	jobs := []func(context.Context){
		func(ctx context.Context) {
			defer over()
			busy = t.route(ctx, 0, t.opts.duration)
		},
		func(ctx context.Context) {
			pause := t.opts.duration / time.Duration(t.opts.joining+1)
			for i := range t.opts.joining {
				resilience.Sleep(lives, pause) // the rest joins at once if the time is over
				began := time.Now()
				joined.add(began, t.register(ctx, t.opts.agents+i))
			}
		},
		func(context.Context) {
			for resilience.Sleep(lives, reloadPause) {
				reloads++
				if err := t.reload(int(reloads)); err != nil {
					joined.add(time.Now(), err)
				}
			}
		},
	}
	run.ForEach(ctx, len(jobs), len(jobs), func(ctx context.Context, i int) { jobs[i](ctx) })
	return busy, reloads
}

// awaitListed waits until all agents are listed. It returns how many are, and how long
// that took.
func (t *testbed) awaitListed(ctx context.Context) (listed int, took time.Duration) {
	began := time.Now()
	workload.AwaitCondition(ctx, listLimit, func() bool {
		var list struct {
			Agents []struct{} `json:"agents"`
		}
		if t.call(ctx, http.MethodGet, "/api/v1/agents", "", &list, http.StatusOK) == nil {
			listed = len(list.Agents)
		}
		return listed == t.opts.agents+t.opts.joining+1
	})
	return listed, time.Since(began)
}
