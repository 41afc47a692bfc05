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

// newTransport returns a transport without proxies from the environment and
// without decompression. It connects only to the addresses that the policy
// allows.
func newTransport(tlsConfig *tls.Config, policy egress.AddressPolicy) *http.Transport {
	var http1 http.Protocols
	http1.SetHTTP1(true) // HTTP/2 resends requests that a GOAWAY frame excludes
	d := &dialer{net: net.Dialer{Control: policy.Control}, tls: &tls.Config{MinVersion: tls.VersionTLS12}}
	if tlsConfig != nil {
		d.tls = tlsConfig.Clone()
	}
	d.tls.NextProtos = []string{"http/1.1"}
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            d.dialPlain,
		DialTLSContext:         d.dialTLS,
		Protocols:              &http1,
		DisableCompression:     true, // readBody decompresses, with a limit
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdle, // many agents may have one host
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxResponseHeads,
	}
}

// dialer connects before the deadline that the attempt put into the context.
type dialer struct {
	net net.Dialer
	tls *tls.Config
}

func (d *dialer) dialPlain(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := withConnectDeadline(ctx)
	defer cancel()
	return d.dialCounted(ctx, network, addr)
}

func (d *dialer) dialCounted(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := d.net.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &countedConn{Conn: conn}, nil
}

func (d *dialer) dialTLS(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := withConnectDeadline(ctx)
	defer cancel()
	conn, err := d.dialCounted(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	cfg := d.tls
	if cfg.ServerName == "" {
		cfg = cfg.Clone()
		cfg.ServerName, _, _ = net.SplitHostPort(addr) // the transport has added the port
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

// countedConn counts the bytes written to a connection.
type countedConn struct {
	net.Conn
	writing atomic.Int32 // writes in progress
	written atomic.Int64 // bytes
}

// Write implements net.Conn.
func (c *countedConn) Write(b []byte) (int, error) {
	c.writing.Add(1)
	defer c.writing.Add(-1) // after the bytes are counted
	n, err := c.Conn.Write(b)
	c.written.Add(int64(n))
	return n, err
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
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: c.gotConn})
}

func (c *attemptConn) gotConn(info httptrace.GotConnInfo) {
	conn := info.Conn
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	c.conn = conn.(*countedConn) // the dialer makes every connection
	c.before = c.conn.written.Load()
}

// sentAny reports whether any byte of the request may have left. It must be
// called after the transport has closed the connection: a write that is not in
// progress by then never starts.
func (c *attemptConn) sentAny() bool {
	return c.conn != nil && (c.conn.writing.Load() > 0 || c.conn.written.Load() > c.before)
}
