package fakenet

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/caprouter/caprouter/internal/run"
)

// Trap listens on 127.0.0.1 and, if available, on [::1]. It closes and counts
// every connection.
type Trap struct {
	Port string

	listeners []net.Listener
	accepted  atomic.Int64
	own       int64 // connections made by Caught
}

// NewTrap returns a trap that is closed at the end of the test.
func NewTrap(t testing.TB) *Trap {
	t.Helper()
	var config net.ListenConfig
	v4, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(v4.Addr().String())
	trap := &Trap{Port: port, listeners: []net.Listener{v4}}
	if v6, err := config.Listen(t.Context(), "tcp", net.JoinHostPort("::1", port)); err == nil {
		trap.listeners = append(trap.listeners, v6)
	}
	group := run.New(context.WithoutCancel(t.Context())) // ends when the listeners are closed
	for _, l := range trap.listeners {
		group.Go("accept", func(context.Context) error {
			for {
				conn, err := l.Accept()
				if err != nil {
					return nil //nolint:nilerr // closed below
				}
				trap.accepted.Add(1)
				_ = conn.Close()
			}
		})
	}
	t.Cleanup(func() {
		for _, l := range trap.listeners {
			_ = l.Close()
		}
		_ = group.Wait() // always nil
	})
	return trap
}

// Caught returns the number of connections so far. Connections are accepted in
// order, so it makes one itself and waits until it is closed.
func (trap *Trap) Caught(t testing.TB) int {
	t.Helper()
	var dialer net.Dialer
	for _, l := range trap.listeners {
		conn, err := dialer.DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		trap.own++
		_, _ = io.Copy(io.Discard, conn)
		_ = conn.Close()
	}
	return int(trap.accepted.Load() - trap.own)
}
