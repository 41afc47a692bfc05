package egress

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// NewTransport returns what HTTP clients connect with: no proxy of the environment,
// which would see what is sent and look up names itself; TLS 1.2 or later; a
// bound on time to connect and on headers. guard is nil where the operator chose
// the address. The caller may change all but Proxy and the dialer.
func NewTransport(guard *Guard) *http.Transport {
	dialer := net.Dialer{Timeout: 5 * time.Second, Control: guard.Control}
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    5 * time.Second,
		ForceAttemptHTTP2:      true, // a dialer of one's own turns it off
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// NewClient returns a client that does not follow redirects: where they lead, only
// who answered has decided, and a header with a credential may go along. It has
// no cookies and no Timeout.
func NewClient(transport http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
