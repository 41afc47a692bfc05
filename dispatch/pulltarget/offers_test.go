package pulltarget

import (
	"strconv"
	"testing"
	"time"
)

// Agents that register themselves under ever new ids do not use ever more memory.
func TestOffers_ForgetOldPolls(t *testing.T) {
	o, now := NewOffers(), time.Now()
	for i := range maxPolled {
		id := strconv.Itoa(i)
		o.beginPoll(id, now)
		o.endPoll(id, now)
	}
	now = now.Add(2 * time.Hour)
	o.beginPoll("next", now)
	if n := len(o.polled); n != 1 {
		t.Errorf("got %d times of polls, want that of the latest one only", n)
	}
	if waiting, last := o.Polls("next"); waiting != 1 || !last.Equal(now) {
		t.Errorf("got %d waiting, last %v, want 1 and %v", waiting, last, now)
	}
}
