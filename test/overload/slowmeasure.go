package main

import (
	"context"
	"errors"
	"time"
)

// slowResult is what one kind of slow connections did to ordinary callers.
type slowResult struct {
	kind                string
	without, with       spread // of good answers
	withoutAll, withAll count
	lag                 spread // of callers, with
	ends                *slowEnds
}

// How long the callers are watched without and with slow connections, of which
// the slowest are thrown out after half a minute, and how many of those are opened
// a second.
const (
	longestSlow    = 45 * time.Second
	longestWithout = 10 * time.Second
	openedPerSec   = 250
)

// slow measures ordinary callers at a rate, without and with slow connections.
func (m *measurer) slow(ctx context.Context, s *subject, k slowKind, many int, perSecond float64, lasts time.Duration) (*slowResult, error) {
	with := clamp(lasts*3/4, 2*time.Second, longestSlow)
	without := clamp(lasts/6, 500*time.Millisecond, longestWithout)
	m.say("slow %s: %.0f/s without for %s, then with %d for %s", k.name, perSecond, without, many, with)
	r := &slowResult{kind: k.name}
	samples, err := s.open(ctx, schedule{{perSecond, without}}, m.connections)
	if err != nil {
		return nil, err
	}
	r.without, r.withoutAll = spreadOf(times(samples, good, sample.late)), countOf(samples)
	over := min(time.Duration(many)*time.Second/openedPerSec, with/2)
	stop := slowCrowd(ctx, k, s.addr, many, over)
	samples, err = s.open(ctx, schedule{{perSecond, with}}, m.connections)
	var leftErr error
	r.ends, leftErr = stop()
	if err := errors.Join(err, leftErr); err != nil {
		return nil, err
	}
	r.with, r.withAll = spreadOf(times(samples, good, sample.late)), countOf(samples)
	r.lag = lag(samples)
	return r, nil
}
