package gateway

import (
	"testing"
	"time"
)

// A server that ends at once must be restarted rarely, for any random part of the delays.
func TestBackoff_StartsFewProcesses(t *testing.T) {
	for _, random := range []float64{0, 0.5, 1} {
		starts, elapsed := 1, time.Duration(0)
		for {
			elapsed += backoffDelay(time.Second, starts, random)
			if elapsed > 5*time.Minute {
				break
			}
			starts++
		}
		if starts > 12 {
			t.Errorf("random part %g: got %d starts in 5 minutes, want at most 12", random, starts)
		}
	}
	if got, want := backoffDelay(time.Second, 1000, 1), maxBackoff; got != want {
		t.Errorf("got %s after many failures, want %s", got, want)
	}
}
