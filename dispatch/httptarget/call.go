package httptarget

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/dispatch/attempt"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/internal/telemetry"
)

// agentCall is the state of one Execute: a task for one agent, sent once or
// twice. It belongs to the goroutine that calls Execute.
type agentCall struct {
	target *Target
	dispatch.Call
	policy *attempt.Policy

	url       *url.URL
	transport *transport // with the connections for this kind of address
	token     string
	callback  *contract.Callback // where the result can be sent later; nil = nowhere

	result   *contract.Result
	accepted bool // the agent answered 202
}

// prepare checks the endpoint and mints the tokens.
func (c *agentCall) prepare(ctx context.Context) *attempt.Error {
	if ctx.Err() != nil {
		return c.policy.Ended(ctx, false)
	}
	if f := c.resolveEndpoint(); f != nil {
		return f
	}
	var err error
	if c.token = c.Token.Value; !c.hasValidToken() {
		c.token, err = c.target.tokens.agentToken(c.Call, c.policy.ReplyBy)
	}
	if err == nil {
		c.callback, err = c.newCallback()
	}
	if err != nil {
		return c.tokenFailure(err)
	}
	return nil
}

// hasValidToken reports whether the token of the call may be sent: it was minted before the
// task could be sent, which may have taken long.
func (c *agentCall) hasValidToken() bool {
	return c.Token.Value != "" && c.Token.KeyID == c.target.tokens.source.KeyID() &&
		!c.Token.Expires.Before(c.policy.ReplyBy.Add(dispatch.TokenSlack/2))
}

func (c *agentCall) tokenFailure(err error) *attempt.Error {
	return c.policy.NotSent("no token could be made for "+c.Agent.ID, err)
}

// newCallback returns where the agent can send its result later, or nil if the
// result is not awaited or the router does not know its own address.
func (c *agentCall) newCallback() (*contract.Callback, error) {
	public := c.target.publicURL()
	if c.AwaitResult == nil || public == "" {
		return nil, nil
	}
	token, err := c.target.tokens.taskToken(c.Call, c.policy.Due)
	if err != nil {
		return nil, err
	}
	return dispatch.NewCallback(public, c.Task.TaskID, token), nil
}

// sendTask is the n-th attempt of the call.
func (c *agentCall) sendTask(ctx context.Context, n int) *attempt.Error {
	ctx, span := telemetry.StartClientSpan(ctx, http.MethodPost)
	defer span.End()
	span.SetString(telemetry.AttrHTTPMethod, http.MethodPost)
	span.SetString(telemetry.AttrServerAddress, c.url.Hostname())
	if n > 1 {
		span.SetInt(telemetry.AttrHTTPResends, n-1)
	}
	status, f := c.roundTrip(ctx, n)
	if status != 0 {
		span.SetInt(telemetry.AttrHTTPStatus, status)
	}
	if f != nil {
		span.Fail(string(f.Code))
	}
	return f
}

// roundTrip sends the task for the n-th time and reads the reply. status is 0 if there is
// none.
func (c *agentCall) roundTrip(ctx context.Context, n int) (status int, _ *attempt.Error) {
	limits := c.policy.Limits(time.Now(), n)
	if limits.ReplyBy.Before(c.policy.ReplyBy) { // otherwise ctx ends at that time already
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, limits.ReplyBy)
		defer cancel()
	}
	task := c.Task
	task.Attempt, task.Deadline, task.Callback = c.policy.Previous+n, limits.ReplyBy, c.callback
	if c.callback != nil { // the result counts until the task is due, by reply or callback
		task.Deadline = c.policy.Due
	}
	task.Deadline = task.Deadline.UTC().Truncate(time.Millisecond)
	body, err := strictjson.Marshal(&task)
	if err != nil {
		return 0, c.policy.NotSent("the task could not be encoded", err)
	}
	var conn attemptConn
	resp, err := c.transport.RoundTrip(c.newRequest(conn.trace(ctx, limits.ConnectBy), body))
	if err != nil {
		return 0, c.roundTripFailure(ctx, err, conn.sentAny())
	}
	defer func() { _ = resp.Body.Close() }()
	result, f := c.readReply(ctx, resp)
	if f != nil && resp.StatusCode != http.StatusOK {
		f.Reply = c.readExcerpt(resp)
	}
	c.result = result
	return resp.StatusCode, f
}

// newRequest returns the request for the task. It has no GetBody, because with
// one and with an Idempotency-Key net/http would resend the request by itself.
// The body has a type that net/http knows to be in memory, because it would send
// any other body in a write and a packet after the header.
func (c *agentCall) newRequest(ctx context.Context, body []byte) *http.Request {
	req := c.target.template.WithContext(ctx)
	req.URL, req.Host = c.url, c.url.Host
	req.Header = maps.Clone(req.Header)
	req.Header["Authorization"] = []string{"Bearer " + c.token}
	req.Header["Idempotency-Key"] = []string{c.Task.TaskID}
	c.setTraceparent(ctx, req.Header)
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return req
}

// newCancelRequest returns the request that cancels the task.
func (c *agentCall) newCancelRequest(ctx context.Context) *http.Request {
	token, err := c.target.tokens.refreshToken(c.Call, c.token)
	if err != nil {
		token = c.token // it may have expired, but the agent may not check
	}
	u := c.url.JoinPath(url.PathEscape(c.Task.TaskID), "cancel")
	req := &http.Request{
		Method: http.MethodPost, URL: u, Host: u.Host,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Authorization": {"Bearer " + token}, "User-Agent": c.target.template.Header["User-Agent"]},
		Body:   http.NoBody,
	}
	c.setTraceparent(ctx, req.Header)
	return req
}

// setTraceparent sets the W3C trace context of the attempt or, if the router does not
// trace, of a new span, if the task has a valid trace id.
func (c *agentCall) setTraceparent(ctx context.Context, h http.Header) {
	if telemetry.InjectHeaders(ctx, h) {
		return
	}
	if !isTraceID(c.Task.TraceID) {
		return
	}
	var span [8]byte
	binary.BigEndian.PutUint64(span[:], rand.Uint64()|1) //nolint:gosec // a name, not a secret; zero would be invalid
	h["Traceparent"] = []string{"00-" + c.Task.TraceID + "-" + hex.EncodeToString(span[:]) + "-01"}
}

// isTraceID reports whether id is a valid trace-id of W3C Trace Context.
func isTraceID(id string) bool {
	zero := true
	for i := range len(id) {
		digit := id[i]
		if (digit < '0' || digit > '9') && (digit < 'a' || digit > 'f') {
			return false
		}
		zero = zero && digit == '0'
	}
	return len(id) == 32 && !zero
}

// roundTripFailure returns the failure of an attempt without a reply. If part of
// the request may have left, sent is true.
func (c *agentCall) roundTripFailure(ctx context.Context, err error, sent bool) *attempt.Error {
	switch {
	case ctx.Err() != nil:
		return c.policy.Ended(ctx, sent)
	case !sent && !time.Now().Before(c.policy.ReplyBy): // the dialer's timer fired before the context's
		return c.policy.Ended(ctx, false)
	case !sent && isBlocked(err):
		return c.blockedFailure(err)
	case !sent:
		f := c.policy.Unreachable(describeDialError(err), err)
		if isTimeout(err) {
			f.Health = c.policy.TimeoutHealth()
		}
		return f
	case isConnectionLoss(err):
		return c.policy.Unanswered("closed the connection without an answer", err)
	}
	return c.policy.BadResult("sent a reply that is not HTTP, or has too long a header", err)
}

// blockedFailure returns the failure of an agent whose address may not be
// called. It counts for the health of the agent, so that others get its tasks.
func (c *agentCall) blockedFailure(cause error) *attempt.Error {
	f := c.policy.Unreachable("its address may not be called", cause)
	f.Retry = false
	return f
}

// logFailure logs the cause, which the caller does not see.
func (c *agentCall) logFailure(ctx context.Context, attempts int, f *attempt.Error) {
	level := slog.LevelWarn
	if f.Code == contract.TaskWasCancelled {
		level = slog.LevelDebug
	}
	c.target.log.Log(ctx, level, "task not done", "agent", c.Agent.ID, "task_id", c.Task.TaskID,
		"trace_id", c.Task.TraceID, "attempts", attempts, "code", f.Code, "detail", f.Detail, "address", f.Address, "reply", f.Reply, "error", f.Cause)
}

// checkGuard returns why the address of an agent that registered itself is not called.
func (t *Target) checkGuard(u *url.URL) error {
	if t.guarded == nil {
		return errors.New("agents that registered themselves are not called: no guard is configured")
	}
	return t.guard.CheckURL(u)
}

// CheckAddress returns why the address of an agent that registers itself cannot be
// called, nil if it can, as far as this is known without a lookup of its name.
func (t *Target) CheckAddress(address string) error {
	u, err := parseEndpoint(address, t.plainHTTP)
	if err != nil {
		return err
	}
	return t.checkGuard(u)
}

// describeAddress returns the URL of the endpoint without credentials, "" if it is
// not valid. A query is left out, because it may contain a key.
func (c *agentCall) describeAddress() string {
	if c.url == nil {
		return ""
	}
	return (&url.URL{Scheme: c.url.Scheme, Host: c.url.Host, Path: c.url.Path}).String()
}

// resolveEndpoint sets the address of the agent and the transport for it. If the
// address did not come from the operator's file, it is called behind the guard
// only.
func (c *agentCall) resolveEndpoint() *attempt.Error {
	var err error
	if c.url, err = parseEndpoint(c.Agent.Endpoint.URL, c.target.plainHTTP); err != nil {
		return c.policy.NotSent(c.Agent.ID+" "+err.Error(), err)
	}
	if c.Agent.Origin == contract.OriginFile {
		c.transport = c.target.trusted
		return nil
	}
	if err := c.target.checkGuard(c.url); err != nil {
		return c.blockedFailure(err)
	}
	c.transport = c.target.guarded
	return nil
}
