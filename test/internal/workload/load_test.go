package workload

import (
	"testing"
	"time"
)

func TestNextOrder_ResendsUnansweredFirst(t *testing.T) {
	c := &Load{Rand: NewRand(1)}
	first, again := c.nextOrder()
	if again {
		t.Error("first order: got a resent one, want a new one")
	}
	c.queueOrder(Order{key: "k"}, false)
	if o, again := c.nextOrder(); !again || o.key != "k" {
		t.Errorf("got key %q, again %v, want k, true", o.key, again)
	}
	if next, again := c.nextOrder(); again || string(next.body) == string(first.body) {
		t.Errorf("got %s again, want another order", next.body)
	}
}

func TestRand_RepeatsWithSeed(t *testing.T) {
	a, b := NewRand(7), NewRand(7)
	for range 100 {
		if x, y := a.IntN(6), b.IntN(6); x != y || x < 0 || x > 5 {
			t.Fatalf("got %d and %d with the same seed, want the same number from 0 to 5", x, y)
		}
		if d := a.DurationUpTo(time.Second); d < 0 || d > time.Second {
			t.Errorf("upTo a second: got %s", d)
		}
		b.DurationUpTo(time.Second)
	}
	if !a.OneIn(1) {
		t.Error("OneIn(1): got false, want true")
	}
}
