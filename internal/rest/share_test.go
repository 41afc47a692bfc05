package rest

import (
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/limits"
)

// One caller with many long requests leaves places for others, and gives them all
// back; alone it has nearly all.
func TestOneCallerLeavesPlaces(t *testing.T) {
	s := newServer(t, Config{MaxInFlight: 80, Auth: &countingAuth{}}, &fakeCore{})
	enter := func(subject string) (*exchange, bool) {
		x := &exchange{caller: &contract.Caller{Subject: subject}, lane: laneFree}
		return x, s.enter(x, laneWork)
	}
	var held []*exchange
	for range 100 {
		if x, ok := enter("greedy"); ok {
			held = append(held, x)
		}
	}
	if len(held) != 70 {
		t.Errorf("alone, one caller has %d of 80 places, want 70", len(held))
	}
	for i := range 10 {
		x, ok := enter("other")
		if !ok {
			t.Errorf("another caller's request %d found no place", i)
		}
		held = append(held, x)
	}
	if _, ok := enter("third"); ok {
		t.Error("there are 81 places")
	}
	for _, x := range held {
		s.leave(x)
		s.leave(x) // a second time changes nothing
	}
	if s.taken() != 0 || len(s.shares.held) != 0 {
		t.Errorf("afterwards %d places are taken, and %d callers have some", s.taken(), len(s.shares.held))
	}
}

// However callers come and go, nobody who holds little is refused while there is
// a place, and nothing is counted that is not held.
func TestShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 40).Draw(t, "most")
		var s shares
		held, taken := map[string]int{}, 0
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			who := strconv.Itoa(rapid.IntRange(0, 3).Draw(t, "who"))
			c := &contract.Caller{Subject: who}
			if held[who] > 0 && rapid.Bool().Draw(t, "leaves") {
				s.give(c)
				held[who]--
				taken--
				continue
			}
			if taken == most {
				continue // the lane says no
			}
			ok := s.take(c, taken+1, most)
			if few := held[who] < most/2 || taken+1 <= most-most/8; ok != few {
				t.Fatalf("%s holds %d of %d, %d are taken: got %t", who, held[who], most, taken, ok)
			}
			if ok {
				held[who]++
				taken++
			}
		}
		for who, n := range held {
			if s.held[limits.Principal{Subject: who}] != n {
				t.Fatalf("%s is counted for %d, holds %d", who, s.held[limits.Principal{Subject: who}], n)
			}
		}
	})
}

func (t *pot) bytes() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.total
}

// Nobody fills a pot alone, and what was taken is given back.
func TestPot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := pot{most: 100, share: 40}
		held := map[limits.Principal]int64{}
		total := int64(0)
		for range rapid.IntRange(0, 100).Draw(t, "steps") {
			who := limits.Principal{Subject: strconv.Itoa(rapid.IntRange(0, 4).Draw(t, "who"))}
			n := rapid.Int64Range(1, 50).Draw(t, "bytes")
			if rapid.Bool().Draw(t, "gives") {
				n = min(n, held[who])
				p.give(who, n)
				held[who] -= n
				total -= n
				continue
			}
			fits := total+n <= p.most && held[who]+n <= p.share
			if p.take(who, n) != fits {
				t.Fatalf("%d of %s, who holds %d of %d: got %t", n, who.Subject, held[who], total, !fits)
			}
			if fits {
				held[who] += n
				total += n
			}
		}
		for who, n := range held {
			if p.of[who] != n {
				t.Fatalf("%s is counted for %d, holds %d", who.Subject, p.of[who], n)
			}
		}
		if p.bytes() != total {
			t.Fatalf("%d are counted, %d held", p.bytes(), total)
		}
	})
}

// One caller who sends large bodies and does not end them leaves room for others.
func TestOneCallerDoesNotFillThePot(t *testing.T) {
	s := newServer(t, Config{Auth: &countingAuth{}}, &fakeCore{})
	greedy := limits.PrincipalOf(&contract.Caller{Subject: "greedy"})
	taken := int64(0)
	for s.receiving.take(greedy, 1<<20) {
		taken += 1 << 20
	}
	if taken != shareReceiving {
		t.Errorf("one caller holds %d bytes, want %d", taken, shareReceiving)
	}
	if !s.receiving.take(limits.PrincipalOf(&contract.Caller{Subject: "alice"}), 1<<20) {
		t.Error("there is no room for another caller")
	}
}
