// Package restclient calls a running router over its REST interface, for the commands: it
// reads lists page by page, follows events, and adds advice about flags to the errors.
package restclient

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/egress"
	"github.com/caprouter/caprouter/internal/rest"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// DefaultURL is the address of `caprouter serve` without a configuration.
const DefaultURL = "http://127.0.0.1:8080"

const maxAnswerBytes = 64 << 20

// Client calls one router. It is not changed after New, and safe for concurrent use.
type Client struct {
	base  *url.URL
	token string
	http  *http.Client
}

// New returns a client of the router at base, with the token of the environment variable
// TokenEnv, if it is not "". It rejects a URL with a password, because URLs are logged, and a
// token that would be sent in clear text.
func New(base, tokenEnv string) (*Client, error) {
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return nil, cmdline.NewUsageError(fmt.Errorf("--url %q is not an absolute http or https URL, e.g. %s", base, DefaultURL))
	case u.User != nil:
		return nil, cmdline.NewUsageError(errors.New("--url must not hold a user name or password: pass a token with --token-env"))
	case u.RawQuery != "" || u.Fragment != "":
		return nil, cmdline.NewUsageError(fmt.Errorf("--url %q is the address of a router, without ? and #, e.g. %s", base, DefaultURL))
	}
	// A router never redirects.
	c := &Client{base: u, http: egress.NewClient(egress.NewTransport(egress.Unrestricted{}))}
	c.http.Timeout = contract.MaxTimeoutMS*time.Millisecond + 10*time.Second
	if tokenEnv == "" {
		return c, nil
	}
	if c.token = os.Getenv(tokenEnv); c.token == "" {
		return nil, missingTokenError(tokenEnv)
	}
	if u.Scheme == "http" && !egress.IsLoopback(u.Hostname()) {
		return nil, fmt.Errorf("a token would go to %s in clear text: use an https --url", u.Host)
	}
	return c, nil
}

// BaseURL returns the URL of the router.
func (c *Client) BaseURL() string { return c.base.String() }

// ResourceURL returns the URL of a resource, whose path has the elements.
func (c *Client) ResourceURL(path ...string) *url.URL { return c.base.JoinPath(path...) }

// WithToken returns a client of the same router that sends the token, "" for none.
func (c *Client) WithToken(token string) *Client {
	other := *c
	other.token = token
	return &other
}

// CloseIdleConnections closes connections that no request uses.
func (c *Client) CloseIdleConnections() { c.http.CloseIdleConnections() }

// HTTPClient returns a client for another protocol of the router. It has the limits of c,
// and its requests go through transport.
func (c *Client) HTTPClient(transport http.RoundTripper) *http.Client {
	other := *c.http
	other.Transport = transport
	return &other
}

// RoundTrip sends a request with the token of the client. An error explains why there is no
// response.
func (c *Client) RoundTrip(req *http.Request) (*http.Response, error) {
	if c.token != "" {
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Transport.RoundTrip(req)
	if err != nil {
		return nil, c.ConnectionError(err)
	}
	return resp, nil
}

// conventionalName matches names that cannot be taken for a token.
var conventionalName = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,39}$`)

// missingTokenError returns the error for a variable without a value. It repeats the
// argument only if it is certainly not the token itself.
func missingTokenError(tokenEnv string) error {
	if conventionalName.MatchString(tokenEnv) {
		return fmt.Errorf("environment variable %s is not set: put the token there", tokenEnv)
	}
	return cmdline.NewUsageError(errors.New("--token-env takes the name of an environment variable, and there is none of this name; " +
		"if it was the token itself: export TOKEN=…, then --token-env TOKEN"))
}

// ProblemError returns a problem as an error, with advice about flags of this command.
func (c *Client) ProblemError(p *rest.UnsupportedProblem) error {
	e := contract.Error{Code: p.Code, Message: p.Detail, Details: p.Errors}
	if e.Message == "" {
		e.Message = p.Title
	}
	switch p.Code {
	case contract.CodeUnauthenticated:
		if c.token == "" {
			e.Message += "; name the variable that holds a token with --token-env (caprouter token makes one)"
		} else {
			e.Message += "; put another token into the variable of --token-env (caprouter token makes one)"
		}
	case contract.CodeNotFound:
		if path := strings.Trim(c.base.Path, "/"); path != "" && strings.HasPrefix(p.Detail, "there is nothing at this path") {
			e.Message += "; --url is the address of the router alone: leave out /" + path + " unless a proxy adds it"
		}
	case contract.CodeForbidden:
		if strings.Contains(p.Detail, "scope") { // otherwise another token would not help
			e.Message += "; caprouter token --scope makes a token that has it"
		}
	}
	return &e
}

// RouteRequest posts the request. A refusal by fallback policy B is a response, not an
// error.
func (c *Client) RouteRequest(ctx context.Context, req *contract.Request) (*contract.Response, error) {
	var resp contract.Response
	p, err := c.sendRequest(ctx, http.MethodPost, c.base.JoinPath("/api/v1/route"), req, &resp)
	switch {
	case err != nil:
		return nil, err
	case p == nil:
		return &resp, nil
	case p.Code == contract.CodeNoEligibleAgent && p.Decision != nil:
		return &contract.Response{
			RequestID: p.RequestID, Status: p.Outcome, Decision: p.Decision, Data: p.Data,
			Tasks: []contract.TaskReport{}, Omitted: []contract.Omitted{},
		}, nil
	}
	return nil, c.ProblemError(p)
}

// Reads of a list with many pages reach the rate limit of reads: they continue after
// limitPause, at most maxLimitPauses times for one page.
const (
	limitPause     = time.Second
	maxLimitPauses = 60
)

// GetResource decodes the resource at path into v. query may be nil.
func (c *Client) GetResource(ctx context.Context, path string, query url.Values, v any) error {
	at := c.base.JoinPath(path)
	at.RawQuery = query.Encode()
	for try := 0; ; try++ {
		p, err := c.sendRequest(ctx, http.MethodGet, at, nil, v)
		switch {
		case err != nil || p == nil:
			return err
		case p.Code != contract.CodeRateLimited || try == maxLimitPauses:
			return c.ProblemError(p)
		}
		select {
		case <-time.After(limitPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Post sends body (nil for none) and decodes a 2xx response into v. Another response is an
// error.
func (c *Client) Post(ctx context.Context, at *url.URL, body, v any) error {
	p, err := c.sendRequest(ctx, http.MethodPost, at, body, v)
	if err == nil && p != nil {
		err = c.ProblemError(p)
	}
	return err
}

// PostContent is post for a body of the media type.
func (c *Client) PostContent(ctx context.Context, at *url.URL, mediaType string, data []byte, v any) error {
	p, err := c.sendContent(ctx, http.MethodPost, at, requestBody{mediaType: mediaType, data: data}, v)
	if err == nil && p != nil {
		err = c.ProblemError(p)
	}
	return err
}

// sendRequest sends body (nil for none) and decodes a 2xx response into v. It returns
// other responses as a problem.
func (c *Client) sendRequest(ctx context.Context, method string, at *url.URL, body, v any) (*rest.UnsupportedProblem, error) {
	if body == nil {
		return c.sendContent(ctx, method, at, requestBody{}, v)
	}
	content, err := newJSONBody(body)
	if err != nil {
		return nil, err
	}
	return c.sendContent(ctx, method, at, content, v)
}

// sendContent is sendRequest for a body of any media type.
func (c *Client) sendContent(ctx context.Context, method string, at *url.URL, body requestBody, v any) (*rest.UnsupportedProblem, error) {
	req, err := c.newRequest(ctx, method, at, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json, application/problem+json")
	resp, err := c.do(c.http, req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return c.decodeResponse(resp, v)
}

// requestBody is the body of a request. The zero value is none.
type requestBody struct {
	mediaType string
	data      []byte
}

func newJSONBody(v any) (requestBody, error) {
	data, err := strictjson.Marshal(v)
	return requestBody{mediaType: "application/json", data: data}, err
}

// newRequest returns a request with the token of the client.
func (c *Client) newRequest(ctx context.Context, method string, at *url.URL, body requestBody) (*http.Request, error) {
	var payload io.Reader
	if body.mediaType != "" {
		payload = bytes.NewReader(body.data)
	}
	req, err := http.NewRequestWithContext(ctx, method, at.String(), payload)
	if err != nil {
		return nil, err
	}
	if body.mediaType != "" {
		req.Header.Set("Content-Type", body.mediaType)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	return req, nil
}

// do sends a request. The caller closes the body of the response.
func (c *Client) do(by *http.Client, req *http.Request) (*http.Response, error) {
	resp, err := by.Do(req)
	if err != nil {
		return nil, c.ConnectionError(err)
	}
	return resp, nil
}

// ConnectionError returns the error of a request without a response.
func (c *Client) ConnectionError(err error) error {
	if untrusted, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fmt.Errorf("the certificate of %s is not trusted: %w; SSL_CERT_FILE names a file with the certificates to trust", c.base, untrusted.Err)
	}
	if isClosed(err) {
		hint := ""
		if c.base.Scheme == "http" {
			hint = ". If it serves TLS, the URL begins with https://"
		}
		return fmt.Errorf("%s closed the connection without a response: the request may have been accepted (%w)%s", c.base, rootCause(err), hint)
	}
	return fmt.Errorf("no router answers at %s: is `caprouter serve` running there? (%w)", c.base, rootCause(err))
}

// isClosed reports whether the server has closed the connection.
func isClosed(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF) ||
		// of a connection that was closed before net/http began to write; it has no type
		strings.Contains(err.Error(), "server closed idle connection")
}

// decodeResponse decodes a 2xx response into v, and returns other responses as a problem.
func (c *Client) decodeResponse(resp *http.Response, v any) (*rest.UnsupportedProblem, error) {
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswerBytes))
	if err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", c.base, err)
	}
	switch {
	case resp.StatusCode == http.StatusNoContent:
		return nil, nil
	case resp.StatusCode < 300:
		return nil, c.decodeBody(data, v, resp)
	}
	var p rest.UnsupportedProblem
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/problem+json") {
		if c.base.Scheme == "http" && strings.Contains(string(data), "HTTPS server") { // by net/http
			return nil, fmt.Errorf("%s serves TLS: the URL begins with https://", c.base)
		}
		return nil, fmt.Errorf("%s answered %s, which is not a caprouter answer: check --url", c.base, resp.Status)
	}
	return &p, c.decodeBody(data, &p, resp)
}

// decodeBody ignores unknown members, because the server may be newer.
func (c *Client) decodeBody(data []byte, v any, resp *http.Response) error {
	if err := strictjson.UnmarshalDeepAllowUnknown(data, v); err != nil {
		return fmt.Errorf("%s answered %s with something that is not a caprouter answer: %w", c.base, resp.Status, err)
	}
	return nil
}

// rootCause removes the URL that net/http adds to errors.
func rootCause(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}
