package gateway

import (
	"sync"
)

// latch signals an event that happens once. It is safe for concurrent use.
type latch struct {
	once sync.Once
	ch   chan struct{}
}

func newLatch() *latch { return &latch{ch: make(chan struct{})} }

// set signals the event. Later calls have no effect.
func (l *latch) set() { l.once.Do(func() { close(l.ch) }) }

// done returns a channel that is closed by set.
func (l *latch) done() <-chan struct{} { return l.ch }
