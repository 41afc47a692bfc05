package dispatch

// ActiveAgents counts the agents something is kept of.
func (d *Dispatcher) ActiveAgents() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.active)
}
