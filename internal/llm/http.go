package llm

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/caprouter/caprouter/internal/egress"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// maxResponseBytes bounds a decompressed response. A classification has a few
// hundred bytes; thoughts may be longer.
const maxResponseBytes = 1 << 20

// Protocol describes how to reach the API of a vendor.
type Protocol struct {
	URL       string // default base URL
	KeyHeader string // header of the key; as a bearer token if it is Authorization
	// Filter rewrites the JSON of a response before an SDK parses it. It may be
	// nil.
	Filter func(body []byte) ([]byte, error)
}

// NewHTTPClient returns the HTTP client and the base URL for a provider and its
// SDK. The client reaches only the host of the base URL, and adds the key. It
// returns a complete JSON object with status 200, or an *Error inside the
// *url.Error of net/http, so that an SDK with its own retries has nothing to
// retry.
func NewHTTPClient(cfg Config, wire Protocol) (*http.Client, *url.URL, error) {
	base, err := cfg.Endpoint(wire.URL)
	if err != nil {
		return nil, nil, err
	}
	version := cfg.Version
	if version == "" {
		version = "dev"
	}
	transport := egress.NewTransport(egress.Unrestricted{}) // the operator chose the host
	transport.MaxIdleConnsPerHost = 64
	return egress.NewClient(&modelTransport{
		base: base, protocol: wire, key: cfg.APIKey, missingKey: cfg.missingKey(), userAgent: "caprouter/" + version, transport: transport,
	}), base, nil
}

// modelTransport is an http.RoundTripper that adds the key, reads the whole
// response and converts failures to *Error.
type modelTransport struct {
	base       *url.URL
	protocol   Protocol
	key        Secret
	missingKey string // why the key is not set, if it is not
	userAgent  string
	transport  *http.Transport
}

// CloseIdleConnections implements the method that http.Client looks for.
func (x *modelTransport) CloseIdleConnections() { x.transport.CloseIdleConnections() }

// RoundTrip sends a copy of req, with the key only in its header, and reads the
// whole response.
func (x *modelTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != x.base.Scheme || req.URL.Host != x.base.Host {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, &Error{Reason: ReasonRejected, Unsent: true, Detail: "a request to another host than llm.base_url was not sent"}
	}
	var sent atomic.Bool
	ctx := httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }})
	resp, err := x.transport.RoundTrip(x.prepareRequest(req.WithContext(ctx)))
	if err != nil {
		return nil, x.connectionError(req.Context(), err, sent.Load())
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxResponseBytes+1))
	if resp.StatusCode != http.StatusOK {
		// The status is sufficient; a body that was read may add details.
		return nil, x.statusError(req.Context(), resp, body)
	}
	switch {
	case err != nil:
		return nil, x.connectionError(req.Context(), err, true)
	case len(body) > maxResponseBytes:
		return nil, x.badResponse("the answer is larger than 1 MiB", nil)
	}
	if body, err = x.checkBody(req.Context(), body); err != nil {
		return nil, err
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp.Header.Del("Content-Length")
	return resp, nil
}

// prepareRequest returns the request to send. It removes every key and cookie
// that an SDK adds.
func (x *modelTransport) prepareRequest(req *http.Request) *http.Request {
	out := req.Clone(req.Context())
	if q := out.URL.Query(); q.Has("key") {
		q.Del("key")
		out.URL.RawQuery = q.Encode()
	}
	for _, name := range []string{"Authorization", "X-Goog-Api-Key", "X-Goog-User-Project", "Cookie"} {
		out.Header.Del(name)
	}
	out.Header.Set("User-Agent", x.userAgent)
	if key := x.key.Reveal(); key != "" {
		if x.protocol.KeyHeader == "Authorization" {
			key = "Bearer " + key
		}
		out.Header.Set(x.protocol.KeyHeader, key)
	}
	return out
}

// checkBody requires a body that is one JSON object and not an error.
func (x *modelTransport) checkBody(ctx context.Context, body []byte) ([]byte, error) {
	var envelope struct {
		Error json.RawMessage `json:"error"`
	}
	if err := strictjson.UnmarshalAllowUnknown(body, &envelope); err != nil {
		if looksLikeHTML(body) {
			return nil, x.badResponse("the answer is a web page, not JSON: is llm.base_url right?", nil)
		}
		return nil, x.badResponse("the answer is not the JSON of a model: "+err.Error(), err)
	}
	if isPresent(envelope.Error) {
		said := "an error with status 200"
		if words := parseErrorBody(body).textWithoutEcho(ctx); words != "" {
			said += ": " + words
		}
		return nil, x.badResponse(said, nil)
	}
	if x.protocol.Filter == nil {
		return body, nil
	}
	filtered, err := x.protocol.Filter(body)
	if err != nil {
		return nil, x.badResponse("the answer is not the JSON of a model: "+err.Error(), err)
	}
	return filtered, nil
}

func looksLikeHTML(body []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(body), []byte("<"))
}

func (x *modelTransport) badResponse(detail string, cause error) *Error {
	return &Error{Reason: ReasonBadResponse, Status: http.StatusOK, Detail: x.sanitize(detail), Err: cause}
}

// connectionError converts a failed exchange to an error. It uses its own
// texts, because those of the library contain addresses. Unsent is set if no
// headers were written.
func (x *modelTransport) connectionError(ctx context.Context, err error, sent bool) error {
	var timeout net.Error
	switch {
	case ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return ctx.Err() // cancelled by the caller
	case ctx.Err() != nil, errors.As(err, &timeout) && timeout.Timeout():
		return &Error{Reason: ReasonTimeout, Unsent: !sent, Detail: "no answer in time", Err: context.DeadlineExceeded}
	}
	return &Error{Reason: ReasonUnavailable, Unsent: !sent, Detail: x.removeKey(describeFailure(err)), Err: redactedError{x.removeKey(err.Error())}}
}

func describeFailure(err error) string {
	var (
		dns         *net.DNSError
		certificate *tls.CertificateVerificationError
		op          *net.OpError
	)
	switch {
	case errors.As(err, &dns):
		return "the host of the model's server is not known"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the model's server refuses connections"
	case errors.As(err, &certificate):
		return "the certificate of the model's server is not valid"
	case errors.As(err, &op) && op.Op == "dial":
		return "the model's server could not be reached"
	}
	return "the connection to the model was lost"
}

// redactedError is the sanitized text of an error, without the error, which may
// contain secrets.
type redactedError struct{ text string }

func (s redactedError) Error() string { return s.text }

// sanitize makes a text of the server safe to show. It removes the key before
// truncating, so that no part of it remains, and again afterwards, because
// removing characters may have revealed it.
func (x *modelTransport) sanitize(text string) string {
	return x.removeKey(sanitizeText(x.removeKey(text)))
}

// removeKey removes the key in all its encodings.
func (x *modelTransport) removeKey(text string) string {
	key := x.key.Reveal()
	if key == "" {
		return text
	}
	return strings.NewReplacer(key, redacted, url.QueryEscape(key), redacted, url.PathEscape(key), redacted, fmt.Sprintf("%q", key), redacted).Replace(text)
}
