package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// stageTimes sums the times of the stages of requests, from their decisions, and what
// their total leaves out. It is safe for concurrent use.
type stageTimes struct {
	mu      sync.Mutex
	answers int
	sums    map[string]time.Duration
}

// outsideStage is the time that the total does not contain: until the request was
// accepted, and from its end until its outcome was recorded and the answer received.
const outsideStage = "outside"

// add adds the stages of a good answer.
func (t *stageTimes) add(body []byte, latency time.Duration) {
	var got contract.Response
	if err := strictjson.UnmarshalAllowUnknown(body, &got); err != nil || got.Decision == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sums == nil {
		t.sums = map[string]time.Duration{}
	}
	t.answers++
	t.sums[outsideStage] += latency
	for stage, ms := range got.Decision.TimingsMS {
		took := time.Duration(ms * float64(time.Millisecond))
		t.sums[stage] += took
		if stage == "total" {
			t.sums[outsideStage] -= took
		}
	}
}

// String returns the mean time of each stage in milliseconds.
func (t *stageTimes) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var parts []string
	for _, stage := range slices.Sorted(maps.Keys(t.sums)) {
		parts = append(parts, fmt.Sprintf("%s %s", stage, formatMillis(t.sums[stage]/time.Duration(t.answers))))
	}
	return strings.Join(parts, ", ")
}
