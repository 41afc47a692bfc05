package main

import (
	"strings"
	"testing"
	"time"
)

func TestJudge_ComparesWithBaseline(t *testing.T) {
	const ms = time.Millisecond
	baseline := result{peak: 1000, goodput: 980, half: distribution{p50: 41 * ms, p99: 45 * ms}, shed: distribution{p99: 4 * ms}, recovered: true}
	good := result{peak: 1000, goodput: 950, shed: distribution{p99: 20 * ms}, recovered: true, recoveredAfter: time.Second}
	slow := slowResult{kind: "headers", without: distribution{p99: 50 * ms}, with: distribution{p99: 60 * ms}, sent: 1000}
	neighbour := neighbourResult{alone: distribution{p99: 50 * ms}, beside: distribution{p99: 60 * ms}, counts: outcomeCounts{outcomeGood: 1000}, kept: 90}
	for _, tt := range []struct {
		name   string
		change func(r *report)
		want   string // "" = no violation
	}{
		{"within the limits", func(*report) {}, ""},
		{"little goodput", func(r *report) { r.routes.goodput = 850 }, "goodput during the overload: 0.85"},
		{"little goodput of the baseline, too", func(r *report) { r.routes.goodput, r.baseline.goodput = 850, 900 }, ""},
		{"slow rejections", func(r *report) { r.routes.shed.p99 = 60 * ms }, "time to reject a request, p99: 60.0 ms, at most 50.0"},
		{"slow rejections by the baseline, too", func(r *report) { r.routes.shed.p99, r.baseline.shed.p99 = 60*ms, 40*ms }, ""},
		{"late recovery", func(r *report) { r.routes.recoveredAfter = 6 * time.Second }, "recovery: 6.0"},
		{"no recovery", func(r *report) { r.routes.recovered = false }, "recovery: never"},
		{"no recovery of the baseline, either", func(r *report) { r.routes.recovered, r.baseline.recovered = false, false }, ""},
		{"late beside slow connections", func(r *report) { r.slow[0].with.p99 = 80 * ms }, "beside slow headers: p99 80.0 ms, at most 79.0"},
		{"late on a busy machine", func(r *report) { r.slow[0].with.p99, r.baseline.half.p99 = 80*ms, 60*ms }, ""},
		{"rejected beside slow connections", func(r *report) { r.slow[0].shed = 11 }, "11 of 1000 callers were rejected"},
		{"rejected by the baseline, too", func(r *report) { r.slow[0].shed, r.baseline.halfShed = 11, 1 }, ""},
		{"failures of a neighbour", func(r *report) { r.neighbour.counts[outcomeShed] = 2 }, "99.80 % of the requests"},
		{"requests of a neighbour that were not sent", func(r *report) { r.neighbour.counts[outcomeUnsent] = 2 }, "99.80 % of the requests"},
		{"one failure in a thousand", func(r *report) { r.neighbour.counts[outcomeShed] = 1 }, ""},
		{"late beside a flood", func(r *report) { r.neighbour.beside.p99 = 76 * ms }, "beside a flood: p99 76.0 ms, at most 75.0"},
		{"busy machine", func(r *report) { r.foreignCPU, r.routes.goodput, r.neighbour.beside.p99 = 0.2, 100, time.Second }, ""},
		{"records are missing on a busy machine", func(r *report) { r.foreignCPU, r.neighbour.missing = 0.2, 1 }, "1 of 90 records"},
		{"records are missing", func(r *report) { r.neighbour.missing = 1 }, "1 of 90 records"},
	} {
		b, g, s, n := baseline, good, slow, neighbour
		r := &report{baseline: &b, routes: &g, slow: []*slowResult{&s}, neighbour: &n}
		tt.change(r)
		got := strings.Join(r.judge(), "; ")
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
