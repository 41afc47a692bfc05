package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/run"
)

// subject is a server with one kind of request.
type subject struct {
	name        string
	addr        string
	requests    [][]byte        // sent in turn
	want        contract.Status // of a good response
	connections int             // maximum number in an open loop
	failures    *failureLog
	stages      *stageTimes // nil = not measured
	sent        atomic.Int64
}

// sample is the outcome of one arrival. Times are counted from the start of the load.
type sample struct {
	due, done time.Duration
	outcome   outcome
}

// latency is the time from when the request was due, so that waiting callers are
// counted.
func (s sample) latency() time.Duration { return s.done - s.due }

// sendRequest sends one request and records its outcome.
func (s *subject) sendRequest(ctx context.Context, l *connection, start time.Time, at *sample) {
	r, err := l.roundTrip(ctx, s.requests[int(s.sent.Add(1))%len(s.requests)])
	at.done = time.Since(start)
	switch {
	case err != nil && ctx.Err() != nil: // cancelled by this program
	case err != nil:
		at.outcome = outcomeBroken
		s.failures.record("%s: %s: %v", s.name, outcomeBroken, err)
	default:
		k, why := classifyResponse(r, s.want)
		if k == outcomeInvalid {
			s.failures.record("%s: %s", s.name, why)
		}
		at.outcome = k
		if k == outcomeGood && s.stages != nil {
			s.stages.add(r.body, at.latency())
		}
	}
}

// retryPause is the pause after a rejection in a closed loop. It is shorter than
// Retry-After, because there would be no load otherwise.
const retryPause = 50 * time.Millisecond

// runClosedLoop runs concurrent callers, each of which sends one request after the
// other.
func (s *subject) runClosedLoop(ctx context.Context, callers int, lasts time.Duration) []sample {
	each := make([][]sample, callers)
	start := time.Now()
	run.ForEach(ctx, callers, callers, func(ctx context.Context, i int) {
		l := &connection{addr: s.addr}
		defer l.close()
		for ctx.Err() == nil && time.Since(start) < lasts {
			at := sample{due: time.Since(start)}
			s.sendRequest(ctx, l, start, &at)
			each[i] = append(each[i], at)
			if at.outcome != outcomeGood && !resilience.Sleep(ctx, retryPause) {
				return
			}
		}
	})
	var all []sample
	for _, samples := range each {
		all = append(all, samples...)
	}
	return all
}

// runOpenLoop sends requests when they are due, independently of earlier answers, over
// a limited number of connections. A request that cannot be sent before its segment
// ends stays unsent, so that it does not delay the next segment.
func (s *subject) runOpenLoop(ctx context.Context, sched schedule) ([]sample, error) {
	samples := make([]sample, sched.countArrivals())
	for i := range samples {
		samples[i].due, _ = sched.arrivalTime(i)
	}
	// Each connection sends at least one request per second, so that the server does not
	// close it as idle.
	links := make([]*connection, max(1, min(s.connections, len(samples), int(math.Ceil(sched.maxRate())))))
	errs := make([]error, len(links))
	defer func() {
		for _, l := range links {
			l.close()
		}
	}()
	run.ForEach(ctx, concurrentDials, len(links), func(ctx context.Context, i int) {
		links[i] = &connection{addr: s.addr}
		errs[i] = links[i].ensureDialed(ctx)
	})
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("connect to %s: %w", s.name, err)
	}
	var next atomic.Int64
	start := time.Now()
	run.ForEach(ctx, len(links), len(links), func(ctx context.Context, w int) {
		for {
			i := int(next.Add(1) - 1)
			if i >= len(samples) || !resilience.Sleep(ctx, samples[i].due-time.Since(start)) {
				return
			}
			if _, over := sched.arrivalTime(i); time.Since(start) < over {
				s.sendRequest(ctx, links[w], start, &samples[i])
			}
		}
	})
	return samples, ctx.Err()
}

// concurrentDials is lower than the backlog of a listener.
const concurrentDials = 16
