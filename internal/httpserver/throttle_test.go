package httpserver

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/loglimit"
	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/throttle"
)

// TestServer_ThrottlesTenantThatSendsMost: in a process that is always overloaded, the requests of
// the tenant that sends the most wait or are rejected, and those of another are executed at once.
func TestServer_ThrottlesTenantThatSendsMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, log := &fakeAPI{}, &bytes.Buffer{}
		s := newServer(t, Config{Auth: tenantAuth{}, MaxSchedulingDelay: time.Millisecond, Logger: slog.New(loglimit.NewHandler(slog.NewTextHandler(log, nil)))}, api)
		s.throttle.throttle = throttle.New[quota.Owner](time.Millisecond, func() throttle.SchedulingDelay {
			return throttle.SchedulingDelay{Waits: 1000, P99: time.Second}
		})
		var requests sync.WaitGroup
		send := func(caller string) {
			r := localRequest("POST", "/work", "{}")
			r.Header.Set("Authorization", "Bearer "+caller)
			start := time.Now()
			got := serve(s, r)
			switch {
			case got.Code == http.StatusServiceUnavailable && caller != "quiet/a":
				if got.Header().Get("Retry-After") != "1" || !strings.Contains(got.Body.String(), string(contract.CodeOverloaded)) {
					t.Errorf("got %s with Retry-After %q, want overloaded and 1", got.Body, got.Header().Get("Retry-After"))
				}
			case got.Code != http.StatusOK:
				t.Errorf("%s: got %d", caller, got.Code)
			case caller == "quiet/a" && time.Since(start) > 0:
				t.Errorf("%s: got a wait of %s, want none", caller, time.Since(start))
			}
		}
		for i := range 400 { // one of each caller in a millisecond
			for _, caller := range []string{"loud/a", "loud/b"} {
				requests.Go(func() { send(caller) })
			}
			if i%50 == 0 {
				requests.Go(func() { send("quiet/a") })
			}
			<-time.After(time.Millisecond)
		}
		requests.Wait()
		if api.delayed.Load() == 0 || api.rejected.Load() == 0 {
			t.Errorf("got %d requests delayed and %d rejected, want some of both", api.delayed.Load(), api.rejected.Load())
		}
		if n := strings.Count(log.String(), "processors are overloaded"); n != 1 || !strings.Contains(log.String(), "tenant=loud") {
			t.Errorf("got %d log lines, want one that names the tenant:\n%s", n, log)
		}
	})
}

func TestServer_ThrottlesOnlyWithSeveralCallers(t *testing.T) {
	for name, cfg := range map[string]Config{
		"one caller":     {MaxSchedulingDelay: time.Millisecond},
		"not configured": {Auth: tenantAuth{}},
	} {
		if s := newServer(t, cfg, &fakeAPI{}); s.throttle != nil {
			t.Errorf("%s: got a throttle, want none", name)
		}
	}
}

// TestServer_ThrottlesByBytes: in a process that is always overloaded, a tenant with few large
// requests is delayed, and one with many small requests is not.
func TestServer_ThrottlesByBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, Config{Auth: tenantAuth{}, MaxSchedulingDelay: time.Millisecond}, &fakeAPI{})
		s.throttle.throttle = throttle.New[quota.Owner](time.Millisecond, func() throttle.SchedulingDelay {
			return throttle.SchedulingDelay{Waits: 1000, P99: time.Second}
		})
		waits := map[string]time.Duration{}
		send := func(caller, body string) {
			r := localRequest("POST", "/work", body)
			r.Header.Set("Authorization", "Bearer "+caller)
			start := time.Now()
			if got := serve(s, r).Code; got != http.StatusOK && got != http.StatusServiceUnavailable {
				t.Errorf("%s: got %d", caller, got)
			}
			waits[caller] += time.Since(start)
		}
		large := `"` + strings.Repeat("x", 200<<10) + `"`
		for i := range 100 {
			for range 3 {
				send("small/a", "{}")
			}
			if i%3 == 0 {
				send("large/a", large)
			}
			<-time.After(20 * time.Millisecond)
		}
		if waits["small/a"] > 0 || waits["large/a"] == 0 {
			t.Errorf("got waits of %s for small requests and %s for large ones, want 0 and more", waits["small/a"], waits["large/a"])
		}
	})
}

func TestCostOf(t *testing.T) {
	for bytes, want := range map[int64]int{0: 1, 8<<10 - 1: 1, 8 << 10: 2, 60 << 10: 8, 4 << 20: 33, -1: 9} {
		if got := costOf(bytes); got != want {
			t.Errorf("%d bytes: got %d, want %d", bytes, got, want)
		}
	}
}
