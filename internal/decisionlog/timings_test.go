package decisionlog

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
)

func TestTimings_MeasureEachStageAndTheTotal(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	clock := func() time.Time { return now }
	timings := ResumeTimings(clock, now.Add(-time.Second)) // received a second ago
	now = now.Add(20 * time.Millisecond)
	timings.EndStage("match")
	now = now.Add(5*time.Millisecond + 600*time.Nanosecond)
	timings.EndStage("dispatch")
	d := &contract.Decision{}
	timings.FinishTotal(d)
	want := map[string]float64{"match": 20, "dispatch": 5.001, "total": 1025.001}
	if diff := cmp.Diff(want, d.TimingsMS); diff != "" {
		t.Errorf("timings (-want +got):\n%s", diff)
	}
}
