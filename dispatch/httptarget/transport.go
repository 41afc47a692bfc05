package httptarget

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/egress"
)

const (
	// maxConnect bounds name lookup, connecting and the TLS handshake together.
	maxConnect = 3 * time.Second
	// idleConnection is shorter than the shortest keep-alive common servers have
	// (gunicorn 2 s, node and uvicorn 5 s). A request sent just as the agent
	// hangs up may or may not have been read: its outcome is lost.
	idleConnection   = 1500 * time.Millisecond
	maxIdle          = 1024
	maxResponseHeads = 32 << 10
)

// newTransport returns a transport that does what it is told and nothing else:
// no proxies from the environment, no redirects, no cookies (those are a
// Client's), no decoding. It connects where the guard lets it; nil = anywhere.
func newTransport(tlsConfig *tls.Config, guard *egress.Guard) *http.Transport {
	var http1 http.Protocols
	http1.SetHTTP1(true) // HTTP/2 resends requests that a GOAWAY says were not read
	d := &dialer{net: net.Dialer{Control: guard.Control}, tls: &tls.Config{MinVersion: tls.VersionTLS12}}
	if tlsConfig != nil {
		d.tls = tlsConfig.Clone()
	}
	d.tls.NextProtos = []string{"http/1.1"}
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            d.dial,
		DialTLSContext:         d.dialTLS,
		Protocols:              &http1,
		DisableCompression:     true, // of replies by the transport; see read
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    contract.DefaultMaxInFlight,
		IdleConnTimeout:        idleConnection,
		MaxResponseHeaderBytes: maxResponseHeads,
	}
}

// dialer makes connections by the time the try has set for it.
type dialer struct {
	net net.Dialer
	tls *tls.Config
}

func (d *dialer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := connectBy(ctx)
	defer cancel()
	return d.connect(ctx, network, addr)
}

func (d *dialer) connect(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := d.net.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &countedConn{Conn: conn}, nil
}

func (d *dialer) dialTLS(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := connectBy(ctx)
	defer cancel()
	conn, err := d.connect(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	cfg := d.tls
	if cfg.ServerName == "" {
		cfg = cfg.Clone()
		cfg.ServerName, _, _ = net.SplitHostPort(addr) // the transport has put the port there
	}
	secured := tls.Client(conn, cfg)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secured, nil
}

// connectKey is where watch puts the time to be connected by. The transport
// dials with a context of its own, which has the values of the request's but
// not its end: another request may get the connection.
type connectKey struct{}

func connectBy(ctx context.Context) (context.Context, context.CancelFunc) {
	by, ok := ctx.Value(connectKey{}).(time.Time)
	if !ok {
		by = time.Now().Add(maxConnect)
	}
	return context.WithDeadline(ctx, by)
}

// countedConn knows what was written to it.
type countedConn struct {
	net.Conn
	writing atomic.Int32 // writes under way
	written atomic.Int64 // bytes
}

func (c *countedConn) Write(b []byte) (int, error) {
	c.writing.Add(1)
	defer c.writing.Add(-1) // after the bytes are counted
	n, err := c.Conn.Write(b)
	c.written.Add(int64(n))
	return n, err
}

// line is the connection of one try.
type line struct {
	conn   *countedConn // nil = not connected
	before int64        // bytes written for others, and for the TLS handshake
}

// watch returns a context with which a request tells l about its connection,
// and is connected in time.
func (l *line) watch(ctx context.Context, connected time.Time) context.Context {
	ctx = context.WithValue(ctx, connectKey{}, connected)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: l.got})
}

func (l *line) got(info httptrace.GotConnInfo) {
	conn := info.Conn
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	l.conn = conn.(*countedConn) // every connection is the dialer's
	l.before = l.conn.written.Load()
}

// sent reports whether any byte of the request may have left. It is asked when
// the transport has given up on the connection and closed it: what is not being
// written by then never will be.
func (l *line) sent() bool {
	return l.conn != nil && (l.conn.writing.Load() > 0 || l.conn.written.Load() > l.before)
}
