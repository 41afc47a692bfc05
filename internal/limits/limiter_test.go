package limits_test

import (
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/limits"
)

var begin = time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)

func newPrincipal(n int) limits.Principal {
	return limits.Principal{Issuer: "https://id.example", Subject: "user-" + strconv.Itoa(n)}
}

// TestLimiter_ReportsState checks that the state that Take returns predicts later calls.
func TestLimiter_ReportsState(t *testing.T) {
	l := limits.New("classify", limits.Rate{PerSecond: 2, Burst: 3})
	state := func(remaining int, reset time.Duration) contract.Limit {
		return contract.Limit{Policy: "classify", Quota: 3, Window: 1500 * time.Millisecond, Remaining: remaining, Reset: reset}
	}
	const ms = time.Millisecond
	for i, step := range []struct {
		at   time.Duration
		want contract.Limit
		ok   bool
	}{
		{0, state(2, 500*ms), true},
		{0, state(1, 500*ms), true},
		{0, state(0, 500*ms), true},
		{0, state(0, 500*ms), false},
		{250 * ms, state(0, 250*ms), false},
		{375 * ms, state(0, 125*ms), false},
		{500 * ms, state(0, 500*ms), true},
		{1250 * ms, state(0, 250*ms), true},
		{time.Hour, state(2, 500*ms), true}, // at most the burst is saved
	} {
		got, ok := l.Take(newPrincipal(1), begin.Add(step.at))
		if diff := cmp.Diff(step.want, got); diff != "" || ok != step.ok {
			t.Errorf("step %d at %v: got %v, want %v (-want +got):\n%s", i, step.at, ok, step.ok, diff)
		}
	}
}

func TestLimiter_WithoutRateIsUnlimited(t *testing.T) {
	for name, l := range map[string]*limits.Limiter{
		"zero rate": limits.New("x", limits.Rate{}), "only a burst": limits.New("x", limits.Rate{Burst: 1}), "not a number": limits.New("x", limits.Rate{PerSecond: math.NaN()}),
	} {
		if !l.Unlimited() {
			t.Errorf("%s: got a limit", name)
		}
		for range 100 {
			if state, ok := l.Take(newPrincipal(1), begin); !ok || state != (contract.Limit{}) {
				t.Fatalf("%s: got %+v, %v, want no limit", name, state, ok)
			}
		}
	}
}

func TestLimiter_BurstIsAtLeastOne(t *testing.T) {
	l := limits.New("x", limits.Rate{PerSecond: 1e-4})
	if _, ok := l.Take(newPrincipal(1), begin); !ok {
		t.Error("the first Take was rejected")
	}
	if state, ok := l.Take(newPrincipal(1), begin); ok || state.Reset != 10_000*time.Second {
		t.Errorf("the second Take: got %+v, %v, want it rejected for 10,000 s", state, ok)
	}
	slow := limits.New("x", limits.Rate{PerSecond: 1e-300, Burst: math.MaxInt32})
	if state, _ := slow.Take(newPrincipal(1), begin); state.Window <= 0 || state.Reset <= 0 {
		t.Errorf("a tiny rate: got %+v, want long times", state)
	}
}

func TestPrincipalOf_DistinguishesIssuerTenantAndSubject(t *testing.T) {
	l := limits.New("x", limits.Rate{PerSecond: 1, Burst: 1})
	for name, tc := range map[string]struct {
		caller *contract.Caller
		fresh  bool
	}{
		"another issuer":     {&contract.Caller{Issuer: "b", Subject: "s"}, true},
		"another subject":    {&contract.Caller{Issuer: "a", Subject: "t"}, true},
		"same concatenation": {&contract.Caller{Issuer: "as"}, true},
		"empty":              {&contract.Caller{}, true},
		"other scopes":       {&contract.Caller{Issuer: "a", Subject: "s", Scopes: []string{"admin"}, AllAgents: true}, false},
		"another tenant":     {&contract.Caller{Issuer: "a", Subject: "s", Tenant: "north"}, true},
		"long name":          {&contract.Caller{Subject: strings.Repeat("x", 1<<16)}, true},
	} {
		l.Take(limits.Principal{Issuer: "a", Subject: "s"}, begin)
		if _, ok := l.Take(limits.PrincipalOf(tc.caller), begin); ok != tc.fresh {
			t.Errorf("%s: got %v, want %v", name, ok, tc.fresh)
		}
	}
}

// TestLimiter_AllowsAfterReset checks that a caller that waits for the reported Reset is
// accepted.
func TestLimiter_AllowsAfterReset(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := limits.New("x", drawRate(t))
		now := begin
		for range rapid.IntRange(1, 50).Draw(t, "takes") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "pause")))
			if state, ok := l.Take(newPrincipal(1), now); !ok {
				now = now.Add(state.Reset)
				if state, ok := l.Take(newPrincipal(1), now); !ok {
					t.Fatalf("rejected again after Reset: %+v", state)
				}
			}
		}
	})
}

func drawRate(t *rapid.T) limits.Rate {
	return limits.Rate{
		PerSecond: rapid.Float64Range(0.01, 1000).Draw(t, "rate"),
		Burst:     rapid.IntRange(1, 8).Draw(t, "burst"),
	}
}

// TestLimiter_NeverExceedsRate checks that no principal gets more than the burst and the
// refills since, for any order of times and principals, and with too few buckets.
func TestLimiter_NeverExceedsRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRate(t)
		l := limits.NewSmall(r, rapid.IntRange(1, 4).Draw(t, "buckets"))
		taken := map[int][]time.Time{}
		now, latest := begin, time.Time{}
		for range rapid.IntRange(1, 200).Draw(t, "takes") {
			// About the time to refill one token, forwards and backwards.
			step := rapid.Float64Range(-3, 3).Draw(t, "step") / r.PerSecond
			now = now.Add(time.Duration(step * float64(time.Second)))
			if now.After(latest) {
				latest = now
			}
			who := rapid.IntRange(0, 7).Draw(t, "principal")
			if _, ok := l.Take(newPrincipal(who), now); ok {
				taken[who] = append(taken[who], latest)
			}
			if buckets, refills := l.Sizes(); buckets > 4 || refills != buckets {
				t.Fatalf("got %d buckets and %d refills, want the same number, at most 4", buckets, refills)
			}
		}
		for who, times := range taken {
			for i := range times {
				for k := i; k < len(times); k++ {
					most := float64(r.Burst) + r.PerSecond*times[k].Sub(times[i]).Seconds()
					if got := float64(k - i + 1); got > most+1e-4 {
						t.Fatalf("%d took %v within %v, want at most %.3f", who, got, times[k].Sub(times[i]), most)
					}
				}
			}
		}
	})
}

// TestLimiter_PrincipalsAreIndependent checks that each principal gets the same as without
// the others while there are enough buckets.
func TestLimiter_PrincipalsAreIndependent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRate(t)
		const principals = 5
		l, alone := limits.NewSmall(r, principals), map[int]*limits.Limiter{}
		now := begin
		for range rapid.IntRange(1, 100).Draw(t, "takes") {
			now = now.Add(time.Duration(rapid.Float64Range(0, 2).Draw(t, "step") / r.PerSecond * float64(time.Second)))
			who := rapid.IntRange(0, principals-1).Draw(t, "principal")
			if alone[who] == nil {
				alone[who] = limits.NewSmall(r, 1)
			}
			got, ok := l.Take(newPrincipal(who), now)
			want, wantOK := alone[who].Take(newPrincipal(who), now)
			if diff := cmp.Diff(want, got); diff != "" || ok != wantOK {
				t.Fatalf("%d: got %v, want %v (-alone +together):\n%s", who, ok, wantOK, diff)
			}
		}
	})
}

// TestLimiter_EvictsFullBuckets checks that a full bucket is evicted even if another one was
// used earlier, and that new principals share one bucket if no bucket is full.
func TestLimiter_EvictsFullBuckets(t *testing.T) {
	l := limits.NewSmall(limits.Rate{PerSecond: 1, Burst: 4}, 2)
	at := func(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }
	for range 4 {
		l.Take(newPrincipal(1), at(0)) // full at 4
	}
	l.Take(newPrincipal(2), at(1)) // full at 2, although it was used later
	for n := range 4 {
		if _, ok := l.Take(newPrincipal(10+n), at(1)); !ok {
			t.Errorf("new principal %d was rejected, want a token of the shared bucket", n)
		}
	}
	if _, ok := l.Take(newPrincipal(20), at(1)); ok {
		t.Error("got a token from the empty shared bucket")
	}
	if !l.HasBucket(newPrincipal(1)) || !l.HasBucket(newPrincipal(2)) {
		t.Fatal("a bucket that is not full was evicted")
	}
	if _, ok := l.Take(newPrincipal(10), at(2)); !ok || l.HasBucket(newPrincipal(2)) || !l.HasBucket(newPrincipal(1)) || !l.HasBucket(newPrincipal(10)) {
		t.Error("the full bucket was not evicted")
	}
	if _, ok := l.Take(newPrincipal(10), at(2)); ok {
		t.Error("a principal got tokens of the shared bucket and a full one of its own")
	}
	if _, ok := l.Take(newPrincipal(1), at(2)); !ok {
		t.Error("the first bucket was not refilled within two seconds")
	}
	if _, ok := l.Take(newPrincipal(11), at(100)); !ok {
		t.Error("no bucket was evicted after a hundred seconds")
	}
}

func TestLimiter_MemoryIsBounded(t *testing.T) {
	for name, tc := range map[string]struct {
		names int
		pause time.Duration
		want  int // allowed
	}{
		"at once: one per bucket, and one for all others": {1_000_000, 0, 10_001},
		"slowly: each bucket is full before it is needed": {50_000, time.Millisecond, 50_000},
	} {
		t.Run(name, func(t *testing.T) {
			l := limits.New("x", limits.Rate{PerSecond: 0.5, Burst: 1})
			taken := 0
			for n := range tc.names {
				if _, ok := l.Take(newPrincipal(n), begin.Add(time.Duration(n)*tc.pause)); ok {
					taken++
				}
			}
			if buckets, refills := l.Sizes(); buckets > 10_000 || refills != buckets {
				t.Errorf("got %d buckets and %d refills, want the same number, at most 10000", buckets, refills)
			}
			if taken != tc.want {
				t.Errorf("got %d allowed, want %d", taken, tc.want)
			}
		})
	}
}

// TestLimiter_TenantsShareBuckets checks that the number of principals of one tenant does
// not change the tokens of principals of another tenant.
func TestLimiter_TenantsShareBuckets(t *testing.T) {
	of := func(tenant string, n int) limits.Principal {
		return limits.Principal{Tenant: tenant, Subject: strconv.Itoa(n)}
	}
	l := limits.NewSmall(limits.Rate{PerSecond: 1, Burst: 2}, 16)
	taken := 0
	for n := range 100 {
		if _, ok := l.Take(of("flood", n), begin); ok {
			taken++
		}
	}
	if taken != 4 { // two with a bucket, and two tokens for all others
		t.Errorf("one tenant's principals took %d tokens, want 4", taken)
	}
	for n := range 2 {
		for range 2 {
			if _, ok := l.Take(of("other", n), begin); !ok || !l.HasBucket(of("other", n)) {
				t.Errorf("principal %d of another tenant: got %t, want two tokens of its own", n, ok)
			}
		}
	}
	if _, ok := l.Take(of("flood", 99), begin.Add(time.Second)); !ok || !l.HasBucket(of("flood", 99)) {
		t.Error("no full bucket of the tenant was evicted")
	}
	if _, ok := l.Take(of("flood", 99), begin.Add(time.Second)); ok {
		t.Error("a principal got a token that the rest of its tenant had used")
	}
}

func TestLimiter_ConcurrentTakes(t *testing.T) {
	const burst = 100
	l := limits.NewSmall(limits.Rate{PerSecond: 1, Burst: burst}, 4)
	var taken [4]atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for n := range 4 * 2 * burst {
				if _, ok := l.Take(newPrincipal(n%4), begin); ok {
					taken[n%4].Add(1)
				}
			}
		})
	}
	wg.Wait()
	for n := range taken {
		if got := taken[n].Load(); got != burst {
			t.Errorf("%d took %d, want %d", n, got, burst)
		}
	}
}

func TestLimiter_DoesNotAllocate(t *testing.T) {
	l := limits.New("x", limits.Rate{PerSecond: 1, Burst: 1})
	caller := &contract.Caller{Issuer: "https://id.example", Subject: "alice"}
	if got := testing.AllocsPerRun(1000, func() { l.Take(limits.PrincipalOf(caller), begin) }); got != 0 {
		t.Errorf("got %v allocations, want none", got)
	}
}

func BenchmarkTake(b *testing.B) {
	principals := make([]limits.Principal, 20_000)
	for n := range principals {
		principals[n] = newPrincipal(n)
	}
	rates := limits.Rate{PerSecond: 1000, Burst: 1000}
	b.Run("known", func(b *testing.B) {
		l := limits.New("x", rates)
		b.ReportAllocs()
		for b.Loop() {
			l.Take(principals[0], begin)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		l := limits.New("x", rates)
		b.RunParallel(func(pb *testing.PB) {
			for n := 0; pb.Next(); n++ {
				l.Take(principals[n%100], begin)
			}
		})
	})
	b.Run("all buckets in use, new principals", func(b *testing.B) {
		l, n := limits.New("x", rates), 0
		for b.Loop() {
			l.Take(principals[n%len(principals)], begin.Add(time.Duration(n)*time.Microsecond))
			n++
		}
	})
	b.Run("all buckets in use, none full", func(b *testing.B) {
		l, n := limits.New("x", rates), 0
		for b.Loop() {
			l.Take(principals[n%len(principals)], begin)
			n++
		}
	})
}
