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

// begin is when the tests begin.
var begin = time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)

func named(n int) limits.Principal {
	return limits.Principal{Issuer: "https://id.example", Subject: "user-" + strconv.Itoa(n)}
}

// TestTake: what is said of the limit is what comes true.
func TestTake(t *testing.T) {
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
		{time.Hour, state(2, 500*ms), true}, // no more than the burst is saved
	} {
		got, ok := l.Take(named(1), begin.Add(step.at))
		if diff := cmp.Diff(step.want, got); diff != "" || ok != step.ok {
			t.Errorf("step %d at %v: got %v, want %v (-want +got):\n%s", i, step.at, ok, step.ok, diff)
		}
	}
}

func TestNoLimit(t *testing.T) {
	var none *limits.Limiter
	for name, l := range map[string]*limits.Limiter{
		"nil": none, "the zero rate": limits.New("x", limits.Rate{}), "a burst alone": limits.New("x", limits.Rate{Burst: 1}),
	} {
		for range 100 {
			if state, ok := l.Take(named(1), begin); !ok || state != (contract.Limit{}) {
				t.Fatalf("%s: got %+v, %v, want no limit", name, state, ok)
			}
		}
	}
}

func TestBurstIsAtLeastOne(t *testing.T) {
	l := limits.New("x", limits.Rate{PerSecond: 1e-4})
	if _, ok := l.Take(named(1), begin); !ok {
		t.Error("the first was refused")
	}
	if state, ok := l.Take(named(1), begin); ok || state.Reset != 10_000*time.Second {
		t.Errorf("the second: got %+v, %v, want it refused for 10,000 s", state, ok)
	}
	slow := limits.New("x", limits.Rate{PerSecond: 1e-300, Burst: math.MaxInt32})
	if state, _ := slow.Take(named(1), begin); state.Window <= 0 || state.Reset <= 0 {
		t.Errorf("a rate next to nothing: got %+v, want long waits", state)
	}
}

// TestWhoIsWho: principals are told apart by issuer, tenant and subject, and by
// nothing else.
func TestWhoIsWho(t *testing.T) {
	l := limits.New("x", limits.Rate{PerSecond: 1, Burst: 1})
	for name, tc := range map[string]struct {
		caller *contract.Caller
		fresh  bool
	}{
		"another issuer":          {&contract.Caller{Issuer: "b", Subject: "s"}, true},
		"another subject":         {&contract.Caller{Issuer: "a", Subject: "t"}, true},
		"the same letters":        {&contract.Caller{Issuer: "as"}, true},
		"nobody":                  {&contract.Caller{}, true},
		"other scopes":            {&contract.Caller{Issuer: "a", Subject: "s", Scopes: []string{"admin"}, AllAgents: true}, false},
		"the same, of a tenant":   {&contract.Caller{Issuer: "a", Subject: "s", Tenant: "north"}, true},
		"a name as long as a day": {&contract.Caller{Subject: strings.Repeat("x", 1<<16)}, true},
	} {
		l.Take(limits.Principal{Issuer: "a", Subject: "s"}, begin)
		if _, ok := l.Take(limits.PrincipalOf(tc.caller), begin); ok != tc.fresh {
			t.Errorf("%s: got %v, want %v", name, ok, tc.fresh)
		}
	}
}

// TestReset: who waits as long as it was told is served then.
func TestReset(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := limits.New("x", drawRate(t))
		now := begin
		for range rapid.IntRange(1, 50).Draw(t, "takes") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "pause")))
			if state, ok := l.Take(named(1), now); !ok {
				now = now.Add(state.Reset)
				if state, ok := l.Take(named(1), now); !ok {
					t.Fatalf("it was refused again, with %+v", state)
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

// TestNeverMore: however the times and the principals come, and however few of
// them are told apart, none has more than the burst and what came since.
func TestNeverMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRate(t)
		l := limits.NewSmall(r, rapid.IntRange(1, 4).Draw(t, "told apart"))
		taken := map[int][]time.Time{}
		now, latest := begin, time.Time{}
		for range rapid.IntRange(1, 200).Draw(t, "takes") {
			// Times around that in which one token comes, back as well as forth.
			step := rapid.Float64Range(-3, 3).Draw(t, "step") / r.PerSecond
			now = now.Add(time.Duration(step * float64(time.Second)))
			if now.After(latest) {
				latest = now
			}
			who := rapid.IntRange(0, 7).Draw(t, "who")
			if _, ok := l.Take(named(who), now); ok {
				taken[who] = append(taken[who], latest)
			}
			if principals, places := l.Kept(); principals > 4 || places != principals {
				t.Fatalf("%d principals are kept, and %d places", principals, places)
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

// TestNobodyCostsAnybody: as long as all are told apart, each gets what it would
// get if it were alone.
func TestNobodyCostsAnybody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRate(t)
		const people = 5
		l, alone := limits.NewSmall(r, people), map[int]*limits.Limiter{}
		now := begin
		for range rapid.IntRange(1, 100).Draw(t, "takes") {
			now = now.Add(time.Duration(rapid.Float64Range(0, 2).Draw(t, "step") / r.PerSecond * float64(time.Second)))
			who := rapid.IntRange(0, people-1).Draw(t, "who")
			if alone[who] == nil {
				alone[who] = limits.NewSmall(r, 1)
			}
			got, ok := l.Take(named(who), now)
			want, wantOK := alone[who].Take(named(who), now)
			if diff := cmp.Diff(want, got); diff != "" || ok != wantOK {
				t.Fatalf("%d: got %v, want %v (-alone +here):\n%s", who, ok, wantOK, diff)
			}
		}
	})
}

// TestFullBucketsAreForgottenFirst, whoever asked last; and where there is none
// newcomers share one.
func TestFullBucketsAreForgottenFirst(t *testing.T) {
	l := limits.NewSmall(limits.Rate{PerSecond: 1, Burst: 4}, 2)
	at := func(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }
	for range 4 {
		l.Take(named(1), at(0)) // full at 4
	}
	l.Take(named(2), at(1)) // full at 2, though it asked later
	for n := range 4 {
		if _, ok := l.Take(named(10+n), at(1)); !ok {
			t.Errorf("newcomer %d was refused, want its share of the common bucket", n)
		}
	}
	if _, ok := l.Take(named(20), at(1)); ok {
		t.Error("a newcomer got more than there is in the common bucket")
	}
	if !l.Knows(named(1)) || !l.Knows(named(2)) {
		t.Fatal("a bucket that is not full was forgotten")
	}
	if _, ok := l.Take(named(10), at(2)); !ok || l.Knows(named(2)) || !l.Knows(named(1)) || !l.Knows(named(10)) {
		t.Error("the bucket that is full has not made room")
	}
	if _, ok := l.Take(named(10), at(2)); ok {
		t.Error("who had its share of the common bucket got a whole one besides")
	}
	if _, ok := l.Take(named(1), at(2)); !ok {
		t.Error("the first has waited two seconds for nothing")
	}
	if _, ok := l.Take(named(11), at(100)); !ok {
		t.Error("there is no room after a hundred seconds")
	}
}

// TestMemoryIsBounded: a million names are no more than ten thousand.
func TestMemoryIsBounded(t *testing.T) {
	for name, tc := range map[string]struct {
		names int
		apart time.Duration
		want  int // are served
	}{
		"at once, of whom those who are told apart are served and one of all others": {1_000_000, 0, 10_001},
		"in a row, so that each is forgotten before its place is needed":             {50_000, time.Millisecond, 50_000},
	} {
		t.Run(name, func(t *testing.T) {
			l := limits.New("x", limits.Rate{PerSecond: 0.5, Burst: 1})
			taken := 0
			for n := range tc.names {
				if _, ok := l.Take(named(n), begin.Add(time.Duration(n)*tc.apart)); ok {
					taken++
				}
			}
			if principals, places := l.Kept(); principals > 10_000 || places != principals {
				t.Errorf("%d principals are kept, and %d places, want at most 10000", principals, places)
			}
			if taken != tc.want {
				t.Errorf("%d were served, want %d", taken, tc.want)
			}
		})
	}
}

func TestTakeAtTheSameTime(t *testing.T) {
	const burst = 100
	l := limits.NewSmall(limits.Rate{PerSecond: 1, Burst: burst}, 4)
	var taken [4]atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for n := range 4 * 2 * burst {
				if _, ok := l.Take(named(n%4), begin); ok {
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

func TestTakeDoesNotAllocate(t *testing.T) {
	l := limits.New("x", limits.Rate{PerSecond: 1, Burst: 1})
	caller := &contract.Caller{Issuer: "https://id.example", Subject: "alice"}
	if got := testing.AllocsPerRun(1000, func() { l.Take(limits.PrincipalOf(caller), begin) }); got != 0 {
		t.Errorf("got %v allocations, want none", got)
	}
}

func BenchmarkTake(b *testing.B) {
	people := make([]limits.Principal, 20_000)
	for n := range people {
		people[n] = named(n)
	}
	rates := limits.Rate{PerSecond: 1000, Burst: 1000}
	b.Run("known", func(b *testing.B) {
		l := limits.New("x", rates)
		b.ReportAllocs()
		for b.Loop() {
			l.Take(people[0], begin)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		l := limits.New("x", rates)
		b.RunParallel(func(pb *testing.PB) {
			for n := 0; pb.Next(); n++ {
				l.Take(people[n%100], begin)
			}
		})
	})
	b.Run("full house, newcomers in turn", func(b *testing.B) {
		l, n := limits.New("x", rates), 0
		for b.Loop() {
			l.Take(people[n%len(people)], begin.Add(time.Duration(n)*time.Microsecond))
			n++
		}
	})
	b.Run("full house, nobody leaves", func(b *testing.B) {
		l, n := limits.New("x", rates), 0
		for b.Loop() {
			l.Take(people[n%len(people)], begin)
			n++
		}
	})
}
