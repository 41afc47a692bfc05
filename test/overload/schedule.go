package main

import "time"

// segment is a time with a constant arrival rate.
type segment struct {
	rate     float64
	duration time.Duration
}

func (s segment) countArrivals() int { return int(s.rate * s.duration.Seconds()) }

// schedule is a sequence of segments.
type schedule []segment

func (s schedule) countArrivals() (n int) {
	for _, part := range s {
		n += part.countArrivals()
	}
	return n
}

// arrivalTime returns when request i (from 0) is due, and when its segment ends,
// counted from the start.
func (s schedule) arrivalTime(i int) (at, over time.Duration) {
	var began time.Duration
	for _, part := range s {
		if n := part.countArrivals(); i >= n {
			i -= n
			began += part.duration
			continue
		}
		return began + time.Duration(float64(i)/part.rate*float64(time.Second)), began + part.duration
	}
	return began, began
}

func (s schedule) maxRate() (perSecond float64) {
	for _, part := range s {
		perSecond = max(perSecond, part.rate)
	}
	return perSecond
}
