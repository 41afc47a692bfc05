package rest

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// writeTimeout is what a caller gets to take an answer off our hands. It starts
// with the answer, not with the request, which may take minutes.
const writeTimeout = 30 * time.Second

// The media types of our answers.
const (
	typeJSON    = "application/json"
	typeProblem = "application/problem+json"
	typeJWKS    = "application/jwk-set+json"
)

// exchange is one request on its way through: the writer of its answer, and what
// was found out about it on the way.
type exchange struct {
	http.ResponseWriter

	req     *http.Request
	id      string             // of the request, UUIDv7
	route   *route             // nil when there is no such path or method
	caller  *contract.Caller   // nil on public routes, and on those of agents
	grant   contract.TaskGrant // of an agent that calls back
	lane    lane               // in which it has a place; laneFree = none
	body    []byte             // between receive and release
	buf     *bytes.Buffer      // holds it
	held    int64              // bytes of Server.receiving
	arrived bool               // the whole body did
	outcome string             // the answer's status, or the error's code
	failed  bool               // an error took the answer's place
	status  int                // HTTP, 0 while nothing is written
	size    int64

	values [12]string // what set has put into the header: one allocation for all
	used   int
}

// exchangeOf returns the exchange that ServeHTTP gave to echo.
func exchangeOf(c echo.Context) *exchange { return c.Response().Writer.(*exchange) }

// Unwrap lets http.ResponseController reach the connection.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// WriteHeader notes the status and starts the clock of a slow reader.
func (x *exchange) WriteHeader(status int) {
	if x.status == 0 {
		x.status = status
		// Writers without a connection, in tests, have no deadline to set.
		_ = http.NewResponseController(x.ResponseWriter).SetWriteDeadline(time.Now().Add(writeTimeout))
	}
	x.ResponseWriter.WriteHeader(status)
}

func (x *exchange) Write(p []byte) (int, error) {
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	n, err := x.ResponseWriter.Write(p)
	x.size += int64(n)
	return n, err
}

// set sets a header whose name is in canonical form already.
func (x *exchange) set(name, value string) {
	if x.used == len(x.values) {
		x.Header()[name] = []string{value}
		return
	}
	x.values[x.used] = value
	x.used++
	x.Header()[name] = x.values[x.used-1 : x.used : x.used]
}

// writeBytes sends a whole answer. An error means that the caller is gone, which
// the context of the request says too.
func (x *exchange) writeBytes(status int, contentType string, body []byte) {
	x.set("Content-Type", contentType)
	x.set("Content-Length", strconv.Itoa(len(body)))
	x.WriteHeader(status)
	_, _ = x.Write(body)
}

// writeJSON encodes first and writes after, so that a value that cannot be
// encoded becomes a proper error.
func (s *Server) writeJSON(x *exchange, status int, contentType string, v any) error {
	buf := s.buffers.get()
	defer s.buffers.put(buf)
	if err := strictjson.MarshalWrite(buf, v); err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	s.deliver(x, status, contentType, buf.Bytes())
	return nil
}

// The answers that are being written while their requests have no place in a lane
// any more: of all, and of one caller.
const (
	maxSending   = 256 << 20
	shareSending = maxSending / 8
)

// deliver sends a whole answer. Its request is over before the first byte goes
// out: who takes the answer slowly takes no place from anybody.
func (s *Server) deliver(x *exchange, status int, contentType string, body []byte) {
	size := int64(len(body))
	if s.sending.take(x.payer(), size) {
		defer s.sending.give(x.payer(), size)
		s.delivering.Add(1)
		defer s.delivering.Add(-1)
		s.leave(x)
	}
	x.writeBytes(status, contentType, body)
}

// maxPooled keeps a rare large body from staying in memory for good.
const maxPooled = 128 << 10

// bufferPool lends buffers for the bodies of requests and answers.
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
