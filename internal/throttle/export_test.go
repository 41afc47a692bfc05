package throttle

// Owners returns the number of owners in memory.
func (t *Throttle[Owner]) Owners() int { return len(t.owners) }

// DelayOf is delayOf.
var DelayOf = delayOf
