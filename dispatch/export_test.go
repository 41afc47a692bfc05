package dispatch

// Active counts the agents something is kept of.
func (d *Dispatcher) Active() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.active)
}
