package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/caprouter/caprouter/internal/run"
)

// How slow a slow connection is, and when it comes again after its end.
const (
	dripEvery  = 500 * time.Millisecond
	comesAgain = 5 * time.Second
)

// The windows of a connection that reads slowly: small, as over a network and not
// as over loopback, where the kernel would take a whole answer off the router.
const (
	tinyBuffer  = 4 << 10
	tinySegment = 1460
)

// slowKind is one way to be slow.
type slowKind struct {
	name  string
	head  []byte // sent at once
	drip  string // then one byte of it after the other, again and again
	reads bool   // reads as slowly
}

func slowKinds() []slowKind {
	return []slowKind{
		{name: "headers", head: []byte("POST " + routePath + " HTTP/1.1\r\nHost: localhost\r\nX-Slow: "), drip: "a"},
		{name: "body", head: []byte(postHead(routePath, 4096) + "\r\n" + `{"content":{"prompt":"`), drip: "a"},
		// What drips is never read as long as the answers are not: it finds out
		// whether the connection is there, which reading slowly does not.
		{name: "reading", head: get(openapiPath, 8), drip: "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", reads: true},
	}
}

// slowEnds books how slow connections end. Safe for several goroutines.
type slowEnds struct {
	mu     sync.Mutex
	opened int
	open   int
	most   int                        // open at once
	ends   map[string][]time.Duration // how the router ended them, and after what time
	left   []time.Duration            // how long those were open that we ended
}

func (e *slowEnds) begin() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.opened++
	e.open++
	e.most = max(e.most, e.open)
}

// refused books one that did not come about.
func (e *slowEnds) refused(after time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.opened++
	e.ends[endRefused] = append(e.ends[endRefused], after)
}

// end books the end of a connection; how is empty when it was ours.
func (e *slowEnds) end(how string, after time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open--
	if how == "" {
		e.left = append(e.left, after)
		return
	}
	e.ends[how] = append(e.ends[how], after)
}

// How a connection ends. An answer is an end as well.
const (
	endRefused = "not accepted"
	endClosed  = "closed"
)

// slowCrowd opens so many connections, evenly over a time, and keeps them until
// ctx ends: who is thrown out comes again.
func slowCrowd(ctx context.Context, k slowKind, addr string, many int, over time.Duration) (stop func() (*slowEnds, error)) {
	ends := &slowEnds{ends: map[string][]time.Duration{}}
	group := run.New(ctx)
	for i := range many {
		group.Go("slow connection", func(ctx context.Context) error {
			pause(ctx, over*time.Duration(i)/time.Duration(many))
			for ctx.Err() == nil {
				k.hold(ctx, addr, ends)
				pause(ctx, comesAgain)
			}
			return nil
		})
	}
	return func() (*slowEnds, error) {
		group.Stop(nil)
		return ends, group.Wait()
	}
}

// hold opens a connection and keeps it until the router ends it, or we do.
func (k slowKind) hold(ctx context.Context, addr string, ends *slowEnds) {
	dialer := net.Dialer{Timeout: ioTimeout}
	if k.reads {
		dialer.Control = tinyWindows
	}
	began := time.Now()
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		if ctx.Err() == nil {
			ends.refused(time.Since(began))
		}
		return
	}
	defer func() { _ = conn.Close() }()
	ends.begin()
	how := k.drag(ctx, conn)
	if ctx.Err() != nil {
		how = ""
	}
	ends.end(how, time.Since(began))
}

// drag sends, or reads, a byte at a time, and returns how the router ended it.
func (k slowKind) drag(ctx context.Context, conn net.Conn) (how string) {
	if err := write(conn, k.head); err != nil {
		return endClosed
	}
	buf := make([]byte, len("HTTP/1.1 200"))
	for i := 0; ; i++ {
		var err error
		if k.reads {
			err = readByte(ctx, conn, buf[:1])
		} else {
			how, err = listen(conn, buf)
		}
		switch {
		case how != "" || ctx.Err() != nil:
			return how
		case err != nil:
			return endClosed
		}
		if err := write(conn, []byte{k.drip[i%len(k.drip)]}); err != nil {
			return endClosed
		}
	}
}

// readByte reads a byte after a while. That there is none is no error.
func readByte(ctx context.Context, conn net.Conn, buf []byte) error {
	pause(ctx, dripEvery)
	_ = conn.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := conn.Read(buf)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}

// listen waits a while for an answer, which ends the connection. That there is
// none is no error.
func listen(conn net.Conn, buf []byte) (how string, err error) {
	_ = conn.SetReadDeadline(time.Now().Add(dripEvery))
	n, err := io.ReadFull(conn, buf)
	if n > 0 {
		_, status, _ := strings.Cut(string(buf[:n]), " ")
		return "answered " + status, nil
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return "", nil
	}
	return "", err
}

// write sends what fits; a connection that takes nothing more is there still.
func write(conn net.Conn, data []byte) error {
	_ = conn.SetWriteDeadline(time.Now().Add(dripEvery))
	if _, err := conn.Write(data); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return nil
}

// tinyWindows makes the windows of a socket small, before it is connected.
func tinyWindows(_, _ string, raw syscall.RawConn) error {
	var err error
	if controlErr := raw.Control(func(fd uintptr) {
		err = errors.Join(
			syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, tinyBuffer),
			syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_MAXSEG, tinySegment))
	}); controlErr != nil {
		return controlErr
	}
	if err != nil {
		return fmt.Errorf("make the windows small: %w", err)
	}
	return nil
}
