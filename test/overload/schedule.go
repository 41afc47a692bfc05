package main

import "time"

// stretch is a time in which requests arrive at a steady rate.
type stretch struct {
	perSecond float64
	lasts     time.Duration
}

// arrivals is how many requests arrive in it.
func (s stretch) arrivals() int { return int(s.perSecond * s.lasts.Seconds()) }

// schedule is one stretch after the other, without a break.
type schedule []stretch

// arrivals is how many requests arrive in all.
func (s schedule) arrivals() (n int) {
	for _, part := range s {
		n += part.arrivals()
	}
	return n
}

// lasts is when it is over.
func (s schedule) lasts() (d time.Duration) {
	for _, part := range s {
		d += part.lasts
	}
	return d
}

// due is when the request with the number, counted from 0, arrives, and when its
// stretch is over, both seen from the start.
func (s schedule) due(i int) (at, over time.Duration) {
	var began time.Duration
	for _, part := range s {
		if n := part.arrivals(); i >= n {
			i -= n
			began += part.lasts
			continue
		}
		return began + time.Duration(float64(i)/part.perSecond*float64(time.Second)), began + part.lasts
	}
	return began, began
}

// most is the greatest rate.
func (s schedule) most() (perSecond float64) {
	for _, part := range s {
		perSecond = max(perSecond, part.perSecond)
	}
	return perSecond
}
