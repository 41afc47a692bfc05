package throttle

import (
	"context"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const maxDelay = 2 * time.Millisecond

// overloaded is a scheduling delay above maxDelay.
var overloaded = SchedulingDelay{Waits: 1000, P99: 20 * time.Millisecond}

// process simulates a process that is overloaded if it begins more than capacity requests in 50 ms,
// in steps of a millisecond.
type process struct {
	throttle *Throttle[string]
	capacity int
	cost     map[string]int // of a request of an owner, besides 1
	senders  int            // of the owner "loud", which send again after each request
	now      time.Time
	begun    int // in this interval
	queues   map[string][]waitingRequest

	started  map[string]int // by owner
	rejected map[string]int
	longest  map[string]time.Duration // wait
}

// waitingRequest is a request that waits for its turn.
type waitingRequest struct {
	load    *load
	arrived time.Time
}

func newProcess(capacity int) *process {
	p := &process{capacity: capacity, now: time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC), queues: map[string][]waitingRequest{}}
	p.reset()
	p.throttle = New[string](maxDelay, func() SchedulingDelay {
		n := p.begun
		p.begun = 0
		if n > p.capacity {
			return overloaded
		}
		return SchedulingDelay{Waits: 1000}
	})
	return p
}

// reset forgets what was counted.
func (p *process) reset() {
	p.started, p.rejected, p.longest = map[string]int{}, map[string]int{}, map[string]time.Duration{}
}

func (p *process) request(owner string) {
	l, wait, ok := p.throttle.enter(owner, p.cost[owner]+1, p.now)
	if wait {
		p.queues[owner] = append(p.queues[owner], waitingRequest{l, p.now})
	} else {
		p.end(owner, 0, ok)
	}
}

// end counts a request that begins or is rejected.
func (p *process) end(owner string, waited time.Duration, ok bool) {
	p.longest[owner] = max(p.longest[owner], waited)
	if ok {
		p.begun += p.cost[owner] + 1
		p.started[owner]++
	} else {
		p.rejected[owner]++
	}
}

// step sends requests of the senders that wait for none, begins the requests whose turn has come, and
// lets a millisecond pass.
func (p *process) step() {
	for range p.senders - len(p.queues["loud"]) {
		p.request("loud")
	}
	for _, owner := range slices.Sorted(maps.Keys(p.queues)) {
		for queue := p.queues[owner]; len(queue) > 0; queue = p.queues[owner] {
			waited, cost := p.now.Sub(queue[0].arrived), p.cost[owner]+1
			ok := waited < maxWait
			if !ok {
				p.throttle.leave(queue[0].load, cost)
			} else if p.throttle.begin(queue[0].load, cost, p.now) > 0 {
				break
			}
			p.queues[owner] = queue[1:]
			p.end(owner, waited, ok)
		}
	}
	p.now = p.now.Add(time.Millisecond)
}

// run sends requests of owners at constant rates per second.
func (p *process) run(d time.Duration, perSecond map[string]int) {
	for ms := range int(d.Milliseconds()) {
		for _, owner := range slices.Sorted(maps.Keys(perSecond)) {
			rate := perSecond[owner]
			for range rate*(ms+1)/1000 - rate*ms/1000 {
				p.request(owner)
			}
		}
		p.step()
	}
}

// TestThrottle_LimitsWhoSendsMost: a process that can begin 400 requests a second gets 1000 of one
// owner and 40 of another.
func TestThrottle_LimitsWhoSendsMost(t *testing.T) {
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
}

// TestThrottle_DelaysInsteadOfRejecting: an owner with few requests at a time gets no error.
func TestThrottle_DelaysInsteadOfRejecting(t *testing.T) {
	p := newProcess(10)
	p.senders = 50
	p.run(5*time.Second, map[string]int{"quiet": 40})
	p.reset()
	p.run(20*time.Second, map[string]int{"quiet": 40})
	if p.rejected["loud"] > 0 || p.longest["loud"] == 0 {
		t.Errorf("got %d requests rejected and waits up to %s, want waits only", p.rejected["loud"], p.longest["loud"])
	}
	if n := p.started["loud"] / 20; n < 100 || n > 250 {
		t.Errorf("got %d requests per second of the loud owner, want about what remains of 200", n)
	}
}

// TestThrottle_LimitsSeveralOwners: two owners that send much are limited, although each sends as
// much as the other.
func TestThrottle_LimitsSeveralOwners(t *testing.T) {
	p := newProcess(20)
	load := map[string]int{"loud": 600, "louder": 700, "quiet": 40}
	p.run(5*time.Second, load)
	p.reset()
	p.run(10*time.Second, load)
	if n := (p.started["loud"] + p.started["louder"]) / 10; n > 450 || p.longest["quiet"] > 0 {
		t.Errorf("got %d requests per second of the loud owners and waits up to %s of the quiet one, want about what remains of 400, and none",
			n, p.longest["quiet"])
	}
}

// TestThrottle_CountsCost: an owner with few expensive requests is limited, and one with many cheap
// ones that cost less is not.
func TestThrottle_CountsCost(t *testing.T) {
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
}

// TestThrottle_RemembersOwners: a flood that pauses for a short time does not begin again without a
// limit.
func TestThrottle_RemembersOwners(t *testing.T) {
	for name, tc := range map[string]struct {
		pause   time.Duration
		limited bool
	}{"short pause": {4 * time.Second, true}, "long pause": {61 * time.Second, false}} {
		t.Run(name, func(t *testing.T) {
			p := newProcess(20)
			p.run(5*time.Second, map[string]int{"loud": 1000, "quiet": 40})
			p.run(tc.pause, map[string]int{"quiet": 40})
			p.reset()
			p.run(20*time.Millisecond, map[string]int{"loud": 1000, "quiet": 40})
			if got := p.longest["loud"] > 0; got != tc.limited {
				t.Errorf("got a limit: %v, want %v", got, tc.limited)
			}
		})
	}
}

func TestThrottle_EndsLimit(t *testing.T) {
	p := newProcess(20)
	p.run(5*time.Second, map[string]int{"loud": 1000, "quiet": 40})
	p.run(10*time.Second, map[string]int{"loud": 200, "quiet": 40})
	p.reset()
	if p.run(5*time.Second, map[string]int{"loud": 200, "quiet": 40}); p.longest["loud"] > 0 {
		t.Errorf("got a wait of %s long after the overload, want none", p.longest["loud"])
	}
}

// TestThrottle_EndsLimitDuringOverload: a process that stays overloaded, because of other work, does
// not limit an owner that is alone now, or sends less than another now.
func TestThrottle_EndsLimitDuringOverload(t *testing.T) {
	for name, then := range map[string]map[string]int{
		"no other owner":   {"loud": 1000},
		"other sends more": {"loud": 150, "quiet": 1000},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProcess(-1) // always overloaded
			p.run(5*time.Second, map[string]int{"loud": 1000, "quiet": 40})
			p.run(20*time.Second, then)
			p.reset()
			p.run(5*time.Second, then)
			if p.rejected["loud"] > 0 || p.longest["loud"] > 0 {
				t.Errorf("got %d requests rejected and waits up to %s, want none", p.rejected["loud"], p.longest["loud"])
			}
		})
	}
}

func TestThrottle_LimitsNobodyElse(t *testing.T) {
	for name, tc := range map[string]struct {
		maxDelay  time.Duration
		delay     SchedulingDelay
		perSecond map[string]int
	}{
		"no other owner":            {maxDelay, overloaded, map[string]int{"a": 2000}},
		"others send as much":       {maxDelay, overloaded, map[string]int{"a": 1000, "b": 1000, "c": 900}},
		"not overloaded":            {time.Second, overloaded, map[string]int{"a": 2000, "b": 10}},
		"few goroutines waited":     {maxDelay, SchedulingDelay{Waits: 99, P99: time.Second}, map[string]int{"a": 2000, "b": 10}},
		"few requests, more others": {maxDelay, overloaded, map[string]int{"a": 90, "b": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProcess(0)
			p.throttle = New[string](tc.maxDelay, func() SchedulingDelay { return tc.delay })
			p.run(2*time.Second, tc.perSecond)
			for owner := range maps.Keys(tc.perSecond) {
				if p.rejected[owner] > 0 || p.longest[owner] > 0 {
					t.Errorf("%s: got %d requests rejected and waits up to %s, want none", owner, p.rejected[owner], p.longest[owner])
				}
			}
		})
	}
}

// TestThrottle_BoundsMemory: invented names do not fill the memory.
func TestThrottle_BoundsMemory(t *testing.T) {
	p := newProcess(0)
	for i := range 20_000 {
		p.request(strconv.Itoa(i))
	}
	if n := len(p.throttle.owners); n > 10_000 {
		t.Errorf("got %d owners in memory, want at most 10000", n)
	}
}

// TestThrottle_GivesUpWithContext: a request whose caller is gone does not delay those behind it.
func TestThrottle_GivesUpWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		throttle := New[string](maxDelay, func() SchedulingDelay { return overloaded })
		send := func(owner string) {
			if l, _, _ := throttle.enter(owner, 1, time.Now()); l.limit == 0 {
				<-time.After(time.Millisecond)
			}
		}
		for throttle.owners["loud"] == nil || throttle.owners["loud"].limit == 0 {
			send("quiet")
			for range 20 {
				send("loud")
			}
		}
		l := throttle.owners["loud"]
		before := l.queued
		ctx, cancel := context.WithCancel(t.Context())
		var requests sync.WaitGroup
		for range 20 {
			requests.Go(func() { throttle.Wait(ctx, "loud", 1) })
		}
		synctest.Wait()
		cancel()
		requests.Wait()
		if l.queued > before || len(l.turn) > 0 {
			t.Errorf("got requests of cost %d in the queue and %d turns taken after all were cancelled, want %d and 0", l.queued, len(l.turn), before)
		}
	})
}

// TestThrottle_Properties: whatever owners send, no request waits for more than a second, and one
// that comes 10 ms after the last of its owner does not wait.
func TestThrottle_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newProcess(0)
		delay := SchedulingDelay{Waits: 1000}
		p.throttle = New[string](maxDelay, func() SchedulingDelay { return delay })
		next := map[string]time.Time{} // from when a request need not wait
		for range rapid.IntRange(300, 600).Draw(t, "steps") {
			delay.P99 = time.Duration(rapid.IntRange(0, 50).Draw(t, "delay")) * time.Millisecond
			owner := strconv.Itoa(max(0, rapid.IntRange(-5, 3).Draw(t, "owner")))
			slow, rejected := !p.now.Before(next[owner]), p.rejected[owner]
			p.request(owner)
			if slow && (len(p.queues[owner]) > 0 || p.rejected[owner] > rejected) {
				t.Fatal("got a wait for a slow owner, want none")
			}
			if next[owner].Before(p.now) {
				next[owner] = p.now
			}
			next[owner] = next[owner].Add(10 * time.Millisecond)
			for range rapid.IntRange(-15, 15).Draw(t, "gap") {
				p.step()
			}
		}
		for _, owner := range slices.Sorted(maps.Keys(p.longest)) {
			if p.longest[owner] > time.Second {
				t.Fatalf("got a wait of %s, want at most a second", p.longest[owner])
			}
		}
	})
}

func TestDelayMeter_CountsWaits(t *testing.T) {
	measure := NewDelayMeter()
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
		want   SchedulingDelay
	}{
		"none":                 {[]uint64{0, 0, 0, 0, 0}, SchedulingDelay{}},
		"one in a hundred":     {[]uint64{0, 99, 0, 0, 1}, SchedulingDelay{Waits: 100}},
		"two in a hundred":     {[]uint64{0, 98, 0, 1, 1}, SchedulingDelay{Waits: 100, P99: 2 * time.Millisecond}},
		"all in one bucket":    {[]uint64{0, 0, 7, 0, 0}, SchedulingDelay{Waits: 7, P99: time.Millisecond}},
		"below the first one":  {[]uint64{7, 0, 0, 0, 0}, SchedulingDelay{Waits: 7}},
		"above the last bound": {[]uint64{0, 0, 0, 0, 7}, SchedulingDelay{Waits: 7, P99: 4 * time.Millisecond}},
	} {
		if got := delayOf(tc.counts, bounds); got != tc.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tc.want)
		}
	}
}

// TestLoad_KeepsLimitWhileRequestsWait: a limit that ended before they begin would reject the next
// request, because the queue may hold what begins in a second.
func TestLoad_KeepsLimitWhileRequestsWait(t *testing.T) {
	l := &load{limit: 1000, rate: 1, started: 1, queued: 1}
	if l.increaseLimit(); l.limit == 0 {
		t.Error("the limit ended while a request waited")
	}
	l = &load{limit: 1000, rate: 1, started: 1}
	if l.increaseLimit(); l.limit != 0 {
		t.Errorf("got the limit %g without a request that waits, want none", l.limit)
	}
}
