package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/run"
)

// subject is one server under one kind of request.
type subject struct {
	name    string
	addr    string
	request []byte
	want    contract.Status // of a good answer
	wrong   *wrongs
}

// sample is what became of one arrival; times are counted from the start.
type sample struct {
	due, sent, done time.Duration
	kind            kind
}

// late is how long the answer took from when the request was due.
func (s sample) late() time.Duration { return s.done - s.due }

// served is how long it took from when it was sent.
func (s sample) served() time.Duration { return s.done - s.sent }

// call makes one request and books it.
func (s *subject) call(ctx context.Context, l *link, start time.Time, at *sample) {
	at.sent = time.Since(start)
	r, err := l.ask(ctx, s.request)
	at.done = time.Since(start)
	switch {
	case err != nil && ctx.Err() != nil: // broken off by us
	case err != nil:
		at.kind = broken
		s.wrong.add("%s: %s: %v", s.name, broken, err)
	default:
		k, why := classify(r, s.want)
		if k == other {
			s.wrong.add("%s: %s", s.name, why)
		}
		at.kind = k
	}
}

// politeness is what a caller who was refused waits in a closed loop. Retry-After
// says more; then there would be no load.
const politeness = 50 * time.Millisecond

// closed lets so many callers ask one request after the other, and returns what
// became of them.
func (s *subject) closed(ctx context.Context, callers int, lasts time.Duration) []sample {
	each := make([][]sample, callers)
	start := time.Now()
	run.ForEach(ctx, callers, callers, func(ctx context.Context, i int) {
		l := &link{addr: s.addr}
		defer l.close()
		for ctx.Err() == nil && time.Since(start) < lasts {
			at := sample{due: time.Since(start)}
			s.call(ctx, l, start, &at)
			each[i] = append(each[i], at)
			if at.kind != good && !pause(ctx, politeness) {
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

// open sends requests when they are due, over as many connections at most,
// whatever becomes of those before. What cannot be sent until its stretch is over
// stays unsent: one stretch leaves the next no debts.
func (s *subject) open(ctx context.Context, sched schedule, connections int) ([]sample, error) {
	samples := make([]sample, sched.arrivals())
	for i := range samples {
		samples[i].due, _ = sched.due(i)
	}
	// One connection does at least one request a second: none gets old enough
	// to be closed by the server in between.
	links := make([]*link, max(1, min(connections, len(samples), int(math.Ceil(sched.most())))))
	errs := make([]error, len(links))
	defer func() {
		for _, l := range links {
			l.close()
		}
	}()
	run.ForEach(ctx, dialers, len(links), func(ctx context.Context, i int) {
		links[i] = &link{addr: s.addr}
		errs[i] = links[i].dial(ctx)
	})
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("connect to %s: %w", s.name, err)
	}
	var next atomic.Int64
	start := time.Now()
	run.ForEach(ctx, len(links), len(links), func(ctx context.Context, w int) {
		for {
			i := int(next.Add(1) - 1)
			if i >= len(samples) || !pause(ctx, samples[i].due-time.Since(start)) {
				return
			}
			if _, over := sched.due(i); time.Since(start) < over {
				s.call(ctx, links[w], start, &samples[i])
			}
		}
	})
	return samples, ctx.Err()
}

// dialers is how many connections are made at a time: fewer than a backlog holds.
const dialers = 16
