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
	maxProgress = 16   // told and not sent yet
	maxMessage  = 1000 // characters of a Progress

	minPause        = 100 * time.Millisecond // doubled after each try
	maxPause        = 30 * time.Second
	progressTimeout = 2 * time.Second
)

// callbackSender carries what is said of one task to its callback.
type callbackSender struct {
	client      *http.Client
	background  *sync.WaitGroup
	resultURL   string // addresses
	progressURL string
	token       string

	mu     sync.Mutex
	queue  []contract.Progress // oldest first
	idle   chan struct{}       // closed when the queue has been sent; nil = it has
	closed bool                // nothing more is taken
}

// newCallbackSender returns one for the task; nil where the task has no callback, or one
// that is not at the router.
func (a *Agent) newCallbackSender(task contract.Task) *callbackSender {
	if task.Callback == nil {
		return nil
	}
	result, progress, err := a.callbacks.checkCallback(task.Callback)
	if err != nil {
		a.log.Warn("callback not used", "task_id", task.TaskID, "trace_id", task.TraceID, "err", err)
		return nil
	}
	return &callbackSender{client: a.client, background: &a.background, resultURL: result, progressURL: progress, token: task.Callback.Token}
}

// queueProgress sends the progress in the background, behind what was told before.
func (c *callbackSender) queueProgress(ctx context.Context, p contract.Progress) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	if len(c.queue) == maxProgress {
		c.queue = c.queue[1:] // append copies what is left, sooner or later
	}
	c.queue = append(c.queue, p)
	if c.idle == nil {
		c.idle = make(chan struct{})
		c.background.Go(func() { c.sendQueue(context.WithoutCancel(ctx)) })
	}
}

// sendQueue sends the queue until it is empty.
func (c *callbackSender) sendQueue(ctx context.Context) {
	for {
		p, ok := c.nextProgress()
		if !ok {
			return
		}
		body, err := json.Marshal(p)
		if err != nil {
			continue // a text and a number cannot fail
		}
		ctx, cancel := context.WithTimeout(ctx, progressTimeout)
		status, _, err := c.postJSON(ctx, c.progressURL, body)
		cancel()
		if err == nil && isFinal(status) {
			c.discardProgress() // the task has ended, or nobody knows it
		}
	}
}

// nextProgress takes the oldest from the queue, or ends the sending.
func (c *callbackSender) nextProgress() (contract.Progress, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		close(c.idle)
		c.idle = nil
		return contract.Progress{}, false
	}
	p := c.queue[0]
	c.queue = c.queue[1:]
	return p, true
}

// discardProgress drops what is not sent yet and takes nothing more.
func (c *callbackSender) discardProgress() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed, c.queue = true, nil
}

// flushProgress takes nothing more and gives what was told a moment to be sent: nobody
// listens to progress behind the result.
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
	}
}

// deliverResult sends the Result until the router has taken it or says that it never
// will, or ctx ends. When closing is closed, the try under way is the last one.
func (c *callbackSender) deliverResult(ctx context.Context, answer []byte, closing <-chan struct{}) error {
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		status, after, err := c.postJSON(ctx, c.resultURL, answer)
		if err == nil {
			if status >= 200 && status < 300 {
				return nil
			}
			err = fmt.Errorf("the router answered %d", status)
			if isFinal(status) {
				return err
			}
		}
		// Jitter keeps the agents of a router that comes back from coming at once.
		timer := time.NewTimer(max(min(after, maxPause), pause/2+rand.N(pause/2))) //nolint:gosec // no secret
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("no more time; at last: %w", err)
		case <-closing:
			timer.Stop()
			return fmt.Errorf("the agent stops; at last: %w", err)
		}
	}
}

// isFinal reports whether the same again would be answered the same.
func isFinal(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return status >= 300 && status < 500
}

// postJSON sends one thing and returns the status, and how long the router wants to
// be left alone.
func (c *callbackSender) postJSON(ctx context.Context, to string, body []byte) (status int, after time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return 0, 0, err
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.client.Do(req)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.CopyN(io.Discard, resp.Body, maxDrained) // so that the connection can be used again
	if seconds, err := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 16); err == nil {
		after = time.Duration(seconds) * time.Second
	}
	return resp.StatusCode, after, nil
}

// maxDrained is what is read of an answer to keep its connection.
const maxDrained = 4 << 10
