package testkit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
)

// RefusingAddress is an address without a listener. A port that was free before can belong to
// another process.
const RefusingAddress = "127.0.0.1:1"

// FreePort returns a port of 127.0.0.1 without a listener, for a test that must know the port
// beforehand or listens on it twice. Systems choose ports for other listeners and for connections
// from 32768 on (Linux) or higher, so the port stays free until the test listens on it.
func FreePort(t interface{ Fatalf(string, ...any) }) int {
	const first, end = 20_000, 32_768
	for attempt := 1; ; attempt++ {
		port := first + rand.IntN(end-first) //nolint:gosec // no secret
		l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", fmt.Sprint("127.0.0.1:", port))
		if err == nil {
			_ = l.Close()
			return port
		}
		if attempt == 1000 {
			t.Fatalf("got no free port from %d to %d: %v", first, end-1, err)
		}
	}
}
