package httpserver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/caprouter/caprouter/contract"
)

// minRead is the smallest capacity that a read from the body gets.
const minRead = 512

// BodySpec describes the request body of a route. If MaxBytes is 0, the body is
// not read.
type BodySpec struct {
	MaxBytes   int
	MediaTypes []string // accepted; the first is the preferred one
	Optional   bool     // an empty body needs no media type
}

// requestBody is the body of a request between reading and ReleaseBody.
type requestBody struct {
	data     []byte
	buf      *bytes.Buffer // holds data
	reserved int64         // bytes of Server.requestMemory
	complete bool          // the whole body was read
}

// Body returns the body of the request. It is valid until ReleaseBody, and nil if
// there is none.
func (c *Context) Body() []byte { return c.body.data }

// ReleaseBody returns the memory of the body. Handlers call it as soon as they
// have decoded the body; it must not hold slices of the body then.
func (c *Context) ReleaseBody() {
	b := &c.body
	c.server.requestMemory.releaseBytes(c.MemoryOwner, b.reserved)
	b.reserved, b.data = 0, nil
	if b.buf != nil {
		c.server.buffers.put(b.buf)
		b.buf = nil
	}
}

// receiveBody reads the whole body. That happens before the request acquires a
// permit, so that slow senders only cost a connection.
func (s *Server) receiveBody(c *Context, spec *BodySpec) error {
	if spec.Optional && c.Request.ContentLength == 0 { // -1 if the length is unknown
		return nil
	}
	if err := c.checkContentHeaders(spec.MediaTypes); err != nil {
		return err
	}
	if c.Request.ContentLength > int64(spec.MaxBytes) {
		return errTooLarge(spec.MaxBytes)
	}
	c.body.buf = s.buffers.get()
	data, err := s.readBody(c, spec.MaxBytes)
	if err != nil {
		return err
	}
	c.body.data, c.body.complete = data, true
	return nil
}

// rejectedBodyTimeout bounds the time for the rest of the body of a request that
// was rejected. net/http reads some of it before it responds, so that clients
// that send before they read get the response. Without this limit a slow body
// would delay the response until readTimeout.
const rejectedBodyTimeout = 5 * time.Second

// hurryBody shortens the read deadline if the body was not read.
func (c *Context) hurryBody() {
	switch {
	case c.body.complete || c.Request.ContentLength == 0:
	case c.Draining():
		c.limitRead(0)
	default:
		c.limitRead(rejectedBodyTimeout)
	}
}

// readBody reads a body of at most limit bytes, whatever the value of Content-Length.
func (s *Server) readBody(c *Context, limit int) (body []byte, err error) {
	// Not buf.ReadFrom, because it has no limit, and an io.LimitedReader costs an
	// allocation per request.
	b := c.body.buf.AvailableBuffer()
	slow := false // most bodies arrive with the first read
	defer func() {
		if slow {
			s.uploads.end(c, err)
		}
	}()
	for reads := 0; ; reads++ {
		if reads == 1 {
			slow = true
			s.uploads.add(c)
		}
		before := cap(b)
		b = slices.Grow(b, minRead)
		if grown := int64(cap(b) - before); grown > 0 { // the pooled capacity is not counted
			if !s.requestMemory.reserveBytes(c.MemoryOwner, grown) {
				return nil, errOverloaded
			}
			c.body.reserved += grown
		}
		n, err := c.Request.Body.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case len(b) > limit:
			return nil, errTooLarge(limit)
		case err == io.EOF:
			_, _ = c.body.buf.Write(b) // keeps the grown capacity for the next request
			return c.body.buf.Bytes(), nil
		case err != nil:
			return nil, c.bodyReadError(err)
		}
	}
}

func errTooLarge(limit int) error {
	return &contract.Error{
		Code:    contract.CodePayloadTooLarge,
		Message: fmt.Sprintf("the limit is %d bytes", limit),
	}
}

// bodyReadError maps an error of reading the body, and closes the connection,
// whose read position is undefined.
func (c *Context) bodyReadError(err error) error {
	c.SetHeader("Connection", "close")
	e := &contract.Error{Code: contract.CodeInvalidRequest, Malformed: true, Message: "the body cannot be read"}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded) && c.Draining():
		return &contract.Error{Code: contract.CodeOverloaded, Message: "the server is stopping, and the body has not arrived"}
	case errors.Is(err, os.ErrDeadlineExceeded):
		e.Message = fmt.Sprintf("the body did not arrive within %s", readTimeout)
	case errors.Is(err, io.ErrUnexpectedEOF):
		e.Message = "the body ended before its announced length"
	}
	return e
}

// checkContentHeaders rejects compressed bodies and media types that are not
// accepted.
func (c *Context) checkContentHeaders(accepted []string) error {
	h := c.Request.Header
	for _, encoding := range h["Content-Encoding"] {
		if !strings.EqualFold(encoding, "identity") {
			c.SetHeader("Accept-Encoding", "identity") // RFC 9110 §12.5.3
			return &contract.Error{Code: contract.CodeUnsupportedMediaType, Message: "compressed bodies are not supported"}
		}
	}
	types := h["Content-Type"]
	if len(types) == 1 && (types[0] == accepted[0] || isAccepted(types[0], accepted)) {
		return nil
	}
	return &contract.Error{
		Code:    contract.CodeUnsupportedMediaType,
		Message: "the Content-Type must be " + strings.Join(accepted, ", ") + ", in UTF-8",
	}
}

func isAccepted(contentType string, accepted []string) bool {
	mediaType, params, err := mime.ParseMediaType(contentType)
	if err != nil || !slices.Contains(accepted, mediaType) {
		return false
	}
	charset, given := params["charset"]
	return !given || strings.EqualFold(charset, "utf-8")
}
