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
		h := &keyHost{delay: time.Second}
		h.serve(testjwk.SetText(t, testjwk.Of(t, "k", key)), nil)
		r := h.start(t)
		k := wantKey(t, r, "k", key)
		began := time.Now()
		for time.Since(began) < 2*time.Hour {
			advance(7 * time.Second)
			if !r.isValid(k, time.Now()) {
				t.Fatalf("the key is not held after %s", time.Since(began))
			}
		}
		if got := h.count(); got != 12 {
			t.Errorf("got %d fetches in two hours of use, want 12: the first, and one every 10 minutes and a second", got)
		}
		advance(15 * time.Minute) // the last use is before the fetch that follows
		before := h.count()
		advance(10 * time.Hour)
		if got := h.count(); got != before {
			t.Errorf("%d fetches in hours without use, want none", got-before)
		}
		if r.isValid(k, time.Now()) {
			t.Error("got a key held that was not refreshed for hours")
		}
		wantKey(t, r, "k", key)
		if got := h.count(); got != before+1 {
			t.Errorf("%d fetches when it is used again, want 1", got-before)
		}
	})
}

func TestRemoteKeys_OldSetFailsClosed(t *testing.T) {
	key := testjwk.Ed25519(t)
	down := errors.New("connection refused")
	synctest.Test(t, func(t *testing.T) {
		h := &keyHost{}
		set := testjwk.SetText(t, testjwk.Of(t, "k", key))
		h.serve(set, nil)
		r := h.start(t)
		k := wantKey(t, r, "k", key)
		fetched := time.Now()
		h.serve("", down)
		for age := time.Minute; age < time.Hour; age += time.Minute {
			advance(time.Minute)
			wantKey(t, r, "k", key)
			if !r.isValid(k, time.Now()) {
				t.Fatalf("the key is not held after %s", age)
			}
		}
		wantNone(t, r, "unknown", true) // an unknown kid might be new
		advance(time.Hour - time.Nanosecond - time.Since(fetched))
		wantKey(t, r, "k", key)
		if !r.isValid(k, time.Now()) {
			t.Error("the key does not hold a moment before the hour")
		}
		advance(time.Nanosecond)
		wantNone(t, r, "k", true)
		if r.isValid(k, time.Now()) {
			t.Error("the key holds after the hour")
		}
		// Fetched again every minute from minute 10 on, and logged once.
		if got := h.count(); got != 1+51 {
			t.Errorf("%d fetches, want 52", got)
		}
		if got := h.logged("level=WARN"); got != 1 {
			t.Errorf("%d warnings, want 1:\n%s", got, h.log.String())
		}
		for _, want := range []string{remoteIssuer, remoteURL, "connection refused", "usable_until="} {
			if h.logged(want) == 0 {
				t.Errorf("got a log without %q:\n%s", want, h.log.String())
			}
		}
		h.serve(set, nil)
		advance(time.Minute)
		if got := wantKey(t, r, "k", key); got != k || !r.isValid(k, time.Now()) {
			t.Error("after the outage: got another key, or one that is not held")
		}
		if got := h.logged("fetched again"); got != 1 {
			t.Errorf("got the end of the outage logged %d times, want once", got)
		}
		h.serve("", down)
		advance(11 * time.Minute)
		if got := h.logged("level=WARN"); got != 2 {
			t.Errorf("got %d warnings, want a second one for the second outage", got)
		}
	})
}

func TestRemoteKeys_RetriesFirstFetchAfterMinute(t *testing.T) {
	key := testjwk.Ed25519(t)
	synctest.Test(t, func(t *testing.T) {
		h := &keyHost{err: errors.New("down")}
		r := h.start(t)
		wantNone(t, r, "k", true)
		h.serve(testjwk.SetText(t, testjwk.Of(t, "k", key)), nil)
		began := time.Now()
		for range 50 {
			wantNone(t, r, "k", true)
		}
		if got := time.Since(began); got != 0 || h.count() != 1 {
			t.Errorf("got %d fetches and a delay of %s, want 1 without delay", h.count(), got)
		}
		advance(time.Minute)
		wantKey(t, r, "k", key)
		if got := h.count(); got != 2 {
			t.Errorf("%d fetches, want 2", got)
		}
	})
}

func TestRemoteKeys_FetchOutlivesCaller(t *testing.T) {
	key := testjwk.Ed25519(t)
	synctest.Test(t, func(t *testing.T) {
		h := &keyHost{delay: 4 * time.Second}
		h.serve(testjwk.SetText(t, testjwk.Of(t, "k", key)), nil)
		r := h.start(t)
		var found atomic.Int64
		run.ForEach(t.Context(), 100, 100, func(ctx context.Context, i int) {
			if i%2 == 0 { // half of the callers disconnect, including the first one
				ctx, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				if k, err := r.findKey(ctx, "k", "EdDSA", time.Now()); k != nil || err == nil {
					t.Errorf("find = %v, error %v for a cancelled caller; want an error", k, err)
				}
				return
			}
			if k, err := r.findKey(ctx, "k", "EdDSA", time.Now()); k != nil && err == nil {
				found.Add(1)
			}
		})
		if found.Load() != 50 || h.count() != 1 {
			t.Errorf("got the key in %d of 50 calls with %d fetches, want all with 1", found.Load(), h.count())
		}
	})
}

func TestRemoteKeys_LookupIsBounded(t *testing.T) {
	t.Run("when the server does not answer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := &keyHost{delay: time.Hour}
			r := h.start(t)
			began := time.Now()
			wantNone(t, r, "k", true)
			if got := time.Since(began); got != 5*time.Second {
				t.Errorf("waited for %s, want 5s", got)
			}
		})
	})
	t.Run("when Run is not running", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := &keyHost{}
			r := h.keys(t)
			began := time.Now()
			wantNone(t, r, "k", true)
			if got := time.Since(began); got != 6*time.Second || h.count() != 0 {
				t.Errorf("waited for %s, %d fetches; want 6s and none", got, h.count())
			}
		})
	})
	t.Run("when Run begins late", func(t *testing.T) {
		key := testjwk.Ed25519(t)
		synctest.Test(t, func(t *testing.T) {
			h := &keyHost{}
			h.serve(testjwk.SetText(t, testjwk.Of(t, "k", key)), nil)
			r := h.keys(t)
			run.ForEach(t.Context(), 2, 2, func(_ context.Context, i int) {
				if i == 0 {
					wantKey(t, r, "k", key)
					return
				}
				<-time.After(3 * time.Second)
				startRun(t, r)
			})
			if got := h.count(); got != 1 {
				t.Errorf("%d fetches, want 1", got)
			}
		})
	})
	t.Run("when Run ends", func(t *testing.T) {
		key := testjwk.Ed25519(t)
		synctest.Test(t, func(t *testing.T) {
			h := &keyHost{}
			h.serve(testjwk.SetText(t, testjwk.Of(t, "k", key)), nil)
			r := h.keys(t)
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
					wantNone(t, r, "unknown", true)
					return
				}
				<-time.After(time.Second)
				g.Stop(nil)
			})
			if err := g.Wait(); err != nil {
				t.Errorf("Run: %v", err)
			}
			wantKey(t, r, "k", key) // still young enough
			wantNone(t, r, "unknown", true)
			if got := time.Since(began); got != time.Second {
				t.Errorf("waited for %s, want 1s", got)
			}
			if got := h.logged("level=WARN"); got != 0 {
				t.Errorf("%d warnings about a fetch that was stopped, want none:\n%s", got, h.log.String())
			}
		})
	})
}

func TestRemoteKeys_FetchesOnceAMinute(t *testing.T) {
	key, other := testjwk.Ed25519(t), testjwk.Ed25519(t)
	sets := []string{testjwk.SetText(t, testjwk.Of(t, "a", key)), testjwk.SetText(t, testjwk.Of(t, "b", other)), `{"keys":[]}`, "garbage"}
	type step struct {
		Pause  time.Duration
		Serves int // number of key sets served; 0: the server is down
		KID    string
		Delay  time.Duration
	}
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) step {
			return step{
				Pause:  time.Duration(rapid.IntRange(0, 2000).Draw(rt, "pause")) * time.Second,
				Serves: rapid.IntRange(0, len(sets)).Draw(rt, "serves"),
				KID:    rapid.SampledFrom([]string{"a", "b", "", "c"}).Draw(rt, "kid"),
				Delay:  time.Duration(rapid.IntRange(0, 6000).Draw(rt, "delay")) * time.Millisecond,
			}
		}), 1, 20).Draw(rt, "steps")
		var wrong string
		synctest.Test(t, func(t *testing.T) {
			h := &keyHost{}
			h.serve(sets[0], nil)
			r := h.start(t)
			wantKey(t, r, "a", key)
			for _, s := range steps {
				advance(s.Pause)
				h.serve("", errors.New("down"))
				if s.Serves < len(sets) {
					h.serve(sets[s.Serves], nil)
				}
				h.mu.Lock()
				h.delay = s.Delay
				h.mu.Unlock()
				k, err := r.findKey(t.Context(), s.KID, "EdDSA", time.Now())
				set := r.set.Load()
				switch {
				case k != nil && (err != nil || time.Since(set.fetched) >= time.Hour || !r.isValid(k, time.Now())):
					wrong = fmt.Sprintf("find(%q) = a key, error %v, of a set %s old", s.KID, err, time.Since(set.fetched))
				case k == nil && err == nil && (time.Since(set.fetched) >= time.Hour || set.findKey(s.KID, "EdDSA") != nil):
					wrong = fmt.Sprintf("find(%q) = none without an error, of a set %s old", s.KID, time.Since(set.fetched))
				}
			}
			for i := 1; i < len(h.fetches); i++ {
				if d := h.fetches[i].Sub(h.fetches[i-1]); d < time.Minute {
					wrong = fmt.Sprintf("fetches %d and %d are %s apart", i-1, i, d)
				}
			}
		})
		if wrong != "" {
			rt.Fatal(wrong)
		}
	})
}
