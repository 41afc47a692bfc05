package agentkit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/caprouter/caprouter/contract"
)

// maxReplyBytes bounds a lease, a task that is pulled, or a problem document.
const maxReplyBytes = maxTaskBytes

// agentClient sends the requests that concern one instance of an agent.
type agentClient struct {
	client   *http.Client
	url      string // of the agent: <router>/api/v1/agents/<id>
	instance string
	token    TokenSource
}

func (a *Agent) newAgentClient(instance string) agentClient {
	return agentClient{
		client: a.client, url: a.registration.routerURL + "/api/v1/agents/" + a.verifier.agentID,
		instance: instance, token: a.registration.token,
	}
}

// registerAgent creates or replaces the registration.
func (c *agentClient) registerAgent(ctx context.Context, r *contract.Registration) (contract.Lease, error) {
	sent := *r
	// The router expects lists: a nil slice would be null.
	sent.Match.Intent = append([]string{}, r.Match.Intent...)
	sent.Match.Domains = append([]string{}, r.Match.Domains...)
	body, err := json.Marshal(&sent)
	if err != nil {
		return contract.Lease{}, err
	}
	return decodeLease(c.sendRequest(ctx, http.MethodPut, c.url, body))
}

// sendHeartbeat renews the lease.
func (c *agentClient) sendHeartbeat(ctx context.Context) (contract.Lease, error) {
	return decodeLease(c.sendRequest(ctx, http.MethodPost, c.url+"/heartbeat", c.instanceBody()))
}

// drainInstance takes the instance out of routing.
func (c *agentClient) drainInstance(ctx context.Context) (contract.Lease, error) {
	return decodeLease(c.sendRequest(ctx, http.MethodPost, c.url+"/drain", c.instanceBody()))
}

// deregisterInstance ends the registration.
func (c *agentClient) deregisterInstance(ctx context.Context) error {
	_, err := c.sendRequest(ctx, http.MethodDelete, c.url+"?instance="+url.QueryEscape(c.instance), nil)
	return err
}

func (c *agentClient) instanceBody() []byte {
	body, _ := json.Marshal(map[string]string{"instance": c.instance}) // strings cannot fail
	return body
}

func decodeLease(reply []byte, err error) (contract.Lease, error) {
	var lease contract.Lease
	if err != nil {
		return lease, err
	}
	if err := decodeStrict(reply, &lease); err != nil {
		return lease, fmt.Errorf("the reply is not a lease: %w", err)
	}
	if lease.State == "" {
		return lease, errors.New("the reply is not a lease: it has no state")
	}
	return lease, nil
}

// sendRequest sends a request and returns the body of the reply. If the router
// rejects the token and the source has another one now, it sends the request again.
func (c *agentClient) sendRequest(ctx context.Context, method, url string, body []byte) ([]byte, error) {
	token, err := c.token(ctx)
	if err != nil {
		return nil, &tokenError{err}
	}
	reply, err := c.sendWithToken(ctx, token, method, url, body)
	if statusOf(err) != http.StatusUnauthorized {
		return reply, err
	}
	fresh, tokenErr := c.token(ctx)
	if tokenErr != nil || fresh == token {
		return nil, err
	}
	return c.sendWithToken(ctx, fresh, method, url, body)
}

func (c *agentClient) sendWithToken(ctx context.Context, token, method, url string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "application/json, application/problem+json")
	resp, err := c.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	reply, err := io.ReadAll(io.LimitReader(resp.Body, maxReplyBytes))
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return reply, err
	}
	return nil, newReplyError(resp, reply)
}

// tokenError is the error of a TokenSource.
type tokenError struct{ err error }

func (e *tokenError) Error() string { return e.err.Error() }
func (e *tokenError) Unwrap() error { return e.err }

// replyError is a reply of the router other than a success.
type replyError struct {
	problem    replyProblem
	retryAfter time.Duration
}

// replyProblem is a problem document (RFC 9457) of the router.
type replyProblem struct {
	Title  string                 `json:"title"`
	Status int                    `json:"status"`
	Code   contract.Code          `json:"code"`
	Detail string                 `json:"detail"`
	Errors []contract.ErrorDetail `json:"errors"`
}

func newReplyError(resp *http.Response, body []byte) *replyError {
	e := &replyError{retryAfter: parseRetryAfter(resp.Header)}
	if decodeStrict(body, &e.problem) != nil {
		e.problem = replyProblem{} // for example the page of a proxy
	}
	e.problem.Status = resp.StatusCode
	if e.problem.Title == "" {
		e.problem.Title = http.StatusText(resp.StatusCode)
	}
	return e
}

// Error returns the title, the status, the detail and all errors on one line.
func (e *replyError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%d)", e.problem.Title, e.problem.Status)
	if e.problem.Detail != "" {
		b.WriteString(": " + e.problem.Detail)
	}
	for _, d := range e.problem.Errors {
		b.WriteString("; ")
		if d.Pointer != "" {
			b.WriteString(d.Pointer + ": ")
		}
		b.WriteString(d.Detail)
	}
	return b.String()
}

// Unwrap returns the problem as the error that programs can examine.
func (e *replyError) Unwrap() error {
	return &contract.Error{Code: e.problem.Code, Message: e.problem.Detail, Details: e.problem.Errors}
}

// statusOf returns the status of the reply, or 0 if there was none.
func statusOf(err error) int {
	if e, ok := errors.AsType[*replyError](err); ok {
		return e.problem.Status
	}
	return 0
}

// retryAfterOf returns the Retry-After of the reply, or 0.
func retryAfterOf(err error) time.Duration {
	if e, ok := errors.AsType[*replyError](err); ok {
		return min(e.retryAfter, maxPause)
	}
	return 0
}
