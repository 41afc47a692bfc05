package httptarget

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/dispatch/attempt"
	"github.com/caprouter/caprouter/internal/plaintext"
	"github.com/caprouter/caprouter/internal/strictjson"
)

const (
	maxReply = 4 << 20 // of a Result, after decompression
	// maxEncoded bounds a compressed reply. gzip output is at most this long,
	// unless it is crafted, for example as a stream of empty members.
	maxEncoded = maxReply + 64<<10
	// maxExcerptRead and maxExcerptWait bound the read of a reply that is only shown to
	// operators.
	maxExcerptRead = 4 << 10
	maxExcerptWait = 200 * time.Millisecond
	// maxPooled keeps one large reply from holding on to its memory.
	maxPooled = 256 << 10
)

var (
	errTooLarge        = errors.New("the reply is too large")
	errUnknownEncoding = errors.New("unknown content encoding")
)

// readReply returns the Result in a reply, or a failure. Only the body of a 200
// is read; closing any other body closes the connection.
func (c *agentCall) readReply(ctx context.Context, resp *http.Response) (*contract.Result, *attempt.Error) {
	switch status := resp.StatusCode; {
	case status == http.StatusOK:
		return c.readResult(ctx, resp)
	case status == http.StatusAccepted:
		return nil, c.handleAccepted()
	case status == http.StatusTooManyRequests: // guarantees that the task was not begun
		return nil, c.policy.Busy("answered 429: it takes no more tasks now", parseRetryAfter(resp.Header, time.Now()))
	case status == http.StatusRequestTimeout || status >= 500:
		f := c.policy.Unanswered(fmt.Sprintf("answered %d", status), nil)
		f.RetryAfter = parseRetryAfter(resp.Header, time.Now())
		if status == http.StatusRequestTimeout {
			f.Health = dispatch.HealthUnknown // the network may have been slow
		}
		return nil, f
	case status >= 400:
		return nil, c.policy.Rejected(fmt.Sprintf("refused the task with %d", status))
	case status >= 300:
		return nil, c.policy.BadResult(fmt.Sprintf("answered %d: redirects are not followed; correct endpoint.url", status), nil)
	default:
		return nil, c.policy.BadResult(fmt.Sprintf("answered %d: a Result comes with 200", status), nil)
	}
}

// handleAccepted handles a 202. Without a callback no result can arrive, so the
// agent, which has begun to work, is cancelled.
func (c *agentCall) handleAccepted() *attempt.Error {
	if c.callback != nil {
		c.accepted = true
		return nil
	}
	reason := "the router does not know where agents reach it (public_url)"
	if c.AwaitResult == nil {
		reason = "a later result is not awaited"
	}
	f := c.policy.BadResult("accepted the task for later, but was sent no callback, because "+reason, nil)
	f.Abandoned = true
	return f
}

// readExcerpt returns the beginning of a reply that is not a 200, for operators. It
// reads what arrives at once, so that a slow agent does not delay a standby.
func (c *agentCall) readExcerpt(resp *http.Response) string {
	if c.MaskText == nil {
		return ""
	}
	timer := time.AfterFunc(maxExcerptWait, func() { _ = resp.Body.Close() })
	defer timer.Stop()
	buf := c.target.buffers.get()
	defer c.target.buffers.put(buf)
	limited := *resp // the timer reads resp
	limited.Body = io.NopCloser(io.LimitReader(resp.Body, maxExcerptRead))
	_ = readBody(buf, &limited) // an incomplete excerpt is better than none
	return c.excerptOf(buf.Bytes())
}

// excerptOf returns the first characters of a reply, without the tokens of the task,
// masked and on one line.
func (c *agentCall) excerptOf(reply []byte) string {
	if c.MaskText == nil || len(reply) == 0 {
		return ""
	}
	text := strings.ToValidUTF8(string(reply[:min(len(reply), maxExcerptRead)]), "")
	text = strings.ReplaceAll(text, c.token, "[TOKEN]")
	if c.callback != nil {
		text = strings.ReplaceAll(text, c.callback.Token, "[TOKEN]")
	}
	text = strings.Join(strings.Fields(removeControls(c.MaskText(text))), " ")
	n := 0
	for i := range text {
		if n == contract.MaxAgentReply {
			return text[:i] + "…"
		}
		n++
	}
	return text
}

// readResult reads the body of a 200.
func (c *agentCall) readResult(ctx context.Context, resp *http.Response) (*contract.Result, *attempt.Error) {
	buf := c.target.buffers.get()
	defer c.target.buffers.put(buf) // the Result does not alias it, because decoding copies
	err := readBody(buf, resp)
	switch {
	case err == nil:
		result, f := c.decodeResult(buf.Bytes())
		if f != nil {
			f.Reply = c.excerptOf(buf.Bytes())
		}
		return result, f
	case errors.Is(err, errTooLarge):
		return nil, c.policy.BadResult(fmt.Sprintf("sent more than the %d bytes a Result may have", maxReply), err)
	case isEncodingError(err):
		return nil, c.policy.BadResult("sent a reply that cannot be decoded: only gzip is understood", err)
	case ctx.Err() != nil:
		return nil, c.policy.Ended(ctx, true)
	}
	f := c.policy.BadResult("sent a reply that breaks off", err)
	f.Retry = c.Agent.Endpoint.Idempotent
	return nil, f
}

func (c *agentCall) decodeResult(data []byte) (*contract.Result, *attempt.Error) {
	var r contract.Result
	if err := strictjson.Unmarshal(data, &r); err != nil {
		what := "sent no Result: "
		if e, ok := errors.AsType[*strictjson.Error](err); ok && e.Pointer == "" { // the detail is a predicate
			what += "the reply "
		}
		return nil, c.policy.BadResult(what+sanitizeText(err.Error()), err)
	}
	if details := strictjson.Validate(&r); len(details) > 0 {
		return nil, c.policy.BadResult("sent no Result: "+sanitizeText(details[0].Pointer+" "+details[0].Detail), nil)
	}
	if r.TaskID != "" && r.TaskID != c.Task.TaskID {
		return nil, c.policy.BadResult("sent the Result of another task", nil)
	}
	return &r, nil
}

func isEncodingError(err error) bool {
	_, corrupt := errors.AsType[flate.CorruptInputError](err)
	return corrupt || errors.Is(err, errUnknownEncoding) || errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum)
}

// readBody reads and decompresses the reply into buf. Memory grows with the
// bytes received, not with the announced length.
func readBody(buf *bytes.Buffer, resp *http.Response) error {
	encoding := strings.ToLower(strings.Join(resp.Header.Values("Content-Encoding"), ","))
	var r io.Reader = resp.Body
	switch encoding {
	case "", "identity":
		if resp.ContentLength > maxReply {
			return errTooLarge
		}
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(&cappedReader{r: r, left: maxEncoded})
		if err != nil {
			return err
		}
		r = z
	default:
		return fmt.Errorf("%w: %q", errUnknownEncoding, encoding)
	}
	_, err := buf.ReadFrom(&cappedReader{r: r, left: maxReply})
	return err
}

// cappedReader fails with errTooLarge after left bytes, unlike an
// io.LimitedReader, which ends with io.EOF.
type cappedReader struct {
	r    io.Reader
	left int64
}

// Read implements io.Reader.
func (c *cappedReader) Read(p []byte) (int, error) {
	if int64(len(p)) > c.left+1 {
		p = p[:c.left+1]
	}
	n, err := c.r.Read(p)
	if c.left -= int64(n); c.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}

// bufferPool reuses the buffers of replies.
type bufferPool struct{ pool sync.Pool }

func (b *bufferPool) get() *bytes.Buffer {
	if buf, ok := b.pool.Get().(*bytes.Buffer); ok {
		return buf
	}
	return new(bytes.Buffer)
}

func (b *bufferPool) put(buf *bytes.Buffer) {
	if buf.Cap() <= maxPooled {
		buf.Reset()
		b.pool.Put(buf)
	}
}

// sanitizeText shortens text that contains parts of a reply, and removes control and
// bidirectional formatting characters.
func sanitizeText(s string) string {
	const maxLen = 160
	s = strings.Map(func(r rune) rune {
		if plaintext.IsControl(r) {
			return -1
		}
		return r
	}, s)
	if len(s) <= maxLen {
		return s
	}
	return strings.ToValidUTF8(s[:maxLen], "") + "…"
}

// removeControls replaces control and bidirectional formatting characters by spaces.
func removeControls(s string) string {
	return strings.Map(func(r rune) rune {
		if plaintext.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}
