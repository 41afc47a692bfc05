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

// maxBody bounds an answer, decompressed. A classification has a few hundred
// bytes; the rest is room for thoughts.
const maxBody = 1 << 20

// Protocol is how one maker's API is spoken to.
type Protocol struct {
	URL       string // where it is, when no base URL is configured
	KeyHeader string // holds the key; as a bearer token if it is Authorization
	// Filter changes the JSON of an answer before an SDK sees it; nil = not.
	Filter func(body []byte) ([]byte, error)
}

// NewHTTPClient makes the client through which a provider, and any SDK inside
// it, reaches its server: the base URL it returns, and no other host. The client
// adds the key. It answers with a whole JSON object and status 200, or with an
// *Error within the *url.Error of net/http, so that an SDK that retries by itself
// finds nothing to retry.
func NewHTTPClient(cfg Config, wire Protocol) (*http.Client, *url.URL, error) {
	base, err := cfg.Endpoint(wire.URL)
	if err != nil {
		return nil, nil, err
	}
	version := cfg.Version
	if version == "" {
		version = "dev"
	}
	transport := egress.NewTransport(nil) // the operator chose the host
	transport.MaxIdleConnsPerHost = 64
	return egress.NewClient(&exchange{
		base: base, wire: wire, key: cfg.APIKey, agent: "caprouter/" + version, net: transport,
	}), base, nil
}

// exchange is one request and its whole answer.
type exchange struct {
	base  *url.URL
	wire  Protocol
	key   Secret
	agent string
	net   *http.Transport
}

// CloseIdleConnections is what http.Client.CloseIdleConnections looks for.
func (x *exchange) CloseIdleConnections() { x.net.CloseIdleConnections() }

// RoundTrip sends a copy of req with the key in its header and nowhere else,
// and reads the answer to its end.
func (x *exchange) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != x.base.Scheme || req.URL.Host != x.base.Host {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, &Error{Reason: ReasonRejected, Unsent: true, Detail: "a request to another host than llm.base_url was not sent"}
	}
	var sent atomic.Bool
	ctx := httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }})
	resp, err := x.net.RoundTrip(x.prepare(req.WithContext(ctx)))
	if err != nil {
		return nil, x.lost(req.Context(), err, sent.Load())
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if resp.StatusCode != http.StatusOK {
		// The status says it all; the body, if it came, says it in words.
		return nil, x.refused(req.Context(), resp, body)
	}
	switch {
	case err != nil:
		return nil, x.lost(req.Context(), err, true)
	case len(body) > maxBody:
		return nil, x.bad("the answer is larger than 1 MiB", nil)
	}
	if body, err = x.accept(req.Context(), body); err != nil {
		return nil, err
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp.Header.Del("Content-Length")
	return resp, nil
}

// prepare makes the request as it is sent. What an SDK was given for a key is
// taken out wherever SDKs put one.
func (x *exchange) prepare(req *http.Request) *http.Request {
	out := req.Clone(req.Context())
	if q := out.URL.Query(); q.Has("key") {
		q.Del("key")
		out.URL.RawQuery = q.Encode()
	}
	for _, name := range []string{"Authorization", "X-Goog-Api-Key", "X-Goog-User-Project", "Cookie"} {
		out.Header.Del(name)
	}
	out.Header.Set("User-Agent", x.agent)
	if key := x.key.Reveal(); key != "" {
		if x.wire.KeyHeader == "Authorization" {
			key = "Bearer " + key
		}
		out.Header.Set(x.wire.KeyHeader, key)
	}
	return out
}

// accept takes the body of a 200 that is one JSON object and no error.
func (x *exchange) accept(ctx context.Context, body []byte) ([]byte, error) {
	var envelope struct {
		Error json.RawMessage `json:"error"`
	}
	if err := strictjson.UnmarshalAllowUnknown(body, &envelope); err != nil {
		if looksLikeHTML(body) {
			return nil, x.bad("the answer is a web page, not JSON: is llm.base_url right?", nil)
		}
		return nil, x.bad("the answer is not the JSON of a model: "+err.Error(), err)
	}
	if isThere(envelope.Error) {
		said := "an error with status 200"
		if words := explain(body).unlessQuoting(ctx); words != "" {
			said += ": " + words
		}
		return nil, x.bad(said, nil)
	}
	if x.wire.Filter == nil {
		return body, nil
	}
	filtered, err := x.wire.Filter(body)
	if err != nil {
		return nil, x.bad("the answer is not the JSON of a model: "+err.Error(), err)
	}
	return filtered, nil
}

func looksLikeHTML(body []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(body), []byte("<"))
}

func (x *exchange) bad(detail string, cause error) *Error {
	return &Error{Reason: ReasonBadResponse, Status: http.StatusOK, Detail: x.show(detail), Err: cause}
}

// lost makes an error of an exchange that did not come to its end. Its texts are
// ours: the library's hold addresses, which are nobody's business. What was not
// sent reached no model, whoever was connected to.
func (x *exchange) lost(ctx context.Context, err error, sent bool) error {
	var timeout net.Error
	switch {
	case ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return ctx.Err() // the caller left
	case ctx.Err() != nil, errors.As(err, &timeout) && timeout.Timeout():
		return &Error{Reason: ReasonTimeout, Unsent: !sent, Detail: "no answer in time", Err: context.DeadlineExceeded}
	}
	return &Error{Reason: ReasonUnavailable, Unsent: !sent, Detail: x.scrub(whyLost(err)), Err: scrubbed{x.scrub(err.Error())}}
}

func whyLost(err error) string {
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

// scrubbed is the text of an error without the error: what it was made from may
// hold anything.
type scrubbed struct{ text string }

func (s scrubbed) Error() string { return s.text }

// show makes a text of the server's fit to be shown. The key goes first, or half
// of it might survive the cut, and once more at the end, when what was hidden
// inside it is gone.
func (x *exchange) show(text string) string { return x.scrub(clean(x.scrub(text))) }

// scrub takes the key out of a text, however it is spelled there.
func (x *exchange) scrub(text string) string {
	key := x.key.Reveal()
	if key == "" {
		return text
	}
	return strings.NewReplacer(key, redacted, url.QueryEscape(key), redacted, url.PathEscape(key), redacted, fmt.Sprintf("%q", key), redacted).Replace(text)
}
