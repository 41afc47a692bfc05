package auth

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/testkit/testjwk"
)

func TestRemoteKeys_RefreshesUsedSet(t *testing.T) {
	key := testjwk.Ed25519(t)
	synctest.Test(t, func(t *testing.T) {
		h := &fakeKeyServer{delay: time.Second}
		h.setResponse(testjwk.SetText(t, testjwk.Of(t, "k", key)), nil)
		r := h.startRemoteKeys(t)
		k := wantKey(t, r, "k", key)
		began := time.Now()
		for time.Since(began) < 2*time.Hour {
			advance(7 * time.Second)
			if !r.isValid(k, time.Now()) {
				t.Fatalf("after %s: isValid = false, want true", time.Since(began))
			}
		}
		if got := h.fetchCount(); got != 12 {
			t.Errorf("got %d fetches in two hours of use, want 12: the first one, and another every 10 minutes and 1 second", got)
		}
		advance(15 * time.Minute) // the last use is before the fetch that follows
		before := h.fetchCount()
		advance(10 * time.Hour)
		if got := h.fetchCount(); got != before {
			t.Errorf("got %d fetches in hours without use, want none", got-before)
		}
		if r.isValid(k, time.Now()) {
			t.Error("isValid = true for a key that was not refreshed for hours, want false")
		}
		wantKey(t, r, "k", key)
		if got := h.fetchCount(); got != before+1 {
			t.Errorf("got %d fetches at the next use, want 1", got-before)
		}
	})
}

func TestRemoteKeys_OldSetFailsClosed(t *testing.T) {
	key := testjwk.Ed25519(t)
	down := errors.New("connection refused")
	synctest.Test(t, func(t *testing.T) {
		h := &fakeKeyServer{}
		set := testjwk.SetText(t, testjwk.Of(t, "k", key))
		h.setResponse(set, nil)
		r := h.startRemoteKeys(t)
		k := wantKey(t, r, "k", key)
		fetched := time.Now()
		h.setResponse("", down)
		for age := time.Minute; age < time.Hour; age += time.Minute {
			advance(time.Minute)
			wantKey(t, r, "k", key)
			if !r.isValid(k, time.Now()) {
				t.Fatalf("after %s: isValid = false, want true", age)
			}
		}
		wantNoKey(t, r, "unknown", true) // an unknown kid might be new
		advance(time.Hour - time.Nanosecond - time.Since(fetched))
		wantKey(t, r, "k", key)
		if !r.isValid(k, time.Now()) {
			t.Error("a nanosecond before the hour: isValid = false, want true")
		}
		advance(time.Nanosecond)
		wantNoKey(t, r, "k", true)
		if r.isValid(k, time.Now()) {
			t.Error("after an hour: isValid = true, want false")
		}
		// From minute 10, the set is fetched every minute. Only the first failure is logged.
		if got := h.fetchCount(); got != 1+51 {
			t.Errorf("got %d fetches, want 52", got)
		}
		if got := h.logCount("level=WARN"); got != 1 {
			t.Errorf("got %d warnings, want 1:\n%s", got, h.log.String())
		}
		for _, want := range []string{remoteIssuer, remoteURL, "connection refused", "usable_until="} {
			if h.logCount(want) == 0 {
				t.Errorf("got a log without %q:\n%s", want, h.log.String())
			}
		}
		h.setResponse(set, nil)
		advance(time.Minute)
		if got := wantKey(t, r, "k", key); got != k || !r.isValid(k, time.Now()) {
			t.Error("after the outage: got another or an invalid key, want the same key")
		}
		if got := h.logCount("fetched again"); got != 1 {
			t.Errorf("got the end of the outage logged %d times, want once", got)
		}
		h.setResponse("", down)
		advance(11 * time.Minute)
		if got := h.logCount("level=WARN"); got != 2 {
			t.Errorf("got %d warnings, want a second one for the second outage", got)
		}
	})
}

func TestRemoteKeys_RetriesFirstFetchAfterMinute(t *testing.T) {
	key := testjwk.Ed25519(t)
	synctest.Test(t, func(t *testing.T) {
		h := &fakeKeyServer{err: errors.New("down")}
		r := h.startRemoteKeys(t)
		wantNoKey(t, r, "k", true)
		h.setResponse(testjwk.SetText(t, testjwk.Of(t, "k", key)), nil)
		began := time.Now()
		for range 50 {
			wantNoKey(t, r, "k", true)
		}
		if got := time.Since(began); got != 0 || h.fetchCount() != 1 {
			t.Errorf("got %d fetches and a delay of %s, want 1 without delay", h.fetchCount(), got)
		}
		advance(time.Minute)
		wantKey(t, r, "k", key)
		if got := h.fetchCount(); got != 2 {
			t.Errorf("got %d fetches, want 2", got)
		}
	})
}

func TestRemoteKeys_FetchOutlivesCaller(t *testing.T) {
	key := testjwk.Ed25519(t)
	synctest.Test(t, func(t *testing.T) {
		h := &fakeKeyServer{delay: 4 * time.Second}
		h.setResponse(testjwk.SetText(t, testjwk.Of(t, "k", key)), nil)
		r := h.startRemoteKeys(t)
		var found atomic.Int64
		run.ForEach(t.Context(), 100, 100, func(ctx context.Context, i int) {
			if i%2 == 0 { // half of the callers disconnect, including the first one
				ctx, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				if k, err := r.findKey(ctx, "k", "EdDSA", time.Now()); k != nil || err == nil {
					t.Errorf("findKey with a cancelled context = %v, error %v; want an error", k, err)
				}
				return
			}
			if k, err := r.findKey(ctx, "k", "EdDSA", time.Now()); k != nil && err == nil {
				found.Add(1)
			}
		})
		if found.Load() != 50 || h.fetchCount() != 1 {
			t.Errorf("got the key in %d of 50 calls with %d fetches, want all with 1", found.Load(), h.fetchCount())
		}
	})
}

func TestRemoteKeys_LookupIsBounded(t *testing.T) {
	t.Run("when the server does not answer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := &fakeKeyServer{delay: time.Hour}
			r := h.startRemoteKeys(t)
			began := time.Now()
			wantNoKey(t, r, "k", true)
			if got := time.Since(began); got != 5*time.Second {
				t.Errorf("got a lookup of %s, want 5s", got)
			}
		})
	})
	t.Run("when Run is not running", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := &fakeKeyServer{}
			r := h.newRemoteKeys(t)
			began := time.Now()
			wantNoKey(t, r, "k", true)
			if got := time.Since(began); got != 6*time.Second || h.fetchCount() != 0 {
				t.Errorf("got a lookup of %s with %d fetches, want 6s and none", got, h.fetchCount())
			}
		})
	})
	t.Run("when Run begins late", func(t *testing.T) {
		key := testjwk.Ed25519(t)
		synctest.Test(t, func(t *testing.T) {
			h := &fakeKeyServer{}
			h.setResponse(testjwk.SetText(t, testjwk.Of(t, "k", key)), nil)
			r := h.newRemoteKeys(t)
			run.ForEach(t.Context(), 2, 2, func(_ context.Context, i int) {
				if i == 0 {
					wantKey(t, r, "k", key)
					return
				}
				<-time.After(3 * time.Second)
				startRun(t, r)
			})
			if got := h.fetchCount(); got != 1 {
				t.Errorf("got %d fetches, want 1", got)
			}
		})
	})
	t.Run("when Run ends", func(t *testing.T) {
		key := testjwk.Ed25519(t)
		synctest.Test(t, func(t *testing.T) {
			h := &fakeKeyServer{}
			h.setResponse(testjwk.SetText(t, testjwk.Of(t, "k", key)), nil)
			r := h.newRemoteKeys(t)
			g := run.New(t.Context())
			g.Go("keep keys fresh", r.Run)
			wantKey(t, r, "k", key)
			h.mu.Lock()
			h.delay = time.Hour
			h.mu.Unlock()
			advance(time.Minute)
			began := time.Now()
			run.ForEach(t.Context(), 2, 2, func(_ context.Context, i int) {
				if i == 0 {
					wantNoKey(t, r, "unknown", true)
					return
				}
				<-time.After(time.Second)
				g.Stop(nil)
			})
			if err := g.Wait(); err != nil {
				t.Errorf("Run: %v", err)
			}
			wantKey(t, r, "k", key) // the set is less than an hour old
			wantNoKey(t, r, "unknown", true)
			if got := time.Since(began); got != time.Second {
				t.Errorf("got a lookup of %s, want 1s", got)
			}
			if got := h.logCount("level=WARN"); got != 0 {
				t.Errorf("got %d warnings about a cancelled fetch, want none:\n%s", got, h.log.String())
			}
		})
	})
}

func TestRemoteKeys_FetchesOnceAMinute(t *testing.T) {
	key, other := testjwk.Ed25519(t), testjwk.Ed25519(t)
	sets := []string{testjwk.SetText(t, testjwk.Of(t, "a", key)), testjwk.SetText(t, testjwk.Of(t, "b", other)), `{"keys":[]}`, "garbage"}
	type step struct {
		Pause time.Duration
		Set   int // index of the served key set; len(sets) = the server is down
		KID   string
		Delay time.Duration
	}
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) step {
			return step{
				Pause: time.Duration(rapid.IntRange(0, 2000).Draw(rt, "pause")) * time.Second,
				Set:   rapid.IntRange(0, len(sets)).Draw(rt, "set"),
				KID:   rapid.SampledFrom([]string{"a", "b", "", "c"}).Draw(rt, "kid"),
				Delay: time.Duration(rapid.IntRange(0, 6000).Draw(rt, "delay")) * time.Millisecond,
			}
		}), 1, 20).Draw(rt, "steps")
		var failure string
		synctest.Test(t, func(t *testing.T) {
			h := &fakeKeyServer{}
			h.setResponse(sets[0], nil)
			r := h.startRemoteKeys(t)
			wantKey(t, r, "a", key)
			for _, s := range steps {
				advance(s.Pause)
				h.setResponse("", errors.New("down"))
				if s.Set < len(sets) {
					h.setResponse(sets[s.Set], nil)
				}
				h.mu.Lock()
				h.delay = s.Delay
				h.mu.Unlock()
				k, err := r.findKey(t.Context(), s.KID, "EdDSA", time.Now())
				set := r.set.Load()
				switch {
				case k != nil && (err != nil || time.Since(set.fetched) >= time.Hour || !r.isValid(k, time.Now())):
					failure = fmt.Sprintf("findKey(%q) = a key, error %v, of a set %s old", s.KID, err, time.Since(set.fetched))
				case k == nil && err == nil && (time.Since(set.fetched) >= time.Hour || set.findKey(s.KID, "EdDSA") != nil):
					failure = fmt.Sprintf("findKey(%q) = none without an error, of a set %s old", s.KID, time.Since(set.fetched))
				}
			}
			for i := 1; i < len(h.fetches); i++ {
				if d := h.fetches[i].Sub(h.fetches[i-1]); d < time.Minute {
					failure = fmt.Sprintf("got %s between fetches %d and %d, want a minute or more", d, i-1, i)
				}
			}
		})
		if failure != "" {
			rt.Fatal(failure)
		}
	})
}
