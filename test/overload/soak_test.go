package main

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestJudgeSoak(t *testing.T) {
	// samplesOf returns 80 samples with a heap that depends on the number of the sample.
	samplesOf := func(heap func(i int) float64) *soakResult {
		s := &soakResult{lasted: 80 * time.Second}
		for i := range 80 {
			s.samples = append(s.samples, resourceUsage{heapMiB: heap(i), goroutines: 100 + i})
		}
		return s
	}
	for _, tt := range []struct {
		name string
		got  *soakResult
		want string
	}{
		{"flat", samplesOf(func(int) float64 { return 60 }), ""},
		{"growth in the first half", samplesOf(func(i int) float64 { return 20 + float64(min(i, 40)) }), ""},
		{"a few high samples", samplesOf(func(i int) float64 { return 60 + float64(i%10/9*200) }), ""},
		{"growth", samplesOf(func(i int) float64 { return 20 + float64(i) }), "90 MiB in the last quarter, at most 81 expected after 70"},
		{"too few samples", &soakResult{samples: make([]resourceUsage, 7)}, "too few samples"},
	} {
		got := strings.Join(judgeSoak(tt.got), "; ")
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	var out strings.Builder
	samplesOf(func(i int) float64 { return 20 + float64(i) }).printTo(&out)
	for _, want := range []string{"live heap, MiB", "+3600.0", "RSS, MiB", "goroutines", "open files"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got no %q in the report:\n%s", want, &out)
		}
	}
}

func TestSlope(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		want   float64
	}{{[]float64{1, 3, 5, 7}, 2}, {[]float64{4, 4, 4}, 0}, {[]float64{9}, 0}, {nil, 0}, {[]float64{3, 1, 3, 1}, -0.4}} {
		if got := slope(tt.values); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%v: got %v, want %v", tt.values, got, tt.want)
		}
	}
}
