package throttle

import "time"

const (
	// interval is the time between two adjustments.
	interval = 50 * time.Millisecond
	// activeTime is how long an owner counts as one of the others after a request.
	activeTime = time.Second
	// limitMemory is how long a limit outlasts the owner's last request, so that a flood with
	// pauses does not begin anew.
	limitMemory = time.Minute
	// fairShare is how many times the average of the active owners one may always send.
	fairShare = 1.25
	// minLimit is the cost of the requests per second that an owner may always send.
	minLimit = 100
	// rateWeight is the weight of one interval in the moving average of a rate.
	rateWeight = 0.25
	// unusedLimit is how many times the owner's rate a limit is when it ends.
	unusedLimit = 2
)

// The limits change by additive increase and multiplicative decrease: in each interval, a
// limit is multiplied by a number between maxDecrease and minDecrease while the delay is too
// long and the owner sends more than its fair share, depending on how long the delay is, and
// else it grows slowly.
const (
	maxDecrease = 0.5
	minDecrease = 0.95
	growth      = 1.02
	minGrowth   = 1 // per second, in addition
)

// endInterval adjusts the limits, and begins the next interval.
func (t *Throttle[Owner]) endInterval(now time.Time) {
	delay := t.measure()
	overloaded := delay.exceeds(t.maxDelay)
	total, active := t.updateRates(now)
	share := fairShare * total / max(active, 1)
	for _, l := range t.owners {
		if overloaded && l.rate > share {
			l.decreaseLimit(float64(t.maxDelay)/float64(delay.P99), share)
		} else {
			l.increaseLimit() // also during an overload: the others may have stopped, or send more now
		}
		l.started, l.waited = 0, false
	}
	t.began = now
}

// updateRates forgets owners that have sent nothing for long, and returns the total rate
// and the number of those that have sent something recently.
func (t *Throttle[Owner]) updateRates(now time.Time) (total, active float64) {
	elapsed := now.Sub(t.began).Seconds()
	for owner, l := range t.owners {
		idle := now.Sub(l.latest)
		if idle > limitMemory {
			delete(t.owners, owner)
			continue
		}
		l.rate += rateWeight * (float64(l.started)/elapsed - l.rate)
		if idle <= activeTime {
			total += l.rate
			active++
		}
	}
	return total, active
}

// decreaseLimit multiplies the limit, but leaves at least the lowest one.
func (l *load) decreaseLimit(by, lowest float64) {
	if l.limit == 0 {
		l.limit = l.rate
	}
	l.limit = max(l.limit*min(max(by, maxDecrease), minDecrease), lowest, minLimit)
}

// increaseLimit raises a limit that the owner uses, and removes one that it no longer
// reaches.
func (l *load) increaseLimit() {
	if l.limit == 0 || l.started == 0 {
		return
	}
	if !l.waited && l.queued == 0 && l.limit > unusedLimit*l.rate {
		l.limit = 0
		return
	}
	l.limit = l.limit*growth + minGrowth
}
