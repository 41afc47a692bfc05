package workload

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
)

func TestReport_ListsViolations(t *testing.T) {
	names := make([]string, maxListed+5)
	for i := range names {
		names[i] = "request-" + strings.Repeat("x", i)
	}
	r := &Report{Title: "title", Checks: []CheckResult{{Name: "nothing"}, {Name: "something", Violations: names}}}
	r.AddFigure("a figure", "%d of %d", 1, 2)
	var out bytes.Buffer
	r.PrintTo(&out)
	for _, want := range []string{"title", "a figure", "1 of 2", "nothing", "something", names[maxListed-1] + "\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got no %q in the report:\n%s", want, out.String())
		}
	}
	if got, want := r.CountViolations(), len(names); got != want {
		t.Errorf("CountViolations: got %d, want %d", got, want)
	}
	if got := strings.Count(out.String(), "request-"); got != maxListed {
		t.Errorf("got %d violations listed, want %d", got, maxListed)
	}
}

func TestAddFigures_CountsLedger(t *testing.T) {
	l := correctLedger()
	resp := responseWith(bad)
	resp.Status = contract.StatusFailed
	l.recordAccepted(bad)
	l.see(resp)
	r := &Report{}
	l.AddFigures(r)
	want := []figure{
		{"requests accepted", "2"},
		{"ended, by status", "map[completed:1 failed:1]"},
		{"executions, by agent", "map[later_agent:1 once_agent:1 once_standby:1 plain_agent:2]"},
		{"callbacks, by HTTP status", "map[200:2 409:1]"},
	}
	if diff := cmp.Diff(want, r.figures, cmp.AllowUnexported(figure{})); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
}
