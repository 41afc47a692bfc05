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

// stageTimes sums the times of the stages of requests, from their decisions. It is safe
// for concurrent use.
type stageTimes struct {
	mu      sync.Mutex
	answers int
	sums    map[string]time.Duration
}

// add adds the stages of a good answer.
func (t *stageTimes) add(body []byte) {
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
	for stage, ms := range got.Decision.TimingsMS {
		t.sums[stage] += time.Duration(ms * float64(time.Millisecond))
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
