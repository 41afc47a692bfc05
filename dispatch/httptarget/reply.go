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
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/strictjson"
)

const (
	maxReply = 4 << 20 // of a Result, decoded
	// maxEncoded is what is read of a compressed reply: gzip makes nothing
	// longer than this, unless it means to (a stream of empty members).
	maxEncoded = maxReply + 64<<10
)

// errTooLarge is how capped ends a reply.
var errTooLarge = errors.New("the reply is too large")

// read makes of a reply a Result or a failure. Bodies of anything but a 200 are
// not looked at: closing one hangs up.
func (e *errand) read(ctx context.Context, resp *http.Response) (*contract.Result, *failure) {
	agent := e.call.Agent.ID
	switch status := resp.StatusCode; {
	case status == http.StatusOK:
		return e.readResult(ctx, resp)
	case status == http.StatusAccepted:
		return nil, e.accepted()
	case status == http.StatusTooManyRequests: // a promise that it was not begun
		return nil, &failure{
			code: contract.TaskAgentUnavailable, detail: agent + " answered 429: it takes no more tasks now",
			retry: e.call.Agent.Endpoint.Idempotent, after: parseRetryAfter(resp.Header, time.Now()),
		}
	case status == http.StatusRequestTimeout || status >= 500:
		f := e.unsettled(fmt.Sprintf("%s answered %d", agent, status), nil)
		f.after = parseRetryAfter(resp.Header, time.Now())
		if status == http.StatusRequestTimeout {
			f.health = dispatch.HealthUnknown // the line may have been slow
		}
		return nil, f
	case status >= 400:
		return nil, &failure{
			code: contract.TaskAgentUnavailable, detail: fmt.Sprintf("%s refused the task with %d", agent, status), health: dispatch.HealthGood,
		}
	case status >= 300:
		return nil, e.badResult(fmt.Sprintf("answered %d: redirects are not followed; correct endpoint.url", status), nil)
	default:
		return nil, e.badResult(fmt.Sprintf("answered %d: a Result comes with 200", status), nil)
	}
}

// readResult reads the body of a 200.
func (e *errand) readResult(ctx context.Context, resp *http.Response) (*contract.Result, *failure) {
	buf := e.target.buffers.get()
	defer e.target.buffers.put(buf) // the Result holds no part of it: decoding copies
	err := readBody(buf, resp)
	switch {
	case err == nil:
		return e.decode(buf.Bytes())
	case errors.Is(err, errTooLarge):
		return nil, e.badResult(fmt.Sprintf("sent more than the %d bytes a Result may have", maxReply), err)
	case isEncodingError(err):
		return nil, e.badResult("sent a reply that cannot be decoded: only gzip is understood", err)
	case ctx.Err() != nil:
		return nil, e.ended(ctx, true)
	}
	f := e.badResult("sent a reply that breaks off", err)
	f.retry = e.call.Agent.Endpoint.Idempotent
	return nil, f
}

// decode reads a Result, strictly.
func (e *errand) decode(data []byte) (*contract.Result, *failure) {
	var r contract.Result
	if err := strictjson.Unmarshal(data, &r); err != nil {
		return nil, e.badResult("sent no Result: "+clean(err.Error()), err)
	}
	if details := strictjson.Validate(&r); len(details) > 0 {
		return nil, e.badResult("sent no Result: "+clean(details[0].Pointer+" "+details[0].Detail), nil)
	}
	if r.TaskID != "" && r.TaskID != e.call.Task.TaskID {
		return nil, e.badResult("sent the Result of another task", nil)
	}
	return &r, nil
}

func isEncodingError(err error) bool {
	_, corrupt := errors.AsType[flate.CorruptInputError](err)
	return corrupt || errors.Is(err, errEncoding) || errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum)
}

// errEncoding is a reply in an encoding nobody asked for.
var errEncoding = errors.New("unknown content encoding")

// readBody reads the reply into buf and takes the encoding off. Memory grows
// with what has come, not with what is announced.
func readBody(buf *bytes.Buffer, resp *http.Response) error {
	encoding := strings.ToLower(strings.Join(resp.Header.Values("Content-Encoding"), ","))
	var r io.Reader = resp.Body
	switch encoding {
	case "", "identity":
		if resp.ContentLength > maxReply {
			return errTooLarge
		}
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(&capped{r: r, left: maxEncoded})
		if err != nil {
			return err
		}
		r = z
	default:
		return fmt.Errorf("%w: %q", errEncoding, encoding)
	}
	_, err := buf.ReadFrom(&capped{r: r, left: maxReply})
	return err
}

// capped is a reader that fails with errTooLarge where more than left bytes
// come.
type capped struct {
	r    io.Reader
	left int64
}

// Read implements io.Reader.
func (c *capped) Read(p []byte) (int, error) {
	if int64(len(p)) > c.left+1 {
		p = p[:c.left+1]
	}
	n, err := c.r.Read(p)
	if c.left -= int64(n); c.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}

// clean makes text that holds an agent's words fit for one line: short, and
// nothing a terminal would obey.
func clean(s string) string {
	const most = 160
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x200b && r <= 0x200f || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0xfeff {
			return -1
		}
		return r
	}, s)
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
