package agentkit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/caprouter/caprouter/contract"
)

const (
	maxProgressQueue = 16
	maxMessage       = 1000 // characters of a Progress
	maxDrained       = 4 << 10

	minPause        = 100 * time.Millisecond // doubled after each attempt
	maxPause        = 30 * time.Second
	progressTimeout = 2 * time.Second
)

// callbackSender sends the progress and the result of one task to its callback.
// Only one goroutine at a time sends progress. It is safe for concurrent use.
type callbackSender struct {
	client      *http.Client
	background  *sync.WaitGroup
	resultURL   string
	progressURL string
	token       string
	onCancelled func() // of a task that was pulled: the router needs no result any more

	mu     sync.Mutex
	queue  []contract.Progress // oldest first
	idle   chan struct{}       // closed when the queue has been sent; nil = empty
	cancel context.CancelFunc  // ends the sending of the queue; nil if idle is nil
	closed bool                // no more progress is accepted
}

// newCallbackSender returns a sender for the task, or nil if the task has no
// callback or the policy rejects it.
func (a *Agent) newCallbackSender(task contract.Task) *callbackSender {
	if task.Callback == nil {
		return nil
	}
	resultURL, progressURL, err := a.callbacks.checkCallback(task.Callback)
	if err != nil {
		a.log.Warn("callback not used", "task_id", task.TaskID, "trace_id", task.TraceID, "error", err)
		return nil
	}
	return &callbackSender{
		client: a.client, background: &a.background,
		resultURL: resultURL, progressURL: progressURL, token: task.Callback.Token,
	}
}

// queueProgress sends the progress in the background, in order.
func (c *callbackSender) queueProgress(ctx context.Context, p contract.Progress) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	if len(c.queue) == maxProgressQueue {
		c.queue = c.queue[1:] // append copies the rest eventually
	}
	c.queue = append(c.queue, p)
	if c.idle == nil {
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		c.idle, c.cancel = make(chan struct{}), cancel
		c.background.Go(func() { c.sendQueue(ctx) })
	}
}

// sendQueue sends progress until the queue is empty.
func (c *callbackSender) sendQueue(ctx context.Context) {
	for {
		p, ok := c.nextProgress()
		if !ok {
			return
		}
		body, err := json.Marshal(p)
		if err != nil {
			continue // a string and a number cannot fail
		}
		ctx, cancel := context.WithTimeout(ctx, progressTimeout)
		status, reply, _, err := c.post(ctx, c.progressURL, body)
		cancel()
		switch {
		case err != nil:
		case isFinal(status):
			c.discardProgress() // the task has ended or is unknown
		default:
			c.noticeCancellation(reply)
		}
	}
}

// nextProgress removes the oldest entry from the queue. If there is none, the
// sending goroutine must end.
func (c *callbackSender) nextProgress() (contract.Progress, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		c.cancel()
		close(c.idle)
		c.idle, c.cancel = nil, nil
		return contract.Progress{}, false
	}
	p := c.queue[0]
	c.queue = c.queue[1:]
	return p, true
}

// discardProgress drops the queue, cancels the post that is being sent, and accepts
// no more progress.
func (c *callbackSender) discardProgress() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed, c.queue = true, nil
	if c.cancel != nil {
		c.cancel()
	}
}

// flushProgress accepts no more progress and waits briefly until the queue is
// sent. Then it discards the rest and waits until nothing is being sent, because
// progress after the result is useless.
func (c *callbackSender) flushProgress(ctx context.Context) {
	c.mu.Lock()
	c.closed = true
	idle := c.idle
	c.mu.Unlock()
	if idle == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, finalGrace)
	defer cancel()
	select {
	case <-idle:
	case <-ctx.Done():
		c.discardProgress()
		<-idle
	}
}

// deliverResult sends the Result until the router accepts it or rejects it for
// good, or ctx ends. If closing is closed, it does not retry.
func (c *callbackSender) deliverResult(ctx context.Context, answer []byte, closing <-chan struct{}) error {
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		status, retryAfter, err := c.postJSON(ctx, c.resultURL, answer)
		if err == nil {
			if status >= 200 && status < 300 {
				return nil
			}
			err = fmt.Errorf("the router answered %d", status)
			if isFinal(status) {
				return err
			}
		}
		timer := time.NewTimer(max(min(retryAfter, maxPause), addJitter(pause)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("no more time; last error: %w", err)
		case <-closing:
			timer.Stop()
			return fmt.Errorf("the agent stops; last error: %w", err)
		}
	}
}

// addJitter returns a duration between the half of d and d, so that the retries of many
// agents spread after a restart of the router.
func addJitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d/2) //nolint:gosec // no secret
}

// isFinal reports whether a retry would get the same status.
func isFinal(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return status >= 300 && status < 500
}

// postJSON sends the body and returns the status and the Retry-After of the reply.
func (c *callbackSender) postJSON(ctx context.Context, url string, body []byte) (status int, retryAfter time.Duration, err error) {
	status, _, retryAfter, err = c.post(ctx, url, body)
	return status, retryAfter, err
}

// post is postJSON, and returns the beginning of the reply as well. The body may be nil.
func (c *callbackSender) post(ctx context.Context, url string, body []byte) (status int, reply []byte, retryAfter time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, 0, err
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return 0, nil, 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	reply, _ = io.ReadAll(io.LimitReader(resp.Body, maxDrained)) // to its end, so that the connection can be reused
	return resp.StatusCode, reply, parseRetryAfter(resp.Header), nil
}

// parseRetryAfter returns the Retry-After in seconds, or 0.
func parseRetryAfter(h http.Header) time.Duration {
	seconds, err := strconv.ParseUint(h.Get("Retry-After"), 10, 16)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}
