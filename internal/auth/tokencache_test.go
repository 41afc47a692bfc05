package auth

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/contract"
)

func TestTokenCache_SkipsLookupForCachedToken(t *testing.T) {
	w := newWorld(t)
	token := w.idp.token(t, w.idpClaims())
	first := w.accepts(token)
	for range 3 {
		if got := w.accepts(token); got != first {
			t.Errorf("got another caller for a cached token")
		}
	}
	if got := w.idpKeys.count(); got != 1 {
		t.Errorf("the key was looked up %d times, want once", got)
	}
}

func TestTokenCache_StoresNoRejectedToken(t *testing.T) {
	w := newWorld(t)
	token := w.idp.token(t, w.idpClaims().with("nbf", number(w.now.Add(2*time.Minute))))
	w.rejects(token, "not valid yet")
	w.rejects(token, "not valid yet")
	if got := w.idpKeys.count(); got != 2 {
		t.Errorf("the key was looked up %d times, want each time", got)
	}
	w.now = w.now.Add(2 * time.Minute)
	w.accepts(token) // the rejection is not cached either
}

func TestTokenCache_TokenExpires(t *testing.T) {
	w := newWorld(t)
	token := w.ed.token(t, w.claims().with("exp", number(w.now.Add(time.Minute))))
	w.accepts(token)
	w.now = w.now.Add(time.Minute - time.Nanosecond)
	w.accepts(token)
	w.now = w.now.Add(time.Nanosecond)
	w.rejects(token, "has expired")
}

func TestTokenCache_DropsTokenWithItsKey(t *testing.T) {
	w := newWorld(t)
	token := w.idp.token(t, w.idpClaims())
	w.accepts(token)
	w.idpKeys.set()
	w.rejects(token, unknownKey)
	// Another key with the same kid did not sign the token.
	w.idpKeys.set(remoteKey(w.otherIDP, idp, "org"))
	w.rejects(token, badSignature)
	w.idpKeys.set(remoteKey(w.idp, idp, "org"))
	w.accepts(token)
	w.idpKeys.set()
	w.idpKeys.err = errors.New("down")
	w.rejects(token, "not available now")
}

// If the clock is set back, an expired token is not accepted again, and a token
// that was accepted is verified again before its time of issue.
func TestTokenCache_ClockSetBack(t *testing.T) {
	w := newWorld(t)
	passed := time.Duration(0) // monotonic time, which setting the clock does not change
	w.clock.passed = func(time.Time) time.Duration { return passed }
	start := w.now
	token := w.ed.token(t, w.claims().with("exp", number(w.now.Add(time.Minute))))
	w.accepts(token)

	passed = 2 * time.Minute
	w.now = start.Add(passed)
	w.rejects(token, "has expired")
	w.now = start // set the clock back
	w.rejects(token, "has expired")
	w.rejects(w.ed.token(t, w.claims().with("exp", number(start.Add(119*time.Second)))), "has expired")

	later := w.ed.token(t, w.claims().with("iat", number(start)))
	w.accepts(later)
	w.now = start.Add(-61 * time.Second)
	w.rejects(later, "was issued in the future")
	w.now = start
	w.accepts(later)
}

// A clock that was ahead for a while and is correct again rejects no valid token.
func TestTokenCache_ClockAheadForAWhile(t *testing.T) {
	w := newWorld(t)
	w.clock.passed = func(time.Time) time.Duration { return 0 }
	token := w.ed.token(t, w.claims())
	w.accepts(token)
	w.now = w.now.Add(24 * time.Hour)
	w.rejects(token, "has expired")
	w.now = w.now.Add(-24 * time.Hour)
	w.accepts(token)
}

// For any changes of clock and keys, the cache changes no result.
func TestTokenCache_ChangesNoResult(t *testing.T) {
	w := newWorld(t)
	start := w.now
	date := func(s int) string { return number(start.Add(time.Duration(s) * time.Second)) }
	var tokens []string
	for _, exp := range []int{10, 60, 300} {
		for _, iat := range []int{-20, 0} {
			claims := w.idpClaims().with("iat", date(iat)).with("exp", date(exp))
			tokens = append(tokens, w.idp.token(t, claims), w.idp.token(t, claims.with("nbf", date(65))))
		}
	}
	key := w.idpKeys.keys[0]
	rapid.Check(t, func(rt *rapid.T) {
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			switch rapid.IntRange(0, 4).Draw(rt, "what") {
			case 0:
				w.now = start.Add(time.Duration(rapid.IntRange(-200, 400).Draw(rt, "clock")) * time.Second)
			case 1:
				w.idpKeys.set()
			case 2:
				w.idpKeys.set(key)
			default:
				token := rapid.SampledFrom(tokens).Draw(rt, "token")
				_, got := w.Verify(t.Context(), token)
				_, want := w.verifyToken(t.Context(), token, w.clock.readClock())
				if (got == nil) != (want == nil) {
					rt.Fatalf("at %v: Verify = %v, and without a cache %v", w.now, got, want)
				}
			}
		}
	})
}

func TestTokenCache_IsBounded(t *testing.T) {
	w := newWorld(t)
	const bound = 64 << 10
	var err error
	if w.cache, err = newTokenCache(bound, w.clock); err != nil {
		t.Fatal(err)
	}
	for i := range 500 {
		w.accepts(w.hs.token(t, w.claims().with("jti", q(fmt.Sprint(i)))))
	}
	w.cache.entries.CleanUp()
	if got := w.cache.entries.WeightedSize(); got > bound || got < bound/2 {
		t.Errorf("got a cache size of %d, want at most %d", got, bound)
	}
	// The cost of a token in the cache is its memory, not only its length.
	many := w.claims().with("scope", q(strings.TrimSpace(strings.Repeat("a ", 2000))))
	token := w.hs.token(t, many)
	if got, want := entryWeight(token, &verifiedToken{caller: w.accepts(token)}), uint32(len(token)+16*2000); got < want {
		t.Errorf("got a size of %d for a token of 2,000 scopes, want at least %d", got, want)
	}
}

// Expired tokens are evicted when a new token is stored.
func TestTokenCache_EvictsExpiredTokens(t *testing.T) {
	w := newWorld(t)
	for i := range 20 {
		w.accepts(w.hs.token(t, w.claims().with("jti", q(fmt.Sprint(i)))))
	}
	w.now = w.now.Add(2 * time.Hour)
	w.accepts(w.hs.token(t, w.claims()))
	w.cache.entries.CleanUp()
	if got := w.cache.entries.EstimatedSize(); got != 1 {
		t.Errorf("got %d cached tokens after all but one expired, want 1", got)
	}
}

func TestTokenCache_HitAllocatesNothing(t *testing.T) {
	w := newWorld(t)
	token := w.rs.token(t, w.claims())
	w.accepts(token)
	if got := testing.AllocsPerRun(1000, func() { _, _ = w.Verify(t.Context(), token) }); got > 1 {
		t.Errorf("got %v allocations for a cached token, want none", got)
	}
}

// Many concurrent callers, changing keys and a small cache: each result is one of
// the two possible ones, and belongs to the caller.
func TestVerify_IsSafeForConcurrentUse(t *testing.T) {
	w := newWorld(t)
	var err error
	if w.cache, err = newTokenCache(16<<10, w.clock); err != nil {
		t.Fatal(err)
	}
	key := w.idpKeys.keys[0]
	var tokens []string
	for i := range 64 {
		tokens = append(tokens, w.idp.token(t, w.idpClaims().with("sub", q(fmt.Sprint("caller-", i)))))
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for n := range 200 {
				i := (g*7 + n*13) % len(tokens)
				if g == 0 && n%10 == 0 {
					w.idpKeys.set()
					w.idpKeys.set(key)
				}
				caller, err := w.Verify(t.Context(), tokens[i])
				var e *contract.Error
				switch want := fmt.Sprint("caller-", i); {
				case err != nil && !errors.As(err, &e):
					t.Errorf("Verify: %v, want a contract.Error", err)
				case err == nil && caller.Subject != want:
					t.Errorf("Verify = %s, want %s", caller.Subject, want)
				}
			}
		})
	}
	wg.Wait()
	for i, token := range tokens {
		if got, want := w.accepts(token).Subject, fmt.Sprint("caller-", i); got != want {
			t.Errorf("Verify = %s, want %s", got, want)
		}
	}
}

func BenchmarkVerify(b *testing.B) {
	w := newWorld(b)
	for _, k := range []mintKey{w.ed, w.es, w.rs, w.hs} {
		token := k.token(b, w.claims())
		b.Run(k.method.Alg(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := w.verifyToken(b.Context(), token, w.clock.readClock()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	// The cost of a rejection without a signature check.
	forged := w.ed.sign(b, w.ed.header().with("kid", `"nobody"`).text(), w.claims().text())
	b.Run("unknown-kid", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := w.verifyToken(b.Context(), forged, w.clock.readClock()); err == nil {
				b.Fatal("got a forged token accepted")
			}
		}
	})
}

func BenchmarkVerifyRemembered(b *testing.B) {
	w := newWorld(b)
	w.clock = newMonotonicClock(time.Now)
	w.now = time.Now()
	var err error
	if w.cache, err = newTokenCache(tokenCacheBytes, w.clock); err != nil {
		b.Fatal(err)
	}
	for _, k := range []mintKey{w.ed, w.rs} {
		token := k.token(b, w.claims())
		w.accepts(token)
		b.Run(k.method.Alg(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := w.Verify(b.Context(), token); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(k.method.Alg()+"-parallel", func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := w.Verify(b.Context(), token); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}
