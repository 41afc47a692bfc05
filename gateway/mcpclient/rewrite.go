package mcpclient

import (
	"bufio"
	"bytes"
	"fmt"
	"io"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// rewritingBody is the body of a reply whose messages are rewritten before the library reads
// them. The goroutine that reads it owns it.
type rewritingBody struct {
	io.Closer
	in      *bufio.Reader
	stream  bool // of events (HTML §9.2), else one message
	rewrite func(message []byte) []byte
	// reopen returns the stream that continues one that has ended, nil if there is none. Nil =
	// there never is.
	reopen func() io.ReadCloser
	out    []byte // rewritten and not yet read
	err    error  // of in
}

func newRewritingBody(body io.ReadCloser, stream bool, rewrite func([]byte) []byte) *rewritingBody {
	return &rewritingBody{Closer: body, in: bufio.NewReader(body), stream: stream, rewrite: rewrite}
}

// Read implements io.Reader.
func (b *rewritingBody) Read(p []byte) (int, error) {
	for len(b.out) == 0 {
		if b.err != nil && !b.continueStream() {
			return 0, b.err
		}
		if b.stream {
			b.readEvent()
			continue
		}
		b.out, b.err = io.ReadAll(b.in)
		if b.err == nil {
			b.out, b.err = b.rewrite(b.out), io.EOF
		}
	}
	n := copy(p, b.out)
	b.out = b.out[n:]
	return n, nil
}

// continueStream replaces a stream that has ended, and reports whether it can.
func (b *rewritingBody) continueStream() bool {
	if b.reopen == nil {
		return false
	}
	_ = b.Close() // it has ended
	next := b.reopen()
	if next == nil {
		return false
	}
	b.Closer, b.in, b.err = next, bufio.NewReader(next), nil
	return true
}

// readEvent reads one event. Its data follow its other lines. An event in which the body ends
// is not rewritten, unless its data are JSON: the server has not sent all of them.
func (b *rewritingBody) readEvent() {
	var event, data, raw []byte
	for b.err == nil {
		var line []byte
		line, b.err = b.in.ReadBytes('\n')
		if len(event)+len(data)+len(line) > maxBody {
			b.err = fmt.Errorf("the server sent an event of more than %d bytes", maxBody)
			return
		}
		raw = append(raw, line...)
		if value, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = append(data, value...)
			continue
		}
		if len(bytes.TrimRight(line, "\r\n")) == 0 {
			break
		}
		event = append(event, line...)
	}
	data = bytes.TrimSpace(data)
	if b.err != nil && !strictjson.IsJSON(data) {
		if b.reopen == nil {
			b.out = raw
		}
		return
	}
	if len(data) > 0 {
		data = bytes.ReplaceAll(b.rewrite(data), []byte("\n"), []byte("\ndata:"))
		event = append(append(append(event, "data: "...), data...), '\n')
	}
	b.out = append(event, '\n')
}
