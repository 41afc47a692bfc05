package httpserver

import (
	"net/http"
	"sync"
	"time"
)

// uploadGrace is the time for bodies that are incomplete when the shutdown begins.
const uploadGrace = 2 * time.Second

// uploads are the requests whose body has not arrived completely. They hold no permit,
// and without a limit of their own they would delay a shutdown by up to readTimeout.
type uploads struct {
	mu        sync.Mutex
	receiving map[*Context]struct{}
	ending    bool
}

// add registers a request until end.
func (u *uploads) add(c *Context) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.receiving == nil {
		u.receiving = map[*Context]struct{}{}
	}
	u.receiving[c] = struct{}{}
	if u.ending {
		c.limitRead(uploadGrace)
	}
}

// end removes a request whose body was received, or rejected.
func (u *uploads) end(c *Context, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.receiving, c)
	if u.ending && err == nil { // the deadline would cancel the request while it is handled
		_ = http.NewResponseController(c.writer).SetReadDeadline(time.Time{})
	}
}

// endSoon ends all uploads after uploadGrace.
func (u *uploads) endSoon() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ending = true
	for c := range u.receiving {
		c.limitRead(uploadGrace)
	}
}

// limitRead sets the deadline for the rest of the body. Writers without a connection,
// in tests, have none to set.
func (c *Context) limitRead(d time.Duration) {
	_ = http.NewResponseController(c.writer).SetReadDeadline(time.Now().Add(d))
}
