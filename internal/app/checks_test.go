package app

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/testkit"
)

// largeRegistry returns a registry file whose check takes long.
func largeRegistry(agents, examples int) string {
	var b strings.Builder
	b.WriteString("clients:\n")
	for i := range agents {
		fmt.Fprintf(&b, "  a%d: { match: { intent: [i%d], domains: [d%d] }, examples: { i%d: [", i, i, i, i)
		for k := range examples {
			fmt.Fprintf(&b, "%q, ", fmt.Sprintf("do the thing %d w%d of kind x%d", k, (i*31+k*7)%997, (i*17+k)%331))
		}
		b.WriteString("] } }\n")
	}
	return b.String()
}

// Checks of registry files are limited in rate for each caller, run one at a time, and are limited
// in size.
func TestServer_LimitsRegistryChecks(t *testing.T) {
	m := newTokenIssuer()
	limited := startGuarded(t, m, "clients: {}\n")
	unlimited := startGuarded(t, m, "clients: {}\n", func(c *config.Config) { c.Limits.Check.RPS = "0" })
	yaml := http.Header{"Content-Type": {"application/yaml"}}
	check := func(s *testServer, sub, kind, body string) apiResponse {
		return s.do(call{method: "POST", path: "/api/v1/registry/" + kind, token: m.token(sub, everyScope, nil), body: body, header: yaml})
	}
	t.Run("rate", func(t *testing.T) {
		rejected := 0
		for range 8 {
			if got := check(limited, "alice", "validate", "clients: {}\n"); got.status == http.StatusTooManyRequests {
				rejected++
				if got.header.Get("Retry-After") == "" || !strings.Contains(string(got.body), `"rate_limited"`) {
					t.Errorf("got %v %s, want rate_limited with Retry-After", got.header, got.body)
				}
			}
		}
		if rejected < 2 {
			t.Errorf("got %d of 8 checks rejected, want those beyond the burst of 5", rejected)
		}
	})
	t.Run("one at a time", func(t *testing.T) {
		long, seen, done := largeRegistry(4, 2), make(chan struct{}), make(chan apiResponse, 1)
		go func() {
			for {
				got := check(unlimited, "bob", "lint", long)
				if got.status == http.StatusTooManyRequests { // it arrived while the short one was running
					continue
				}
				select {
				case <-seen:
					done <- got
					return
				case <-t.Context().Done():
					return
				default: // it ended before a short one arrived
				}
			}
		}()
		testkit.Eventually(t, "a second check is rejected while the first runs", func() bool {
			got := check(unlimited, "bob", "validate", "clients: {}\n")
			return got.status == http.StatusTooManyRequests && strings.Contains(string(got.body), "is being checked")
		})
		close(seen)
		if got := check(unlimited, "carol", "validate", "clients: {}\n"); got.status != http.StatusOK {
			t.Errorf("another caller: got %d %s, want 200", got.status, got.body)
		}
		if got := testkit.Receive(t, done); got.status != http.StatusOK || !strings.Contains(string(got.body), `"learning"`) {
			t.Errorf("first check: got %d %.300s, want 200", got.status, got.body)
		}
	})
	t.Run("size", func(t *testing.T) {
		for noun, body := range map[string]string{"agents": largeRegistry(1001, 0), "intents": largeRegistry(201, 1), "examples": largeRegistry(101, 10)} {
			got := check(limited, "dave"+noun, "lint", body)
			if got.status != http.StatusOK || !strings.Contains(string(got.body), "examples-not-checked") || !strings.Contains(string(got.body), noun+",") {
				t.Errorf("too many %s: got %d %.300s, want the examples not checked", noun, got.status, got.body)
			}
		}
	})
}
