package egress

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// NewTransport returns a transport that connects to the addresses that the policy
// allows. It does not use the proxies of the environment, because they would
// read the requests and resolve names themselves, which evades the policy. TLS is
// 1.2 or later, and the times to connect and to read headers are bounded. The
// caller may change all fields except Proxy and the dialer.
func NewTransport(policy AddressPolicy) *http.Transport {
	dialer := net.Dialer{Timeout: 5 * time.Second, Control: policy.Control}
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    5 * time.Second,
		ForceAttemptHTTP2:      true, // a custom dialer disables HTTP/2 otherwise
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// NewClient returns a client without cookies and Timeout. It does not follow
// redirects, because the server would choose the address, and headers with
// credentials could be sent there.
func NewClient(transport http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
