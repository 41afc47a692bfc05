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

	firstPause      = 100 * time.Millisecond // doubled after each try
	maxPause        = 30 * time.Second
	progressTimeout = 2 * time.Second
)

// courier carries what is said of one task to its callback.
type courier struct {
	client     *http.Client
	background *sync.WaitGroup
	result     string // addresses
	progress   string
	token      string

	mu    sync.Mutex
	queue []contract.Progress // oldest first
	idle  chan struct{}       // closed when the queue has been sent; nil = it has
	over  bool                // nothing more is taken
}

// courier returns one for the task; nil where the task has no callback, or one
// that is not at the router.
func (a *Agent) courier(task contract.Task) *courier {
	if task.Callback == nil {
		return nil
	}
	result, progress, err := a.places.check(task.Callback)
	if err != nil {
		a.log.Warn("callback not used", "task_id", task.TaskID, "trace_id", task.TraceID, "err", err)
		return nil
	}
	return &courier{client: a.client, background: &a.background, result: result, progress: progress, token: task.Callback.Token}
}

// tell sends the progress in the background, behind what was told before.
func (c *courier) tell(ctx context.Context, p contract.Progress) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	if len(c.queue) == maxProgress {
		c.queue = c.queue[1:] // append copies what is left, sooner or later
	}
	c.queue = append(c.queue, p)
	if c.idle == nil {
		c.idle = make(chan struct{})
		c.background.Go(func() { c.sendAll(context.WithoutCancel(ctx)) })
	}
}

// sendAll sends the queue until it is empty.
func (c *courier) sendAll(ctx context.Context) {
	for {
		p, ok := c.next()
		if !ok {
			return
		}
		body, err := json.Marshal(p)
		if err != nil {
			continue // a text and a number cannot fail
		}
		ctx, cancel := context.WithTimeout(ctx, progressTimeout)
		status, _, err := c.post(ctx, c.progress, body)
		cancel()
		if err == nil && isFinal(status) {
			c.hush() // the task has ended, or nobody knows it
		}
	}
}

// next takes the oldest from the queue, or ends the sending.
func (c *courier) next() (contract.Progress, bool) {
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

// hush drops what is not sent yet and takes nothing more.
func (c *courier) hush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over, c.queue = true, nil
}

// flush takes nothing more and gives what was told a moment to be sent: nobody
// listens to progress behind the result.
func (c *courier) flush(ctx context.Context) {
	c.mu.Lock()
	c.over = true
	idle := c.idle
	c.mu.Unlock()
	if idle == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lastWords)
	defer cancel()
	select {
	case <-idle:
	case <-ctx.Done():
		c.hush()
	}
}

// deliver sends the Result until the router has taken it or says that it never
// will, or ctx ends. When closing is closed, the try under way is the last one.
func (c *courier) deliver(ctx context.Context, answer []byte, closing <-chan struct{}) error {
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		status, after, err := c.post(ctx, c.result, answer)
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

// post sends one thing and returns the status, and how long the router wants to
// be left alone.
func (c *courier) post(ctx context.Context, to string, body []byte) (status int, after time.Duration, err error) {
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
	_, _ = io.CopyN(io.Discard, resp.Body, maxIgnored) // so that the connection can be used again
	if seconds, err := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 16); err == nil {
		after = time.Duration(seconds) * time.Second
	}
	return resp.StatusCode, after, nil
}

// maxIgnored is what is read of an answer to keep its connection.
const maxIgnored = 4 << 10
