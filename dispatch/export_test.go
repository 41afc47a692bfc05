package dispatch

// ActiveAgents counts the agents that have a state.
func (d *Dispatcher) ActiveAgents() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.active)
}
