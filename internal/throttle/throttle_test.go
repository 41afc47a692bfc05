package throttle_test

import (
	"context"
	"maps"
	"math"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/internal/throttle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const maxDelay = 2 * time.Millisecond

// overloaded is a scheduling delay above maxDelay.
var overloaded = throttle.SchedulingDelay{Waits: 1000, P99: 20 * time.Millisecond}

// process simulates a process that is overloaded if it begins more than capacity requests in 50 ms.
type process struct {
	throttle *throttle.Throttle[string]
	capacity int
	cost     map[string]int // of a request of an owner, besides 1
	requests sync.WaitGroup

	mu       sync.Mutex
	begun    int            // in this interval
	started  map[string]int // by owner
	rejected map[string]int
	longest  map[string]time.Duration // wait
}

func newProcess(capacity int) *process {
	p := &process{capacity: capacity}
	p.reset()
	p.throttle = throttle.New[string](maxDelay, func() throttle.SchedulingDelay {
		p.mu.Lock()
		defer p.mu.Unlock()
		n := p.begun
		p.begun = 0
		if n > p.capacity {
			return overloaded
		}
		return throttle.SchedulingDelay{Waits: 1000}
	})
	return p
}

// reset forgets what was counted.
func (p *process) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.started, p.rejected, p.longest = map[string]int{}, map[string]int{}, map[string]time.Duration{}
}

func (p *process) request(owner string) {
	waited, ok := p.throttle.Wait(context.Background(), owner, p.cost[owner]+1)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.longest[owner] = max(p.longest[owner], waited)
	if !ok {
		p.rejected[owner]++
		return
	}
	p.begun += p.cost[owner] + 1
	p.started[owner]++
}

// run sends requests of owners at constant rates per second, and waits for all of them.
func (p *process) run(d time.Duration, perSecond map[string]int) {
	for ms := range int(d.Milliseconds()) {
		for owner, rate := range perSecond {
			for range rate*(ms+1)/1000 - rate*ms/1000 {
				p.requests.Go(func() { p.request(owner) })
			}
		}
		<-time.After(time.Millisecond)
	}
	p.requests.Wait()
}

// TestThrottle_LimitsWhoSendsMost: a process that can begin 400 requests a second gets 1000 of one
// owner and 40 of another.
func TestThrottle_LimitsWhoSendsMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(20)
		load := map[string]int{"loud": 1000, "quiet": 40}
		p.run(5*time.Second, load)
		p.reset()
		p.run(10*time.Second, load)
		if n := p.started["loud"] / 10; n < 250 || n > 450 {
			t.Errorf("got %d requests per second of the loud owner, want about what remains of 400", n)
		}
		if p.started["quiet"] != 400 || p.longest["quiet"] > 0 {
			t.Errorf("got %d requests of the quiet owner with waits up to %s, want all 400 at once", p.started["quiet"], p.longest["quiet"])
		}
		if w := p.longest["loud"]; w == 0 || w > time.Second {
			t.Errorf("got waits up to %s, want some, of at most a second", w)
		}
		if p.rejected["loud"] == 0 {
			t.Error("got no request rejected, although the owner sends more than can wait")
		}
	})
}

// TestThrottle_DelaysInsteadOfRejecting: an owner with few requests at a time gets no error.
func TestThrottle_DelaysInsteadOfRejecting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(10)
		var workers sync.WaitGroup
		end := time.Now().Add(25 * time.Second)
		for range 50 {
			workers.Go(func() {
				for time.Now().Before(end) {
					p.request("loud")
					<-time.After(time.Millisecond)
				}
			})
		}
		p.run(5*time.Second, map[string]int{"quiet": 40})
		p.reset()
		p.run(20*time.Second, map[string]int{"quiet": 40})
		workers.Wait()
		if p.rejected["loud"] > 0 || p.longest["loud"] == 0 {
			t.Errorf("got %d requests rejected and waits up to %s, want waits only", p.rejected["loud"], p.longest["loud"])
		}
		if n := p.started["loud"] / 20; n < 100 || n > 250 {
			t.Errorf("got %d requests per second of the loud owner, want about what remains of 200", n)
		}
	})
}

// TestThrottle_CountsCost: an owner with few expensive requests is limited, and one with many cheap
// ones that cost less is not.
func TestThrottle_CountsCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(20)
		p.cost = map[string]int{"expensive": 9}
		load := map[string]int{"expensive": 90, "cheap": 150}
		p.run(5*time.Second, load)
		p.reset()
		p.run(10*time.Second, load)
		if p.longest["cheap"] > 0 || p.rejected["cheap"] > 0 {
			t.Errorf("got waits up to %s and %d requests rejected for cheap requests, want none", p.longest["cheap"], p.rejected["cheap"])
		}
		if n := p.started["expensive"]; n > 400 || n < 100 {
			t.Errorf("got %d expensive requests in 10 s, want those for about what remains of 400 a second", n)
		}
		if w := p.longest["expensive"]; w == 0 || w > time.Second {
			t.Errorf("got waits up to %s, want some, of at most a second", w)
		}
	})
}

// TestThrottle_RemembersOwners: a flood that pauses for a short time does not begin again without a
// limit.
func TestThrottle_RemembersOwners(t *testing.T) {
	for name, tc := range map[string]struct {
		pause   time.Duration
		limited bool
	}{"short pause": {4 * time.Second, true}, "long pause": {61 * time.Second, false}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newProcess(20)
				p.run(5*time.Second, map[string]int{"loud": 1000, "quiet": 40})
				p.run(tc.pause, map[string]int{"quiet": 40})
				p.reset()
				p.run(20*time.Millisecond, map[string]int{"loud": 1000, "quiet": 40})
				if got := p.longest["loud"] > 0; got != tc.limited {
					t.Errorf("got a limit: %v, want %v", got, tc.limited)
				}
			})
		})
	}
}

func TestThrottle_EndsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(20)
		p.run(5*time.Second, map[string]int{"loud": 1000, "quiet": 40})
		p.run(10*time.Second, map[string]int{"loud": 200, "quiet": 40})
		p.reset()
		if p.run(5*time.Second, map[string]int{"loud": 200, "quiet": 40}); p.longest["loud"] > 0 {
			t.Errorf("got a wait of %s long after the overload, want none", p.longest["loud"])
		}
	})
}

// TestThrottle_EndsLimitDuringOverload: a process that stays overloaded, because of other work, does
// not limit an owner that is alone now, or sends less than another now.
func TestThrottle_EndsLimitDuringOverload(t *testing.T) {
	for name, then := range map[string]map[string]int{
		"no other owner":   {"loud": 1000},
		"other sends more": {"loud": 150, "quiet": 1000},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newProcess(-1) // always overloaded
				p.run(5*time.Second, map[string]int{"loud": 1000, "quiet": 40})
				p.run(20*time.Second, then)
				p.reset()
				p.run(5*time.Second, then)
				if p.rejected["loud"] > 0 || p.longest["loud"] > 0 {
					t.Errorf("got %d requests rejected and waits up to %s, want none", p.rejected["loud"], p.longest["loud"])
				}
			})
		})
	}
}

func TestThrottle_LimitsNobodyElse(t *testing.T) {
	for name, tc := range map[string]struct {
		maxDelay  time.Duration
		delay     throttle.SchedulingDelay
		perSecond map[string]int
	}{
		"no other owner":            {maxDelay, overloaded, map[string]int{"a": 2000}},
		"others send as much":       {maxDelay, overloaded, map[string]int{"a": 1000, "b": 1000, "c": 900}},
		"not overloaded":            {time.Second, overloaded, map[string]int{"a": 2000, "b": 10}},
		"few goroutines waited":     {maxDelay, throttle.SchedulingDelay{Waits: 99, P99: time.Second}, map[string]int{"a": 2000, "b": 10}},
		"few requests, more others": {maxDelay, overloaded, map[string]int{"a": 90, "b": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newProcess(0)
				p.throttle = throttle.New[string](tc.maxDelay, func() throttle.SchedulingDelay { return tc.delay })
				p.run(2*time.Second, tc.perSecond)
				for owner := range maps.Keys(tc.perSecond) {
					if p.rejected[owner] > 0 || p.longest[owner] > 0 {
						t.Errorf("%s: got %d requests rejected and waits up to %s, want none", owner, p.rejected[owner], p.longest[owner])
					}
				}
			})
		})
	}
}

// TestThrottle_GivesUpWithContext: a request whose caller is gone does not delay those behind it.
func TestThrottle_GivesUpWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(-1) // always overloaded
		p.run(5*time.Second, map[string]int{"loud": 1000, "quiet": 40})
		ctx, cancel := context.WithCancel(t.Context())
		for range 90 { // at the lowest limit, 100 per second, they wait for almost a second
			p.requests.Go(func() {
				if _, ok := p.throttle.Wait(ctx, "loud", 1); ok && ctx.Err() != nil {
					t.Error("a cancelled request was admitted")
				}
			})
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		if waited, ok := p.throttle.Wait(t.Context(), "loud", 1); !ok || waited > 20*time.Millisecond {
			t.Errorf("got a wait of %s, %v behind cancelled requests, want the next turn", waited, ok)
		}
		p.requests.Wait()
	})
}

// TestThrottle_BoundsMemory: invented names do not fill the memory.
func TestThrottle_BoundsMemory(t *testing.T) {
	p := newProcess(0)
	for i := range 20_000 {
		p.request(strconv.Itoa(i))
	}
	if n := p.throttle.Owners(); n > 10_000 {
		t.Errorf("got %d owners in memory, want at most 10000", n)
	}
}

// TestThrottle_Properties: whatever owners send, no request waits for more than a second, and one
// that comes 10 ms after the last of its owner does not wait.
func TestThrottle_Properties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		type step struct {
			delay, gap time.Duration
			owner      int
		}
		ms := func(limit int) *rapid.Generator[time.Duration] {
			return rapid.Map(rapid.IntRange(0, limit), func(n int) time.Duration { return time.Duration(n) * time.Millisecond })
		}
		steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
			return step{ms(50).Draw(t, "delay"), ms(15).Draw(t, "gap") * time.Duration(rapid.IntRange(0, 1).Draw(t, "pause")), max(0, rapid.IntRange(-5, 3).Draw(t, "owner"))}
		}), 300, 600).Draw(rt, "steps")
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			delay := time.Duration(0)
			tr := throttle.New[int](time.Millisecond, func() throttle.SchedulingDelay {
				mu.Lock()
				defer mu.Unlock()
				return throttle.SchedulingDelay{Waits: 1000, P99: delay}
			})
			next := map[int]time.Time{} // from when a request need not wait
			var requests sync.WaitGroup
			for _, s := range steps {
				mu.Lock()
				delay = s.delay
				mu.Unlock()
				slow := !time.Now().Before(next[s.owner])
				requests.Go(func() {
					waited, ok := tr.Wait(t.Context(), s.owner, 1)
					if waited > time.Second {
						t.Errorf("got a wait of %s, want at most a second", waited)
					}
					if slow && (waited > time.Millisecond || !ok) {
						t.Errorf("got a wait of %s, %v for a slow owner, want none", waited, ok)
					}
				})
				synctest.Wait() // requests enter in the order of the steps
				if next[s.owner].Before(time.Now()) {
					next[s.owner] = time.Now()
				}
				next[s.owner] = next[s.owner].Add(10 * time.Millisecond)
				<-time.After(s.gap)
			}
			requests.Wait()
		})
	})
}

func TestDelayMeter_CountsWaits(t *testing.T) {
	measure := throttle.NewDelayMeter()
	measure()
	done := make(chan struct{})
	for range 1000 {
		go func() { done <- struct{}{} }()
		<-done
	}
	if d := measure(); d.Waits == 0 || d.P99 < 0 || d.P99 > time.Minute {
		t.Errorf("got %+v after 1000 goroutines started, want waits", d)
	}
}

func TestDelayOf(t *testing.T) {
	bounds := []float64{math.Inf(-1), 0, 0.001, 0.002, 0.004, math.Inf(1)}
	for name, tc := range map[string]struct {
		counts []uint64
		want   throttle.SchedulingDelay
	}{
		"none":                 {[]uint64{0, 0, 0, 0, 0}, throttle.SchedulingDelay{}},
		"one in a hundred":     {[]uint64{0, 99, 0, 0, 1}, throttle.SchedulingDelay{Waits: 100}},
		"two in a hundred":     {[]uint64{0, 98, 0, 1, 1}, throttle.SchedulingDelay{Waits: 100, P99: 2 * time.Millisecond}},
		"all in one bucket":    {[]uint64{0, 0, 7, 0, 0}, throttle.SchedulingDelay{Waits: 7, P99: time.Millisecond}},
		"below the first one":  {[]uint64{7, 0, 0, 0, 0}, throttle.SchedulingDelay{Waits: 7}},
		"above the last bound": {[]uint64{0, 0, 0, 0, 7}, throttle.SchedulingDelay{Waits: 7, P99: 4 * time.Millisecond}},
	} {
		if got := throttle.DelayOf(tc.counts, bounds); got != tc.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tc.want)
		}
	}
}
