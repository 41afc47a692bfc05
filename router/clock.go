package router

import (
	"time"

	"github.com/caprouter/caprouter/contract"
)

// clock times the stages of one request.
type clock struct {
	read  func() time.Time
	start time.Time
	last  time.Time
	laps  map[string]float64 // stage → ms
}

func (r *Router) startClock() *clock {
	now := r.cfg.Now()
	return &clock{read: r.cfg.Now, start: now, last: now, laps: make(map[string]float64, 4)}
}

// lap books the time since the last lap under the stage's name.
func (c *clock) lap(stage string) {
	now := c.read()
	c.laps[stage] = millis(now.Sub(c.last))
	c.last = now
}

// now is the time of the last lap: the time the plan is made at.
func (c *clock) now() time.Time { return c.last }

// elapsed is the time between the start and the last lap.
func (c *clock) elapsed() time.Duration { return c.last.Sub(c.start) }

func (c *clock) stop(d *contract.Decision) {
	c.last = c.read()
	c.laps["total"] = millis(c.elapsed())
	d.TimingsMS = c.laps
}

// millis rounds to microseconds, so that a decision stays readable.
func millis(d time.Duration) float64 {
	return float64(d.Round(time.Microsecond)) / float64(time.Millisecond)
}

func (c *clock) duration(stage string) time.Duration { return fromMillis(c.laps[stage]) }

func fromMillis(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
