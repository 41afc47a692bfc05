package main

import (
	"testing"
	"time"
)

func TestSummarize_FindsLongestTimeWithoutAnswer(t *testing.T) {
	start := time.Unix(0, 0)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	answers := []answer{{at(0), true}, {at(1), true}, {at(2), false}, {at(5), true}, {at(6), true}, {at(20), true}}
	for _, tt := range []struct {
		name     string
		from, to int
		want     probed
	}{
		{"between answers", 1, 6, probed{answered: 3, failed: 1, gap: 4 * time.Second}},
		{"at the end", 5, 15, probed{answered: 2, gap: 9 * time.Second}},
		{"at the start", 7, 20, probed{answered: 1, gap: 13 * time.Second}},
		{"no answers", 7, 9, probed{gap: 2 * time.Second}},
	} {
		if got := summarize(answers, at(tt.from), at(tt.to)); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}
