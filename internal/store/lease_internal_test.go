package store

import (
	"testing"
	"time"
)

// A lease survives a server whose every answer takes up to 0.44 of the TTL: a late
// renewal does not delay the next one.
func TestNextRenewal_CompensatesLatency(t *testing.T) {
	const ttl = 10 * time.Second
	for _, latency := range []time.Duration{0, time.Second, ttl / 3, ttl * 4 / 10, ttl * 44 / 100} {
		now, began, validUntil := time.Duration(0), time.Duration(0), ttl*9/10
		for range 100 {
			now += nextRenewal(ttl, now-began, validUntil-now)
			began, now = now, now+latency
			if now >= validUntil {
				t.Errorf("latency %s: the lease was lost at %s, valid until %s", latency, now, validUntil)
				break
			}
			validUntil = began + ttl*9/10
		}
	}
}
