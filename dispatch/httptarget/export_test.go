package httptarget

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/dispatch"
)

// MintToken issues or reuses the token for the call.
func MintToken(t *Target, c dispatch.Call) {
	_, _ = t.tokens.agentToken(c, time.Now().Add(time.Minute))
}

// CachedTokens counts the cached tokens.
func CachedTokens(t *Target) int { return len(t.tokens.young) + len(t.tokens.old) }

// DialWith makes the target connect with a function instead of the operating system.
func DialWith(t *Target, dial func(ctx context.Context, network, addr string) (net.Conn, error)) {
	t.trusted.dialer.connect = dial
}

// CountWrites counts the writes to connections that the target opens from now on.
func CountWrites(t *Target) *atomic.Int64 {
	var n atomic.Int64
	dial := t.trusted.dialer.connect
	t.trusted.dialer.connect = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return writeCounter{conn, &n}, nil
	}
	return &n
}

type writeCounter struct {
	net.Conn
	n *atomic.Int64
}

func (w writeCounter) Write(b []byte) (int, error) {
	w.n.Add(1)
	return w.Conn.Write(b)
}
