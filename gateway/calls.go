package gateway

import "sync"

// callsInFlight counts the calls of a server, so that a server that was removed ends
// after its last call.
type callsInFlight struct {
	mu      sync.Mutex
	n       int
	idle    chan struct{} // closed after the last call; nil until retire
	stopped bool
	cancel  func() // ends the connection
}

// acquire counts a call, and reports false if the server was removed.
func (c *callsInFlight) acquire() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idle != nil {
		return false
	}
	c.n++
	return true
}

func (c *callsInFlight) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n--; c.n == 0 && c.idle != nil {
		close(c.idle)
	}
}

// retire rejects further calls. The channel is closed when none is in flight.
func (c *callsInFlight) retire() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = make(chan struct{})
	if c.n == 0 {
		close(c.idle)
	}
	return c.idle
}

// onStop sets what stop calls, and calls it if stop was called before.
func (c *callsInFlight) onStop(cancel func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancel = cancel
	if c.stopped {
		cancel()
	}
}

// stop ends the connection.
func (c *callsInFlight) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	if c.cancel != nil {
		c.cancel()
	}
}
