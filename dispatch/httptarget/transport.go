package httptarget

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/internal/egress"
)

const (
	// defaultConnectTimeout applies to requests that are not attempts.
	defaultConnectTimeout = 3 * time.Second
	// idleTimeout is shorter than the keep-alive of common servers (gunicorn 2 s,
	// node and uvicorn 5 s). The outcome of a request that is sent while the agent
	// closes the connection is unknown.
	idleTimeout      = 1500 * time.Millisecond
	maxIdle          = 1024
	maxResponseHeads = 32 << 10
)

// transport sends requests over connections that it keeps, and that can be opened early.
type transport struct {
	*http.Transport
	dialer *dialer
}

// newTransport returns a transport without proxies from the environment and
// without decompression. It connects only to the addresses that the policy
// allows.
func newTransport(tlsConfig *tls.Config, policy egress.AddressPolicy) *transport {
	var http1 http.Protocols
	http1.SetHTTP1(true) // HTTP/2 resends requests that a GOAWAY frame excludes
	plain := net.Dialer{Control: policy.Control}
	d := &dialer{connect: plain.DialContext, tls: &tls.Config{MinVersion: tls.VersionTLS12}, early: newEarlyConnections()}
	if tlsConfig != nil {
		d.tls = tlsConfig.Clone()
	}
	d.tls.NextProtos = []string{"http/1.1"}
	return &transport{dialer: d, Transport: &http.Transport{
		Proxy:                  nil,
		DialContext:            d.dialPlain,
		DialTLSContext:         d.dialTLS,
		Protocols:              &http1,
		DisableCompression:     true, // readBody decompresses, with a limit
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdle, // many agents may have one host
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxResponseHeads,
	}}
}

// close closes the connections that no request uses.
func (t *transport) close() {
	t.dialer.early.close()
	t.CloseIdleConnections()
}

// dialer connects before the deadline that the attempt put into the context. It
// returns a connection that was opened early, if there is one.
type dialer struct {
	connect func(ctx context.Context, network, addr string) (net.Conn, error)
	tls     *tls.Config
	early   *earlyConnections
}

func (d *dialer) dialPlain(ctx context.Context, _, addr string) (net.Conn, error) {
	return d.dial(ctx, origin{"http", addr})
}

func (d *dialer) dialTLS(ctx context.Context, _, addr string) (net.Conn, error) {
	return d.dial(ctx, origin{"https", addr})
}

func (d *dialer) dial(ctx context.Context, at origin) (net.Conn, error) {
	ctx, cancel := withConnectDeadline(ctx)
	defer cancel()
	if conn := d.early.take(ctx, at); conn != nil {
		return conn, nil
	}
	return d.open(ctx, at)
}

// open returns a new connection, after the TLS handshake if the scheme is https.
func (d *dialer) open(ctx context.Context, at origin) (net.Conn, error) {
	plain, err := d.connect(ctx, "tcp", at.addr)
	if err != nil {
		return nil, err
	}
	conn := &countedConn{Conn: plain, idle: d.early.idle, origin: at}
	if at.scheme != "https" {
		return conn, nil
	}
	cfg := d.tls
	if cfg.ServerName == "" {
		cfg = cfg.Clone()
		cfg.ServerName, _, _ = net.SplitHostPort(at.addr)
	}
	secured := tls.Client(conn, cfg)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secured, nil
}

// connectByKey is the context key of the time by which a connection must be made.
// The transport dials with a context that has the values of the request's context
// but not its deadline, because another request may get the connection.
type connectByKey struct{}

func withConnectDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Value(connectByKey{}).(time.Time)
	if !ok {
		deadline = time.Now().Add(defaultConnectTimeout)
	}
	return context.WithDeadline(ctx, deadline)
}

// countedConn counts the bytes written to a connection, and is counted while it is idle.
type countedConn struct {
	net.Conn
	writing atomic.Int32 // writes in progress
	written atomic.Int64 // bytes

	idle   *idleCount
	origin origin
	state  connState // guarded by idle
}

// Write implements net.Conn.
func (c *countedConn) Write(b []byte) (int, error) {
	c.writing.Add(1)
	defer c.writing.Add(-1) // after the bytes are counted
	n, err := c.Conn.Write(b)
	c.written.Add(int64(n))
	return n, err
}

// Close implements net.Conn.
func (c *countedConn) Close() error {
	c.idle.setState(c, connClosed)
	return c.Conn.Close()
}

// attemptConn is the connection that one attempt uses.
type attemptConn struct {
	conn   *countedConn // nil = not connected
	before int64        // bytes written by earlier requests and the TLS handshake
}

// trace returns the context of a request whose connection is recorded in c and
// made before connectBy.
func (c *attemptConn) trace(ctx context.Context, connectBy time.Time) context.Context {
	ctx = context.WithValue(ctx, connectByKey{}, connectBy)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: c.gotConn, PutIdleConn: c.putIdleConn})
}

func (c *attemptConn) gotConn(info httptrace.GotConnInfo) {
	conn := info.Conn
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	c.conn = conn.(*countedConn) // the dialer makes every connection
	c.before = c.conn.written.Load()
	c.conn.idle.setState(c.conn, connInUse)
}

func (c *attemptConn) putIdleConn(err error) {
	if err == nil {
		c.conn.idle.setState(c.conn, connIdle)
	}
}

// sentAny reports whether any byte of the request may have left. It must be
// called after the transport has closed the connection: a write that is not in
// progress by then never starts.
func (c *attemptConn) sentAny() bool {
	return c.conn != nil && (c.conn.writing.Load() > 0 || c.conn.written.Load() > c.before)
}
