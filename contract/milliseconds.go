package contract

import "time"

// ToMilliseconds converts a duration to the form in which it is recorded. It rounds to
// microseconds, so that a record stays readable.
func ToMilliseconds(d time.Duration) float64 {
	return float64(d.Round(time.Microsecond)) / float64(time.Millisecond)
}
