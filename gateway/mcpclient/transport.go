package mcpclient

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caprouter/caprouter/gateway/mcpfile"
	"github.com/caprouter/caprouter/gateway/subprocess"
	"github.com/caprouter/caprouter/internal/egress"
	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/telemetry"
)

// maxBody bounds a reply over HTTP that is not a stream, in bytes.
const maxBody = subprocess.MaxLine

// httpTransport adds the headers of a server and bounds what it replies.
type httpTransport struct {
	base    *http.Transport
	origin  *url.URL
	headers http.Header
	observe func(stream io.ReadCloser) io.ReadCloser // wraps the event streams
	// subscribed is called when a subscription begins, and when it ends or is rejected.
	subscribed func(bool)
	// reopened is called when the stream of changes was opened again. Nil = the transport has
	// none, or ends with it.
	reopened func()
	// rejected reports that the latest reply was 401.
	rejected atomic.Bool
}

// newHTTPTransport returns the transport of a server, which may have the addresses. Nil
// permits all.
func newHTTPTransport(server *mcpfile.Expanded, addresses egress.AddressPolicy) (*httpTransport, error) {
	if addresses == nil {
		addresses = egress.Unrestricted{}
	}
	origin, err := url.Parse(server.URL)
	if err != nil || origin.Host == "" || origin.Scheme != "http" && origin.Scheme != "https" {
		return nil, errors.New("its url is not an absolute http or https URL")
	}
	t := &httpTransport{
		base: egress.NewTransport(addresses), origin: origin, headers: http.Header{},
		observe: func(stream io.ReadCloser) io.ReadCloser { return stream }, subscribed: func(bool) {},
	}
	t.base.ResponseHeaderTimeout = 0 // a server may answer when the tool has ended; calls have a deadline
	for name, value := range server.Headers {
		t.headers.Set(name, value)
	}
	if server.Auth != nil {
		switch server.Auth.Type {
		case "bearer":
			t.headers.Set("Authorization", "Bearer "+server.Credential)
		case "header":
			t.headers.Set(server.Auth.Header, server.Credential)
		}
	}
	return t, nil
}

// NewHTTPClient returns a client for requests to the server, with its headers and its
// credential. The caller closes its idle connections.
func NewHTTPClient(server *mcpfile.Expanded, cfg Config) (*http.Client, error) {
	t, err := newHTTPTransport(server, cfg.Addresses)
	if err != nil {
		return nil, err
	}
	return egress.NewClient(t), nil
}

// CloseIdleConnections closes the connections that are not in use.
func (t *httpTransport) CloseIdleConnections() { t.base.CloseIdleConnections() }

// RoundTrip implements http.RoundTripper.
func (t *httpTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	// A server may name another address for its messages (SSE). The credentials are
	// for this one.
	if req.URL.Scheme != t.origin.Scheme || req.URL.Host != t.origin.Host {
		return nil, fmt.Errorf("the server refers to another origin, %s://%s", req.URL.Scheme, req.URL.Host)
	}
	req = req.Clone(req.Context())
	maps.Copy(req.Header, t.headers)
	telemetry.InjectHeaders(req.Context(), req.Header)
	d := deliveryOf(req.Context())
	listens := req.Header.Get("Mcp-Method") == methodListen
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		if listens {
			t.subscribed(false)
		}
		return nil, err
	}
	if d != nil {
		d.status.Store(int32(resp.StatusCode))
	}
	t.rejected.Store(resp.StatusCode == http.StatusUnauthorized)
	mediaType, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	isStream := mediaType == "text/event-stream"
	if listens {
		t.subscribed(isStream)
		resp.Body = &subscriptionBody{ReadCloser: resp.Body, end: sync.OnceFunc(func() { t.subscribed(false) })}
	}
	if isStream {
		resp.Body = t.observe(resp.Body)
	} else {
		resp.Body = &limitedBody{ReadCloser: resp.Body, left: maxBody}
	}
	if isStream || mediaType == "application/json" {
		rewrite := repairMessage
		if isLenient(req.Context()) {
			rewrite = func(message []byte) []byte { return replaceInMessage(repairMessage(message)) }
		}
		body := newRewritingBody(resp.Body, isStream, rewrite)
		if isStream && t.reopened != nil && req.Method == http.MethodGet && req.Header.Get("Last-Event-ID") == "" {
			body.reopen = t.reopenChanges(req)
		}
		resp.Body, resp.ContentLength = body, -1
		resp.Header.Del("Content-Length")
	}
	return resp, nil
}

// steadyStream is how long a stream of changes must last so that the delays begin again.
const steadyStream = 30 * time.Second

// reopenChanges returns a function that sends the request for the stream of changes again, in a
// session of a version before 2026-07-28. A server may end the stream at any time, and a proxy ends
// one without events after a minute, but the library ends the session after maxStreamRetries. The
// function returns nil if the server does not answer with a stream: the library then finds out why.
func (t *httpTransport) reopenChanges(req *http.Request) func() io.ReadCloser {
	backoff := resilience.Backoff{Min: minSubscribeDelay, Max: maxSubscribeDelay}
	begun := time.Now()
	return func() io.ReadCloser {
		if time.Since(begun) > steadyStream {
			backoff.Reset()
		}
		if !resilience.Sleep(req.Context(), resilience.AddJitter(backoff.Next())) {
			return nil
		}
		resp, err := t.base.RoundTrip(req.Clone(req.Context()))
		if err != nil {
			return nil
		}
		mediaType, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
		if resp.StatusCode != http.StatusOK || mediaType != "text/event-stream" {
			_ = resp.Body.Close()
			return nil
		}
		begun = time.Now()
		t.reopened() // there may have been changes in the meantime
		return t.observe(resp.Body)
	}
}

// limitedBody returns an error after a number of bytes.
type limitedBody struct {
	io.ReadCloser
	left int
}

// Read implements io.Reader.
func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the server sent a reply of more than %d bytes", maxBody)
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// transportOf returns the transport of the library for one of HTTP and SSE.
func transportOf(kind, endpoint string, client *http.Client) mcp.Transport {
	if kind == mcpfile.SSE {
		return &mcp.SSEClientTransport{Endpoint: endpoint, HTTPClient: client}
	}
	return &mcp.StreamableClientTransport{Endpoint: endpoint, HTTPClient: client, MaxRetries: maxStreamRetries}
}

// maxStreamRetries is how often the library opens a broken stream again. The session
// ends after that.
const maxStreamRetries = 2
