package lint

import "testing"

func TestAdaptPauses_YieldsToOtherWork(t *testing.T) {
	n := minPauses
	for range 10 {
		n = adaptPauses(n, 2*lateWake)
	}
	if n != maxPauses {
		t.Errorf("got pauses of %d slices while the process is busy, want %d", n, maxPauses)
	}
	for range maxPauses {
		n = adaptPauses(n, 0)
	}
	if n != minPauses {
		t.Errorf("got pauses of %d slices while the process is idle, want %d", n, minPauses)
	}
}
