package gateway

import (
	"sync"
	"time"

	"github.com/caprouter/caprouter/contract"
)

// eventHub passes events on to subscriptions.
type eventHub struct {
	mu            sync.Mutex
	closed        bool
	subscriptions map[*Subscription]bool
}

func newEventHub() *eventHub { return &eventHub{subscriptions: map[*Subscription]bool{}} }

// Subscription receives events until Close.
type Subscription struct {
	hub    *eventHub
	events chan contract.GatewayEvent
	missed uint64 // guarded by the mutex of the hub
}

// maxBuffer bounds the events that wait for one subscriber.
const maxBuffer = 1024

// Subscribe returns a subscription to the events from now on, of which at most buffer
// wait for the subscriber. If it is too slow, the oldest ones are dropped.
func (g *Gateway) Subscribe(buffer int) *Subscription {
	s := &Subscription{hub: g.events, events: make(chan contract.GatewayEvent, min(max(buffer, 1), maxBuffer))}
	g.events.mu.Lock()
	defer g.events.mu.Unlock()
	if g.events.closed {
		close(s.events)
	} else {
		g.events.subscriptions[s] = true
	}
	return s
}

// Events returns the events. It is closed by Close, and when the gateway is closed.
func (s *Subscription) Events() <-chan contract.GatewayEvent { return s.events }

// Missed returns how many events were dropped.
func (s *Subscription) Missed() uint64 {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	return s.missed
}

// Close ends the subscription.
func (s *Subscription) Close() {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	if s.hub.subscriptions[s] {
		delete(s.hub.subscriptions, s)
		close(s.events)
	}
}

// emit passes an event on. It does not block.
func (h *eventHub) emit(e contract.GatewayEvent) {
	e.At = time.Now().UTC()
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.subscriptions {
		for sent := false; !sent; {
			select {
			case s.events <- e:
				sent = true
			default:
				select {
				case <-s.events:
					s.missed++
				default: // the subscriber was faster
				}
			}
		}
	}
}

// Changed returns a channel that is closed at the next change of the servers, of their tools,
// prompts and resources, or of the agents that may use them.
func (g *Gateway) Changed() <-chan struct{} { return g.changes.Next() }

func (h *eventHub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for s := range h.subscriptions {
		close(s.events)
	}
	clear(h.subscriptions)
}
