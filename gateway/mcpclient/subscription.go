package mcpclient

import (
	"context"
	"io"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caprouter/caprouter/internal/resilience"
)

// Since version 2026-07-28, a server over HTTP reports changes on the response to one request, which
// the library sends once. If it ends, the session remains, without reports.

const methodListen = "subscriptions/listen"

// Delays before a subscription is opened again. After a subscription of maxSubscribeDelay they begin
// again.
const (
	minSubscribeDelay = time.Second
	maxSubscribeDelay = 2 * time.Minute
)

// subscription is the state of the subscription to changes of lists.
type subscription struct {
	closed atomic.Bool   // it has ended
	ended  chan struct{} // receives a value after it has ended
	// listen sends the request again, and returns when the response has begun. The request ends
	// with the context. Nil = the version of the protocol has none. Set while the session is opened.
	listen func(context.Context)
}

// setSubscribed records that the subscription has begun or ended. If it is not the first one, there
// may have been changes since the one before.
func (s *Session) setSubscribed(begun bool) {
	if begun {
		if s.subscription.closed.Swap(false) {
			s.reportChange()
		}
		return
	}
	s.subscription.closed.Store(true)
	select {
	case s.subscription.ended <- struct{}{}:
	default: // the signal is pending
	}
}

// subscribeAgain opens the subscription again when it has ended, until the context ends.
func (s *Session) subscribeAgain(ctx context.Context) {
	backoff := resilience.Backoff{Min: minSubscribeDelay, Max: maxSubscribeDelay}
	retire := func() {} // ends what the library keeps of the last request
	for begun := time.Now(); ; begun = time.Now() {
		select {
		case <-ctx.Done():
			retire()
			return
		case <-s.subscription.ended:
		}
		retire()
		if time.Since(begun) > maxSubscribeDelay {
			backoff.Reset()
		}
		if !resilience.Sleep(ctx, resilience.AddJitter(backoff.Next())) {
			return
		}
		attempt, cancel := context.WithCancel(ctx)
		retire = cancel
		s.subscription.listen(attempt)
	}
}

// keepListen is a sending middleware that keeps how the library sends methodListen.
func (s *Session) keepListen(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method == methodListen {
			s.subscription.listen = func(ctx context.Context) { _, _ = next(ctx, method, req) }
		}
		return next(ctx, method, req)
	}
}

// subscriptionBody is the response to methodListen. It calls end when it has been read or is closed.
type subscriptionBody struct {
	io.ReadCloser
	end func()
}

// Read implements io.Reader.
func (b *subscriptionBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.end()
	}
	return n, err
}

// Close implements io.Closer.
func (b *subscriptionBody) Close() error {
	b.end()
	return b.ReadCloser.Close()
}
