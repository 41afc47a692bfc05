package main

import (
	"fmt"
	"time"
)

// The limits of a run. The baseline of the same run raises them, so that a busy
// machine does not decide: it is a bare server with the same load.
const (
	minGoodput   = 0.90 // of the peak, during the overload
	maxShedTime  = 50 * time.Millisecond
	maxRecovery  = 5 * time.Second
	maxSlowdown  = 1.5   // of the 99th percentile beside other callers
	maxShedShare = 0.01  // of callers beside slow connections
	minSuccess   = 0.999 // of a tenant beside another one that floods the router
)

// judge returns the limits that were not kept. On a busy machine only what does not
// depend on time counts.
func (r *report) judge() (broken []string) {
	if r.neighbour != nil && r.neighbour.missing > 0 {
		broken = append(broken, fmt.Sprintf("after a flood: %d of %d records and keys of another tenant are missing", r.neighbour.missing, r.neighbour.kept))
	}
	if r.soak != nil {
		broken = append(broken, judgeSoak(r.soak)...)
	}
	if r.isMachineBusy() {
		return broken
	}
	if r.routes != nil {
		broken = append(broken, judgeOverload(r.routes, r.baseline)...)
	}
	for _, s := range r.slow {
		broken = append(broken, judgeSlow(s, r.baseline)...)
	}
	if r.neighbour != nil {
		broken = append(broken, judgeNeighbour(r.neighbour)...)
	}
	return broken
}

func (r *report) isMachineBusy() bool { return r.foreignCPU > maxForeignCPU }

// judgeOverload returns the limits that the router does not keep.
func judgeOverload(got, baseline *result) (broken []string) {
	add := func(format string, values ...any) { broken = append(broken, fmt.Sprintf(format, values...)) }
	if limit := minGoodput * min(1, baseline.goodput/baseline.peak); got.goodput < limit*got.peak {
		add("goodput during the overload: %.2f of the peak, at least %.2f expected", got.goodput/got.peak, limit)
	}
	if limit := max(maxShedTime, 2*baseline.shed.p99); got.shed.p99 > limit {
		add("time to reject a request, p99: %s ms, at most %s expected", formatMillis(got.shed.p99), formatMillis(limit))
	}
	if !baseline.recovered {
		return broken // the machine is too busy to tell
	}
	if limit := maxRecovery + baseline.recoveredAfter; !got.recovered || got.recoveredAfter > limit {
		add("recovery: %s, at most %s expected", got.formatRecovery(), limit)
	}
	return broken
}

// judgeSlow returns the limits that callers beside slow connections do not see kept.
func judgeSlow(s *slowResult, baseline *result) (broken []string) {
	if limit := slowdownLimit(s.without, baseline.half); s.with.p99 > limit {
		broken = append(broken, fmt.Sprintf("beside slow %s: p99 %s ms, at most %s expected", s.kind, formatMillis(s.with.p99), formatMillis(limit)))
	}
	if s.shed > int(maxShedShare*float64(s.sent))+baseline.halfShed {
		broken = append(broken, fmt.Sprintf("beside slow %s: %d of %d callers were rejected", s.kind, s.shed, s.sent))
	}
	return broken
}

// slowdownLimit returns the permitted 99th percentile beside a disturbance. The spread
// of the baseline, which is not disturbed, shows how busy the machine is.
func slowdownLimit(alone, baseline distribution) time.Duration {
	return time.Duration(maxSlowdown*float64(alone.p99)) + baseline.p99 - baseline.p50
}

// judgeNeighbour returns the limits that a tenant beside another one does not see kept.
func judgeNeighbour(n *neighbourResult) (broken []string) {
	if share := n.success(); share < minSuccess {
		broken = append(broken, fmt.Sprintf("beside a flood: %.2f %% of the requests of another tenant succeed, at least %.1f expected", 100*share, 100*minSuccess))
	}
	if limit := slowdownLimit(n.alone, distribution{}); n.beside.p99 > limit {
		broken = append(broken, fmt.Sprintf("beside a flood: p99 %s ms, at most %s expected", formatMillis(n.beside.p99), formatMillis(limit)))
	}
	return broken
}
