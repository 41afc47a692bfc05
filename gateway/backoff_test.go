package gateway

import (
	"testing"
	"time"
)

// A server that ends at once must be restarted rarely, for any jitter of the delays.
func TestBackoff_StartsFewProcesses(t *testing.T) {
	for _, share := range []float64{0.5, 0.75, 1} { // of a delay, as resilience.AddJitter returns
		starts, elapsed := 1, time.Duration(0)
		for {
			elapsed += time.Duration(share * float64(backoffDelay(time.Second, starts)))
			if elapsed > 5*time.Minute {
				break
			}
			starts++
		}
		if starts > 12 {
			t.Errorf("%g of each delay: got %d starts in 5 minutes, want at most 12", share, starts)
		}
	}
	if got, want := backoffDelay(time.Second, 1000), maxBackoff; got != want {
		t.Errorf("got %s after many failures, want %s", got, want)
	}
}
