// Package broadcast wakes all goroutines that wait for a change.
package broadcast

import "sync"

// Signal reports changes of a state to any number of goroutines. A reader calls Next before
// it reads the state, so that it misses no change; a writer calls Broadcast after it has
// changed the state. The zero value is ready for use, and safe for concurrent use.
type Signal struct {
	mu   sync.Mutex
	next chan struct{} // closed by the next Broadcast; nil = no goroutine waits
}

// Next returns a channel that the next Broadcast closes.
func (s *Signal) Next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next = make(chan struct{})
	}
	return s.next
}

// Broadcast wakes the goroutines that wait. It does not block.
func (s *Signal) Broadcast() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next != nil {
		close(s.next)
		s.next = nil
	}
}
