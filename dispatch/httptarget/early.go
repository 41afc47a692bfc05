package httptarget

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/caprouter/caprouter/internal/run"
)

const (
	// earlyLife is how long a connection that was opened early waits for its task. A task
	// waits for its record, which takes milliseconds.
	earlyLife = time.Second
	maxEarly  = 64 // for one origin
)

// origin is what a connection leads to.
type origin struct {
	scheme string
	addr   string // host:port
}

// originOf returns the origin of a URL as net/http passes it to its dialer.
func originOf(u *url.URL) origin {
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "https":
		port = "443"
	default:
		port = "80"
	}
	return origin{u.Scheme, net.JoinHostPort(u.Hostname(), port)}
}

// earlyConnections are connections that were opened before net/http asked for one, while
// their tasks may not be sent yet. net/http cannot open a connection without a request.
type earlyConnections struct {
	group *run.Group
	idle  *idleCount

	mu     sync.Mutex
	queued map[origin][]*earlyConnection // oldest first
}

// earlyConnection is a connection that is being opened, or waits for a request.
type earlyConnection struct {
	result chan net.Conn // without a buffer; closed if there is no connection

	// earlyConnections.mu guards these.
	conn  net.Conn        // nil = being opened
	taken <-chan struct{} // ends with the request that takes the connection; nil = none does
}

func newEarlyConnections() *earlyConnections {
	return &earlyConnections{
		group:  run.New(context.Background()), // outlives the request of the caller
		idle:   &idleCount{connections: map[origin]int{}},
		queued: map[origin][]*earlyConnection{},
	}
}

// connectEarly begins to open a connection to the origin, unless one is idle. It must be made
// by the deadline. It is approximate: a request may find that another one has taken the
// connection, and then waits for one of its own.
func (d *dialer) connectEarly(at origin, deadline time.Time) {
	if d.early.idle.count(at) > 0 {
		return
	}
	c := d.early.add(at)
	if c == nil {
		return
	}
	d.early.group.Go("connect to an agent", func(ctx context.Context) error {
		defer close(c.result)
		defer d.early.remove(at, c)
		connecting, cancel := context.WithDeadline(ctx, deadline)
		conn, err := d.open(connecting, at)
		cancel()
		if err != nil {
			return nil // the attempt to send the task finds the same
		}
		if d.early.wait(ctx, c, conn) {
			select {
			case c.result <- conn:
				return nil
			case <-c.taken:
			}
		}
		_ = conn.Close()
		return nil
	})
}

// add returns a new connection that waits for a request, nil if many do.
func (e *earlyConnections) add(at origin) *earlyConnection {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.queued[at]) >= maxEarly {
		return nil
	}
	c := &earlyConnection{result: make(chan net.Conn)}
	e.queued[at] = append(e.queued[at], c)
	return c
}

// wait waits until a request takes the connection, and reports whether it can then be used. It
// reads meanwhile: a request that is sent over a connection that the agent has closed has an
// unknown outcome. An agent that sends something before a request closes the connection next.
func (e *earlyConnections) wait(ctx context.Context, c *earlyConnection, conn net.Conn) bool {
	e.mu.Lock()
	c.conn = conn
	taken := c.taken != nil
	if ctx.Err() != nil || !taken && conn.SetReadDeadline(time.Now().Add(earlyLife)) != nil {
		e.mu.Unlock()
		return false
	}
	e.mu.Unlock()
	if taken {
		return true
	}
	_, err := conn.Read(make([]byte, 1))
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return c.taken != nil && conn.SetReadDeadline(time.Time{}) == nil
}

// stopWaiting makes wait return. The caller holds mu.
func (c *earlyConnection) stopWaiting() {
	if c.conn != nil {
		_ = c.conn.SetReadDeadline(time.Unix(1, 0)) // fails if the connection is closed
	}
}

// remove removes a connection that waits for a request; none takes it any more.
func (e *earlyConnections) remove(at origin, c *earlyConnection) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if i := slices.Index(e.queued[at], c); i >= 0 {
		e.dropLocked(at, i)
	}
}

func (e *earlyConnections) dropLocked(at origin, i int) {
	if rest := slices.Delete(e.queued[at], i, i+1); len(rest) > 0 {
		e.queued[at] = rest
	} else {
		delete(e.queued, at)
	}
}

// take returns a connection to the origin that was opened early, nil if there is none. It
// waits until the connection is open. ctx must end.
func (e *earlyConnections) take(ctx context.Context, at origin) net.Conn {
	e.mu.Lock()
	queue := e.queued[at]
	if len(queue) == 0 {
		e.mu.Unlock()
		return nil
	}
	i := max(0, slices.IndexFunc(queue, func(c *earlyConnection) bool { return c.conn != nil }))
	c := queue[i]
	e.dropLocked(at, i)
	c.taken = ctx.Done()
	c.stopWaiting()
	e.mu.Unlock()
	select {
	case conn := <-c.result:
		return conn
	case <-ctx.Done():
		return nil
	}
}

// close closes the connections that wait for a request.
func (e *earlyConnections) close() {
	e.group.Stop(nil)
	e.mu.Lock()
	for _, queue := range e.queued {
		for _, c := range queue {
			c.stopWaiting()
		}
	}
	e.mu.Unlock()
	_ = e.group.Wait() // the functions return nil
}

// connState is what a connection does.
type connState uint8

const (
	connNew connState = iota // no request has had it
	connInUse
	connIdle
	connClosed
)

// idleCount counts the idle connections to each origin. It is safe for concurrent use.
type idleCount struct {
	mu          sync.Mutex
	connections map[origin]int
}

// setState records the state of a connection. A closed one remains closed.
func (i *idleCount) setState(c *countedConn, state connState) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case c.state == state || c.state == connClosed:
		return
	case state == connIdle:
		i.connections[c.origin]++
	case c.state == connIdle:
		if i.connections[c.origin]--; i.connections[c.origin] == 0 {
			delete(i.connections, c.origin)
		}
	}
	c.state = state
}

func (i *idleCount) count(at origin) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.connections[at]
}
