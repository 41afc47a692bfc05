package httpserver

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/limits"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/internal/telemetry"
)

// writeTimeout bounds the time to write a response. It starts with the response,
// not with the request, because handling a request may take minutes.
const writeTimeout = 30 * time.Second

// Media types of responses.
const (
	MediaTypeJSON   = "application/json"
	MediaTypeEvents = "text/event-stream" // HTML §9.2
)

// Context is one HTTP request and the response to it, which it writes as an
// http.ResponseWriter. The goroutine that serves the request owns it.
type Context struct {
	responseWriter

	Request     *http.Request
	ID          string           // of the request; also sent as X-Request-Id
	Caller      *contract.Caller // nil on public routes and on routes with Authorize
	MemoryOwner limits.Principal // whose share of memory the request uses: a tenant, or a caller without one

	server  *Server
	echo    echo.Context
	route   *mountedRoute // nil if no route has the path and method
	body    requestBody
	permit  admissionPermit
	span    telemetry.Span
	outcome string // status of the response, or code of the error
	failed  bool   // an error was sent
}

// contextOf returns the Context that ServeHTTP passed to echo as its writer.
func contextOf(ec echo.Context) *Context { return ec.Response().Writer.(*Context) }

// PathParam returns a parameter of the route's path.
func (c *Context) PathParam(name string) string { return c.echo.Param(name) }

// TraceID returns the trace id of the request's span, or that of its traceparent header,
// or "" if there is no valid one.
func (c *Context) TraceID() string {
	if id := telemetry.TraceID(c.Request.Context()); id != "" {
		return id
	}
	return traceID(c.Request.Header)
}

// ChangeClass exchanges the permit of the request for one of another class. It is for a path whose
// body determines the class.
func (c *Context) ChangeClass(class Class) error {
	permit, err := c.server.admission.acquire(class, c.Caller)
	if err != nil {
		return err
	}
	c.permit.release()
	c.permit = permit
	return nil
}

// SetOutcome sets the outcome for the access log, for example "completed".
func (c *Context) SetOutcome(outcome string) { c.outcome = outcome }

// Draining reports whether the server is shutting down.
func (c *Context) Draining() bool { return c.server.shutdown.draining.Load() }

// ShutdownStarted returns a channel that is closed when the server begins to shut down. It
// is for requests that only wait.
func (c *Context) ShutdownStarted() <-chan struct{} { return c.server.shutdown.started }

// WriteJSON sends v as the whole response. It encodes v before it writes, so that
// a value that cannot be encoded becomes an error response.
func (c *Context) WriteJSON(status int, contentType string, v any) error {
	buf := c.server.buffers.get()
	defer c.server.buffers.put(buf)
	if err := strictjson.MarshalWrite(buf, v); err != nil {
		return fmt.Errorf("encode the response: %w", err)
	}
	c.WriteEncoded(status, contentType, buf.Bytes())
	return nil
}

// WriteEncoded sends the whole response, which is encoded already. It releases the
// permit before the first byte, so that a slow reader does not keep other requests from
// being admitted, unless the responses being written already hold too much memory.
func (c *Context) WriteEncoded(status int, contentType string, body []byte) {
	s, size := c.server, int64(len(body))
	if s.responseMemory.reserveBytes(c.MemoryOwner, size) {
		defer s.responseMemory.releaseBytes(c.MemoryOwner, size)
		s.delivering.Add(1)
		defer s.delivering.Add(-1)
		c.permit.release()
	}
	c.WriteBytes(status, contentType, body)
}

// responseWriter writes the response and keeps its status and size.
type responseWriter struct {
	writer http.ResponseWriter
	status int // 0 while nothing has been written
	size   int64

	values     [12]string // header values of SetHeader: one allocation for all
	valueCount int
}

// Unwrap lets http.ResponseController reach the connection.
func (r *responseWriter) Unwrap() http.ResponseWriter { return r.writer }

// Header implements http.ResponseWriter.
func (r *responseWriter) Header() http.Header { return r.writer.Header() }

// WriteHeader writes the status and starts the write timeout.
func (r *responseWriter) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
		r.ExtendWriteDeadline()
	}
	r.writer.WriteHeader(status)
}

// ExtendWriteDeadline starts the write timeout again, for a response that is written in
// several parts.
func (r *responseWriter) ExtendWriteDeadline() {
	// Writers without a connection, in tests, have no deadline to set.
	_ = http.NewResponseController(r.writer).SetWriteDeadline(time.Now().Add(writeTimeout))
}

// ClearWriteDeadline stops the write timeout, while a response that is written in several
// parts waits for the next one.
func (r *responseWriter) ClearWriteDeadline() {
	_ = http.NewResponseController(r.writer).SetWriteDeadline(time.Time{})
}

// Write implements http.ResponseWriter.
func (r *responseWriter) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.WriteHeader(http.StatusOK)
	}
	n, err := r.writer.Write(p)
	r.size += int64(n)
	return n, err
}

// SetHeader sets a header whose name is in canonical form.
func (r *responseWriter) SetHeader(name, value string) {
	if r.valueCount == len(r.values) {
		r.Header()[name] = []string{value}
		return
	}
	i := r.valueCount
	r.values[i] = value
	r.valueCount++
	r.Header()[name] = r.values[i : i+1 : i+1]
}

// WriteBytes sends a whole response. Write errors are ignored: they mean that the
// client disconnected, which also cancels the context of the request.
func (r *responseWriter) WriteBytes(status int, contentType string, body []byte) {
	r.SetHeader("Content-Type", contentType)
	r.SetHeader("Content-Length", strconv.Itoa(len(body)))
	r.WriteHeader(status)
	_, _ = r.Write(body)
}

// maxPooled is the capacity above which a buffer is not kept for reuse.
const maxPooled = 128 << 10

// bufferPool holds buffers for the bodies of requests and responses.
type bufferPool struct{ pool sync.Pool }

func (p *bufferPool) get() *bytes.Buffer {
	if buf, ok := p.pool.Get().(*bytes.Buffer); ok {
		return buf
	}
	return bytes.NewBuffer(make([]byte, 0, 4<<10))
}

func (p *bufferPool) put(buf *bytes.Buffer) {
	if buf.Cap() <= maxPooled {
		buf.Reset()
		p.pool.Put(buf)
	}
}
