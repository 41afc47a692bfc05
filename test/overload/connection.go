package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// maxAnswerBytes bounds what is read of an answer.
const maxAnswerBytes = 1 << 20

// link is a connection of one caller, who keeps it. An http.Client would do, and
// take two goroutines and half of the CPU that the router is to have. Not for
// several goroutines.
type link struct {
	addr string
	conn net.Conn // nil: there is none yet
	read *bufio.Reader
}

// dial connects, unless the link is.
func (l *link) dial(ctx context.Context) error {
	if l.conn != nil {
		return nil
	}
	dialer := net.Dialer{Timeout: ioTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", l.addr)
	if err != nil {
		return err
	}
	l.conn, l.read = conn, bufio.NewReader(conn)
	return nil
}

func (l *link) close() {
	if l.conn != nil {
		_ = l.conn.Close()
		l.conn = nil
	}
}

// ask sends a request and reads the answer. After an error the connection is gone.
func (l *link) ask(ctx context.Context, request []byte) (reply, error) {
	if err := l.dial(ctx); err != nil {
		return reply{}, err
	}
	r, err := l.exchange(request)
	if err != nil || r.last {
		l.close()
	}
	return r, err
}

func (l *link) exchange(request []byte) (reply, error) {
	if err := l.conn.SetDeadline(time.Now().Add(ioTimeout)); err != nil {
		return reply{}, err
	}
	if _, err := l.conn.Write(request); err != nil {
		return reply{}, err
	}
	resp, err := http.ReadResponse(l.read, nil)
	if err != nil {
		return reply{}, fmt.Errorf("read an answer: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswerBytes))
	if err != nil {
		return reply{}, fmt.Errorf("read the body of an answer: %w", err)
	}
	return reply{status: resp.StatusCode, header: resp.Header, body: body, last: resp.Close || len(body) == maxAnswerBytes}, nil
}
