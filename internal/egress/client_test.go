package egress_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/egress"
	"github.com/caprouter/caprouter/internal/testkit/fakenet"
)

// newClient returns a client with a transport of the policy.
func newClient(t *testing.T, policy egress.AddressPolicy, change ...func(*http.Transport)) *http.Client {
	transport := egress.NewTransport(policy)
	for _, c := range change {
		c(transport)
	}
	t.Cleanup(transport.CloseIdleConnections)
	return egress.NewClient(transport)
}

func withRootCA(server *httptest.Server) func(*http.Transport) {
	return func(transport *http.Transport) {
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		transport.TLSClientConfig.RootCAs.AddCert(server.Certificate())
	}
}

func TestClient_DoesNotFollowRedirects(t *testing.T) {
	trap := fakenet.NewTrap(t)
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Location", r.URL.Query().Get("to"))
		w.WriteHeader(http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	here := netip.MustParseAddrPort(server.Listener.Addr().String()).Addr()
	for name, policy := range map[string]egress.AddressPolicy{"guarded": egress.NewGuard(netip.PrefixFrom(here, here.BitLen())), "unrestricted": egress.Unrestricted{}} {
		client := newClient(t, policy)
		for _, to := range []string{"http://127.0.0.1:" + trap.Port, "http://[::1]:" + trap.Port, "http://169.254.169.254/", "file:///etc/passwd", "/again", ""} {
			asked.Store(0)
			err := getURL(t.Context(), client, server.URL+"/?to="+url.QueryEscape(to))
			if err != nil || asked.Load() != 1 {
				t.Errorf("%s: to %q: got %v after %d requests, want the redirect response after one", name, to, err, asked.Load())
			}
		}
	}
	if n := trap.Caught(t); n != 0 {
		t.Errorf("%d redirects were followed, want none", n)
	}
}

// The target is 0.0.0.0, which connects to this machine, because
// http.ProxyFromEnvironment uses no proxy for other loopback addresses.
func TestTransport_IgnoresProxies(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	target := strings.Replace(server.URL, "127.0.0.1", "0.0.0.0", 1)
	req := httptest.NewRequest(http.MethodGet, target, http.NoBody)
	if proxy, err := http.ProxyFromEnvironment(req); err != nil || proxy == nil || proxy.Host != proxyTrap.Addr().String() {
		t.Fatalf("got proxy %v (%v), want the trap", proxy, err)
	}
	for name, policy := range map[string]egress.AddressPolicy{"guarded": egress.NewGuard(netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8")), "unrestricted": egress.Unrestricted{}} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // the proxy trap does not answer
		if err := getURL(ctx, newClient(t, policy), target); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
	// A connection to the proxy would be accepted before this one.
	last, err := net.Dial("tcp", proxyTrap.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = last.Close() }()
	first, err := proxyTrap.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Close() }()
	if first.RemoteAddr().String() != last.LocalAddr().String() {
		t.Error("got a connection to the proxy, want none")
	}
}

func TestTransport_LimitsHeadersAndVerifiesCertificates(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Proto", r.Proto)
		if r.URL.Path == "/large" {
			w.Header().Set("X-Large", strings.Repeat("x", 80<<10))
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	client := newClient(t, egress.Unrestricted{}, withRootCA(server))
	resp, err := client.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if got := resp.Header.Get("X-Proto"); got != "HTTP/2.0" {
		t.Errorf("got %s, want HTTP/2.0", got)
	}
	if err := getURL(t.Context(), client, server.URL+"/large"); err == nil {
		t.Error("a header of 80 KiB was read, want an error")
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](getURL(t.Context(), newClient(t, egress.Unrestricted{}), server.URL)); !ok {
		t.Error("a certificate of an unknown authority was accepted")
	}
}

func TestTransport_RejectsOldTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	if err := getURL(t.Context(), newClient(t, egress.Unrestricted{}, withRootCA(server)), server.URL); err == nil || !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("got %v, want the protocol version rejected", err)
	}
	old := func(transport *http.Transport) { transport.TLSClientConfig.MinVersion = tls.VersionTLS10 }
	if err := getURL(t.Context(), newClient(t, egress.Unrestricted{}, withRootCA(server), old), server.URL); err != nil {
		t.Errorf("a client that accepts TLS 1.0: %v", err)
	}
}

// A blocked connection must not look temporary, so that no caller retries it.
func TestBlockedError_IsNoTimeout(t *testing.T) {
	err := getURL(t.Context(), newClient(t, egress.NewGuard()), "http://127.0.0.1:1/")
	timeout, ok := errors.AsType[net.Error](err)
	if !isBlocked(err) || !ok || timeout.Timeout() {
		t.Errorf("got %v, want a *BlockedError that is no timeout", err)
	}
}
