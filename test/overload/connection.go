package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/caprouter/caprouter/test/internal/process"
)

const maxAnswerBytes = 1 << 20

// connection is the kept-alive connection of one caller. http.Client would need two
// goroutines per connection, and half of the CPU time that the router should have. It
// is not safe for concurrent use.
type connection struct {
	addr string
	conn net.Conn // nil if not connected
	read *bufio.Reader
}

func (l *connection) ensureDialed(ctx context.Context) error {
	if l.conn != nil {
		return nil
	}
	dialer := net.Dialer{Timeout: process.IOTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", l.addr)
	if err != nil {
		return err
	}
	l.conn, l.read = conn, bufio.NewReader(conn)
	return nil
}

func (l *connection) close() {
	if l.conn != nil {
		_ = l.conn.Close()
		l.conn = nil
	}
}

// roundTrip sends a request and reads the answer. It closes the connection after an
// error.
func (l *connection) roundTrip(ctx context.Context, request []byte) (response, error) {
	if err := l.ensureDialed(ctx); err != nil {
		return response{}, err
	}
	r, err := l.sendRequest(request)
	if err != nil || r.closes {
		l.close()
	}
	return r, err
}

func (l *connection) sendRequest(request []byte) (response, error) {
	if err := l.conn.SetDeadline(time.Now().Add(process.IOTimeout)); err != nil {
		return response{}, err
	}
	if _, err := l.conn.Write(request); err != nil {
		return response{}, err
	}
	resp, err := http.ReadResponse(l.read, nil)
	if err != nil {
		return response{}, fmt.Errorf("read an answer: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswerBytes))
	if err != nil {
		return response{}, fmt.Errorf("read the body of an answer: %w", err)
	}
	return response{status: resp.StatusCode, header: resp.Header, body: body, closes: resp.Close || len(body) == maxAnswerBytes}, nil
}
