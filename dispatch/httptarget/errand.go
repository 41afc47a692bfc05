package httptarget

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// errand is one task on its way to one agent: the state of one Do.
type errand struct {
	target *Target
	call   dispatch.Call
	began  time.Time
	due    time.Time // when the task must be done
	end    time.Time // when the agent must have answered
	url    *url.URL
	token  string
	// transport has the connections for the agent's kind of address
	transport *http.Transport
	// callback is where a Result may come later; nil = nowhere
	callback *contract.Callback

	before    int // tries of an earlier Do
	tries     int
	result    *contract.Result
	later     bool // the agent has accepted the task
	abandoned bool // the agent may be at work on what nobody waits for
}

// prepare finds out whether the agent may be sent anything at all.
func (e *errand) prepare(ctx context.Context) *failure {
	if ctx.Err() != nil {
		return e.ended(ctx, false)
	}
	if f := e.locate(); f != nil {
		return f
	}
	var err error
	if e.token, err = e.target.tokens.get(e.call, e.end); err != nil {
		return e.tokenless(err)
	}
	if e.callback, err = e.makeCallback(); err != nil {
		return e.tokenless(err)
	}
	return nil
}

// try sends the task once.
func (e *errand) try(ctx context.Context, n int) *failure {
	by := timesOf(time.Now(), e.end, maxTries-n+1, e.call.Standbys, e.call.Agent.Endpoint.Idempotent)
	if by.answer.Before(e.end) { // else ctx ends then already
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, by.answer)
		defer cancel()
	}
	task := e.call.Task
	task.Attempt, task.Deadline, task.Callback = e.before+n, by.answer, e.callback
	if e.callback != nil { // its Result is good until then, on whichever way
		task.Deadline = e.due
	}
	task.Deadline = task.Deadline.UTC().Truncate(time.Millisecond)
	body, err := strictjson.Marshal(&task)
	if err != nil {
		return &failure{code: contract.TaskAgentUnavailable, detail: "the task could not be encoded", cause: err}
	}
	var line line
	resp, err := e.transport.RoundTrip(e.request(line.watch(ctx, by.connected), body))
	if err != nil {
		return e.lost(ctx, err, line.sent())
	}
	defer func() { _ = resp.Body.Close() }()
	result, f := e.read(ctx, resp)
	e.result = result
	return f
}

// request makes the request. It has no GetBody: with one, and with an
// Idempotency-Key, net/http would take it upon itself to send it again. The body
// is of a type net/http knows to be in memory: any other it sends apart from the
// header, in a write and a packet of its own.
func (e *errand) request(ctx context.Context, body []byte) *http.Request {
	req := e.target.blank.WithContext(ctx)
	req.URL, req.Host = e.url, e.url.Host
	req.Header = maps.Clone(req.Header)
	req.Header["Authorization"] = []string{"Bearer " + e.token}
	req.Header["Idempotency-Key"] = []string{e.call.Task.TaskID}
	if tp := traceparent(e.call.Task.TraceID); tp != "" {
		req.Header["Traceparent"] = []string{tp}
	}
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return req
}

// traceparent is the W3C trace context of a new span; "" without a trace id.
func traceparent(traceID string) string {
	if len(traceID) != 32 || strings.Trim(traceID, "0123456789abcdef") != "" || strings.Trim(traceID, "0") == "" {
		return ""
	}
	span := rand.Uint64() | 1 //nolint:gosec // a name, not a secret; zero would be invalid
	return fmt.Sprintf("00-%s-%016x-01", traceID, span)
}

// endOf returns when the task must be done, the earlier of the context's and the
// task's limit, and when the agent must have answered, which its own limit may
// make earlier.
func endOf(ctx context.Context, c dispatch.Call, now time.Time) (due, end time.Time) {
	due, ok := ctx.Deadline()
	if !ok {
		due = now.Add(dispatch.DefaultTimeout)
	}
	if task := c.Task.Deadline; !task.IsZero() && task.Before(due) {
		due = task
	}
	end = due
	if ms := c.Agent.Endpoint.TimeoutMS; ms > 0 {
		if limit := now.Add(time.Duration(ms) * time.Millisecond); limit.Before(end) {
			end = limit
		}
	}
	return due, end
}

// times are the limits of one try.
type times struct{ connected, answer time.Time }

// timesOf divides what remains among the tries that are left. A task that may
// not be sent twice, once sent, is the last try there can be.
func timesOf(now, end time.Time, ownTries, others int, idempotent bool) times {
	share := end.Sub(now) / time.Duration(ownTries+others)
	by := times{connected: now.Add(min(share, maxConnect)), answer: end}
	if idempotent {
		by.answer = now.Add(share)
	}
	return by
}

// stopRequest tells the agent that nobody waits for the task.
func (e *errand) stopRequest() *http.Request {
	token, err := e.target.tokens.current(e.call, e.token)
	if err != nil {
		token = e.token // it may have expired: a stop is worth a try
	}
	u := e.url.JoinPath(url.PathEscape(e.call.Task.TaskID), "cancel")
	req := &http.Request{
		Method: http.MethodPost, URL: u, Host: u.Host,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Authorization": {"Bearer " + token}, "User-Agent": e.target.blank.Header["User-Agent"]},
		Body:   http.NoBody,
	}
	if tp := traceparent(e.call.Task.TraceID); tp != "" {
		req.Header["Traceparent"] = []string{tp}
	}
	return req
}
