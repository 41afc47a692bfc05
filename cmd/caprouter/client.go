package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/egress"
	"github.com/caprouter/caprouter/internal/rest"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// defaultURL is the address of `caprouter serve` without a configuration.
const defaultURL = "http://127.0.0.1:8080"

const maxAnswerBytes = 64 << 20

// client calls a running router over its REST interface.
type client struct {
	base  *url.URL
	token string
	http  *http.Client
}

// newClient rejects a URL with a password, because URLs are logged, and a token that
// would be sent in clear text.
func newClient(base, tokenEnv string) (*client, error) {
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return nil, usageError{fmt.Errorf("--url %q is not an absolute http or https URL, e.g. %s", base, defaultURL)}
	case u.User != nil:
		return nil, usageError{errors.New("--url must not hold a user name or password: pass a token with --token-env")}
	case u.RawQuery != "" || u.Fragment != "":
		return nil, usageError{fmt.Errorf("--url %q is the address of a router, without ? and #, e.g. %s", base, defaultURL)}
	}
	// A router never redirects.
	c := &client{base: u, http: egress.NewClient(egress.NewTransport(egress.Unrestricted{}))}
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

// conventionalName matches names that cannot be taken for a token.
var conventionalName = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,39}$`)

// missingTokenError returns the error for a variable without a value. It repeats the
// argument only if it is certainly not the token itself.
func missingTokenError(tokenEnv string) error {
	if conventionalName.MatchString(tokenEnv) {
		return fmt.Errorf("environment variable %s is not set: put the token there", tokenEnv)
	}
	return usageError{errors.New("--token-env takes the name of an environment variable, and there is none of this name; " +
		"if it was the token itself: export TOKEN=…, then --token-env TOKEN")}
}

// problemError returns a problem as an error, with advice about flags of this command.
func problemError(p *rest.UnsupportedProblem) error {
	e := contract.Error{Code: p.Code, Message: p.Detail, Details: p.Errors}
	if e.Message == "" {
		e.Message = p.Title
	}
	switch p.Code {
	case contract.CodeUnauthenticated:
		e.Message += "; name the variable that holds a token with --token-env (caprouter token makes one)"
	case contract.CodeForbidden:
		if strings.Contains(p.Detail, "scope") { // otherwise another token would not help
			e.Message += "; caprouter token --scope makes a token that has it"
		}
	}
	return &e
}

// routeRequest posts the request. A refusal by fallback policy B is a response, not an
// error.
func (c *client) routeRequest(ctx context.Context, req *contract.Request) (*contract.Response, error) {
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
	return nil, problemError(p)
}

// Reads of a list with many pages reach the rate limit of reads: they continue after
// limitPause, at most maxLimitPauses times for one page.
const (
	limitPause     = time.Second
	maxLimitPauses = 60
)

// getResource decodes the resource at path into v. query may be nil.
func (c *client) getResource(ctx context.Context, path string, query url.Values, v any) error {
	at := c.base.JoinPath(path)
	at.RawQuery = query.Encode()
	for try := 0; ; try++ {
		p, err := c.sendRequest(ctx, http.MethodGet, at, nil, v)
		switch {
		case err != nil || p == nil:
			return err
		case p.Code != contract.CodeRateLimited || try == maxLimitPauses:
			return problemError(p)
		}
		select {
		case <-time.After(limitPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// sendRequest sends body (nil for none) and decodes a 2xx response into v. It returns
// other responses as a problem.
func (c *client) sendRequest(ctx context.Context, method string, at *url.URL, body, v any) (*rest.UnsupportedProblem, error) {
	if body == nil {
		return c.sendContent(ctx, method, at, "", nil, v)
	}
	data, err := strictjson.Marshal(body)
	if err != nil {
		return nil, err
	}
	return c.sendContent(ctx, method, at, "application/json", data, v)
}

// sendContent is sendRequest for a body of any media type; "" is none.
func (c *client) sendContent(
	ctx context.Context, method string, at *url.URL, mediaType string, body []byte, v any,
) (*rest.UnsupportedProblem, error) {
	var payload io.Reader
	if mediaType != "" {
		payload = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, at.String(), payload)
	if err != nil {
		return nil, err
	}
	if mediaType != "" {
		req.Header.Set("Content-Type", mediaType)
	}
	req.Header.Set("Accept", "application/json, application/problem+json")
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("no router answers at %s: is `caprouter serve` running there? (%w)", c.base, rootCause(err))
	}
	defer resp.Body.Close()
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
		return nil, fmt.Errorf("%s answered %s, which is not a caprouter answer: check --url", c.base, resp.Status)
	}
	return &p, c.decodeBody(data, &p, resp)
}

// decodeBody ignores unknown members, because the server may be newer.
func (c *client) decodeBody(data []byte, v any, resp *http.Response) error {
	if err := strictjson.UnmarshalAllowUnknown(data, v); err != nil {
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

// followEvents passes the events of a request to handle until the final one.
func (c *client) followEvents(ctx context.Context, id string, handle func(*contract.Event)) (*contract.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base.JoinPath("/api/v1/requests", id, "events").String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, rootCause(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("events of request %s: %s", id, resp.Status)
	}
	lines := bufio.NewScanner(io.LimitReader(resp.Body, maxAnswerBytes))
	lines.Buffer(nil, maxAnswerBytes)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var ev contract.Event
		if err := strictjson.UnmarshalAllowUnknown([]byte(data), &ev); err != nil {
			return nil, fmt.Errorf("events of request %s: %w", id, err)
		}
		handle(&ev)
		if ev.Type == contract.EventFinal {
			return ev.Response, nil
		}
	}
	return nil, errors.Join(fmt.Errorf("events of request %s: the stream ended without a final event", id), lines.Err())
}
