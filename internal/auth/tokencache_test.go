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
	fx := newVerifierFixture(t)
	token := fx.idp.token(t, fx.idpClaims())
	first := fx.mustVerify(token)
	for range 3 {
		if got := fx.mustVerify(token); got != first {
			t.Error("got another caller for a cached token, want the same")
		}
	}
	if got := fx.idpKeys.lookupCount(); got != 1 {
		t.Errorf("got %d key lookups, want 1", got)
	}
}

func TestTokenCache_StoresNoRejectedToken(t *testing.T) {
	fx := newVerifierFixture(t)
	token := fx.idp.token(t, fx.idpClaims().with("nbf", unixSeconds(fx.now.Add(2*time.Minute))))
	fx.wantRejected(token, "not valid yet")
	fx.wantRejected(token, "not valid yet")
	if got := fx.idpKeys.lookupCount(); got != 2 {
		t.Errorf("got %d key lookups, want 2", got)
	}
	fx.now = fx.now.Add(2 * time.Minute)
	fx.mustVerify(token) // so the rejection is not cached
}

func TestTokenCache_TokenExpires(t *testing.T) {
	fx := newVerifierFixture(t)
	token := fx.ed.token(t, fx.claims().with("exp", unixSeconds(fx.now.Add(time.Minute))))
	fx.mustVerify(token)
	fx.now = fx.now.Add(time.Minute - time.Nanosecond)
	fx.mustVerify(token)
	fx.now = fx.now.Add(time.Nanosecond)
	fx.wantRejected(token, "has expired")
}

func TestTokenCache_DropsTokenWithItsKey(t *testing.T) {
	fx := newVerifierFixture(t)
	token := fx.idp.token(t, fx.idpClaims())
	fx.mustVerify(token)
	fx.idpKeys.set()
	fx.wantRejected(token, unknownKey)
	// Another key with the same kid did not sign the token.
	fx.idpKeys.set(remoteKey(fx.otherIDP, idp, "org"))
	fx.wantRejected(token, badSignature)
	fx.idpKeys.set(remoteKey(fx.idp, idp, "org"))
	fx.mustVerify(token)
	fx.idpKeys.set()
	fx.idpKeys.err = errors.New("down")
	fx.wantRejected(token, "not available now")
}

// If the clock is set back, an expired token is not accepted again, and a token
// that was accepted is verified again before its time of issue.
func TestTokenCache_ClockSetBack(t *testing.T) {
	fx := newVerifierFixture(t)
	passed := time.Duration(0) // monotonic time, which setting the clock does not change
	fx.clock.passed = func(time.Time) time.Duration { return passed }
	start := fx.now
	token := fx.ed.token(t, fx.claims().with("exp", unixSeconds(fx.now.Add(time.Minute))))
	fx.mustVerify(token)

	passed = 2 * time.Minute
	fx.now = start.Add(passed)
	fx.wantRejected(token, "has expired")
	fx.now = start // set the clock back
	fx.wantRejected(token, "has expired")
	fx.wantRejected(fx.ed.token(t, fx.claims().with("exp", unixSeconds(start.Add(119*time.Second)))), "has expired")

	later := fx.ed.token(t, fx.claims().with("iat", unixSeconds(start)))
	fx.mustVerify(later)
	fx.now = start.Add(-61 * time.Second)
	fx.wantRejected(later, "was issued in the future")
	fx.now = start
	fx.mustVerify(later)
}

// If a clock that was ahead is corrected, valid tokens are accepted again.
func TestTokenCache_ClockCorrected(t *testing.T) {
	fx := newVerifierFixture(t)
	fx.clock.passed = func(time.Time) time.Duration { return 0 }
	token := fx.ed.token(t, fx.claims())
	fx.mustVerify(token)
	fx.now = fx.now.Add(24 * time.Hour)
	fx.wantRejected(token, "has expired")
	fx.now = fx.now.Add(-24 * time.Hour)
	fx.mustVerify(token)
}

// For any changes of clock and keys, the cache changes no result.
func TestTokenCache_ChangesNoResult(t *testing.T) {
	fx := newVerifierFixture(t)
	start := fx.now
	date := func(s int) string { return unixSeconds(start.Add(time.Duration(s) * time.Second)) }
	var tokens []string
	for _, exp := range []int{10, 60, 300} {
		for _, iat := range []int{-20, 0} {
			claims := fx.idpClaims().with("iat", date(iat)).with("exp", date(exp))
			tokens = append(tokens, fx.idp.token(t, claims), fx.idp.token(t, claims.with("nbf", date(65))))
		}
	}
	key := fx.idpKeys.keys[0]
	rapid.Check(t, func(rt *rapid.T) {
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			switch rapid.IntRange(0, 4).Draw(rt, "action") {
			case 0:
				fx.now = start.Add(time.Duration(rapid.IntRange(-200, 400).Draw(rt, "clock")) * time.Second)
			case 1:
				fx.idpKeys.set()
			case 2:
				fx.idpKeys.set(key)
			default:
				token := rapid.SampledFrom(tokens).Draw(rt, "token")
				_, got := fx.Verify(t.Context(), token)
				_, want := fx.verifyToken(t.Context(), token, fx.clock.readClock())
				if (got == nil) != (want == nil) {
					rt.Fatalf("at %v: got error %v, want %v as without a cache", fx.now, got, want)
				}
			}
		}
	})
}

func TestTokenCache_IsBounded(t *testing.T) {
	fx := newVerifierFixture(t)
	const limit = 64 << 10
	var err error
	if fx.cache, err = newTokenCache(limit, fx.clock); err != nil {
		t.Fatal(err)
	}
	for i := range 500 {
		fx.mustVerify(fx.hs.token(t, fx.claims().with("jti", quote(fmt.Sprint(i)))))
	}
	fx.cache.entries.CleanUp()
	if got := fx.cache.entries.WeightedSize(); got > limit || got < limit/2 {
		t.Errorf("got a cache size of %d, want %d to %d", got, limit/2, limit)
	}
	// The weight of a cached token is its memory, not only its length.
	many := fx.claims().with("scope", quote(strings.TrimSpace(strings.Repeat("a ", 2000))))
	token := fx.hs.token(t, many)
	if got, want := entryWeight(token, &verifiedToken{caller: fx.mustVerify(token)}), uint32(len(token)+16*2000); got < want {
		t.Errorf("got a weight of %d for a token of 2,000 scopes, want at least %d", got, want)
	}
}

// Expired tokens are evicted when a new token is stored.
func TestTokenCache_EvictsExpiredTokens(t *testing.T) {
	fx := newVerifierFixture(t)
	for i := range 20 {
		fx.mustVerify(fx.hs.token(t, fx.claims().with("jti", quote(fmt.Sprint(i)))))
	}
	fx.now = fx.now.Add(2 * time.Hour)
	fx.mustVerify(fx.hs.token(t, fx.claims()))
	fx.cache.entries.CleanUp()
	if got := fx.cache.entries.EstimatedSize(); got != 1 {
		t.Errorf("got %d cached tokens after all but one expired, want 1", got)
	}
}

func TestTokenCache_HitRarelyAllocates(t *testing.T) {
	fx := newVerifierFixture(t)
	token := fx.rs.token(t, fx.claims())
	fx.mustVerify(token)
	if got := testing.AllocsPerRun(1000, func() { _, _ = fx.Verify(t.Context(), token) }); got > 1 {
		t.Errorf("got %v allocations for a cached token, want at most 1", got)
	}
}

// With many concurrent callers, changing keys and a small cache, Verify returns the caller of
// the token or a contract.Error.
func TestVerify_IsSafeForConcurrentUse(t *testing.T) {
	fx := newVerifierFixture(t)
	var err error
	if fx.cache, err = newTokenCache(16<<10, fx.clock); err != nil {
		t.Fatal(err)
	}
	key := fx.idpKeys.keys[0]
	var tokens []string
	for i := range 64 {
		tokens = append(tokens, fx.idp.token(t, fx.idpClaims().with("sub", quote(fmt.Sprint("caller-", i)))))
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for n := range 200 {
				i := (g*7 + n*13) % len(tokens)
				if g == 0 && n%10 == 0 {
					fx.idpKeys.set()
					fx.idpKeys.set(key)
				}
				caller, err := fx.Verify(t.Context(), tokens[i])
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
		if got, want := fx.mustVerify(token).Subject, fmt.Sprint("caller-", i); got != want {
			t.Errorf("Verify = %s, want %s", got, want)
		}
	}
}

func BenchmarkVerify(b *testing.B) {
	fx := newVerifierFixture(b)
	for _, k := range []testKey{fx.ed, fx.es, fx.rs, fx.hs} {
		token := k.token(b, fx.claims())
		b.Run(k.method.Alg(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := fx.verifyToken(b.Context(), token, fx.clock.readClock()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	// The cost of a rejection without a signature check.
	forged := fx.ed.sign(b, fx.ed.header().with("kid", `"unknown"`).text(), fx.claims().text())
	b.Run("unknown-kid", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := fx.verifyToken(b.Context(), forged, fx.clock.readClock()); err == nil {
				b.Fatal("got a forged token accepted")
			}
		}
	})
}

func BenchmarkVerifyCached(b *testing.B) {
	fx := newVerifierFixture(b)
	fx.clock = newMonotonicClock(time.Now)
	fx.now = time.Now()
	var err error
	if fx.cache, err = newTokenCache(tokenCacheBytes, fx.clock); err != nil {
		b.Fatal(err)
	}
	for _, k := range []testKey{fx.ed, fx.rs} {
		token := k.token(b, fx.claims())
		fx.mustVerify(token)
		b.Run(k.method.Alg(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := fx.Verify(b.Context(), token); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(k.method.Alg()+"-parallel", func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := fx.Verify(b.Context(), token); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}
