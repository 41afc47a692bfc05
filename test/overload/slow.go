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

	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/test/internal/process"
)

const (
	byteInterval   = 500 * time.Millisecond
	reconnectDelay = 5 * time.Second
)

// The windows of a connection that reads slowly are small as in a wide area network.
// On loopback the kernel would otherwise buffer a whole response.
const (
	smallBuffer  = 4 << 10
	smallSegment = 1460
)

// slowKind is one way to be slow.
type slowKind struct {
	name  string
	head  []byte // sent immediately
	drip  string // then sent byte by byte, repeatedly
	reads bool   // also read byte by byte
}

func slowKinds() []slowKind {
	return []slowKind{
		{name: "headers", head: []byte("POST " + routePath + " HTTP/1.1\r\nHost: localhost\r\nX-Slow: "), drip: "a"},
		{name: "body", head: []byte(formatPostHeader(routePath, 4096) + "\r\n" + `{"content":{"prompt":"`), drip: "a"},
		// The bytes of drip are not processed before the responses are read. Sending them
		// detects whether the connection is closed, which slow reading does not.
		{name: "reading", head: formatGet(openapiPath, 8), drip: "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", reads: true},
	}
}

// slowStats counts slow connections. It is safe for concurrent use.
type slowStats struct {
	mu     sync.Mutex
	opened int
	ends   map[string]int // connections that the router ended, by how
}

// recordEnd records the end of a connection. how is "" if this program closed it.
func (e *slowStats) recordEnd(how string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.opened++
	if how != "" {
		e.ends[how]++
	}
}

// Ways in which a connection ends, beside an answer.
const (
	endRefused = "not accepted"
	endClosed  = "closed"
)

// startSlowConnections opens connections, evenly over a time, and reopens those that
// end, until stop is called.
func startSlowConnections(ctx context.Context, k slowKind, addr string, many int, over time.Duration) (stop func() (*slowStats, error)) {
	ends := &slowStats{ends: map[string]int{}}
	group := run.New(ctx)
	for i := range many {
		group.Go("slow connection", func(ctx context.Context) error {
			resilience.Sleep(ctx, over*time.Duration(i)/time.Duration(many))
			for ctx.Err() == nil {
				ends.recordEnd(k.holdConnection(ctx, addr))
				resilience.Sleep(ctx, reconnectDelay)
			}
			return nil
		})
	}
	return func() (*slowStats, error) {
		group.Stop(nil)
		return ends, group.Wait()
	}
}

// holdConnection opens a connection and keeps it until the router closes it or ctx
// ends. It returns how the router ended it, or "".
func (k slowKind) holdConnection(ctx context.Context, addr string) (how string) {
	dialer := net.Dialer{Timeout: process.IOTimeout}
	if k.reads {
		dialer.Control = setSmallWindows
	}
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err == nil {
		defer func() { _ = conn.Close() }()
		how = k.exchangeBytes(ctx, conn)
	} else {
		how = endRefused
	}
	if ctx.Err() != nil {
		return ""
	}
	return how
}

// exchangeBytes sends or reads one byte at a time, and returns how the router ended
// the connection.
func (k slowKind) exchangeBytes(ctx context.Context, conn net.Conn) (how string) {
	if err := writeSome(conn, k.head); err != nil {
		return endClosed
	}
	buf := make([]byte, len("HTTP/1.1 200"))
	for i := 0; ; i++ {
		var err error
		if k.reads {
			err = readNextByte(ctx, conn, buf[:1])
		} else {
			how, err = awaitAnswer(conn, buf)
		}
		switch {
		case how != "" || ctx.Err() != nil:
			return how
		case err != nil:
			return endClosed
		}
		if err := writeSome(conn, []byte{k.drip[i%len(k.drip)]}); err != nil {
			return endClosed
		}
	}
}

// readNextByte reads a byte after a pause. A missing byte is not an error.
func readNextByte(ctx context.Context, conn net.Conn, buf []byte) error {
	resilience.Sleep(ctx, byteInterval)
	_ = conn.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := conn.Read(buf)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}

// awaitAnswer waits for an answer, which ends the connection. A missing answer is not
// an error.
func awaitAnswer(conn net.Conn, buf []byte) (how string, err error) {
	_ = conn.SetReadDeadline(time.Now().Add(byteInterval))
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

// writeSome sends as much as the connection accepts. A full buffer is not an error.
func writeSome(conn net.Conn, data []byte) error {
	_ = conn.SetWriteDeadline(time.Now().Add(byteInterval))
	if _, err := conn.Write(data); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return nil
}

func setSmallWindows(_, _ string, raw syscall.RawConn) error {
	var err error
	if controlErr := raw.Control(func(fd uintptr) {
		err = errors.Join(
			syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, smallBuffer),
			syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_MAXSEG, smallSegment))
	}); controlErr != nil {
		return controlErr
	}
	if err != nil {
		return fmt.Errorf("set small windows: %w", err)
	}
	return nil
}

// slowResult contains the measurements of other callers without and with slow
// connections of one kind.
type slowResult struct {
	kind          string
	without, with distribution // latency of good answers
	shed, sent    int          // with slow connections
	stats         *slowStats
}

// maxWith and maxWithout bound how long callers are measured with and without slow
// connections. The router closes the slowest connections after 30 s.
const (
	maxWith        = 45 * time.Second
	maxWithout     = 10 * time.Second
	dialsPerSecond = 250
)

// measureSlow measures callers at a rate, without and with slow connections.
func (s *subject) measureSlow(ctx context.Context, k slowKind, many int, perSecond float64, lasts time.Duration) (*slowResult, error) {
	with := clampDuration(lasts*3/4, 2*time.Second, maxWith)
	without := clampDuration(lasts/6, 500*time.Millisecond, maxWithout)
	logProgress("slow %s: %.0f/s without for %s, then with %d for %s", k.name, perSecond, without, many, with)
	before, err := s.runOpenLoop(ctx, schedule{{perSecond, without}})
	if err != nil {
		return nil, err
	}
	over := min(time.Duration(many)*time.Second/dialsPerSecond, with/2)
	stop := startSlowConnections(ctx, k, s.addr, many, over)
	beside, err := s.runOpenLoop(ctx, schedule{{perSecond, with}})
	stats, stopErr := stop()
	if err := errors.Join(err, stopErr); err != nil {
		return nil, err
	}
	return &slowResult{
		kind: k.name, without: latencies(before, outcomeGood), with: latencies(beside, outcomeGood),
		shed: countOutcomes(beside)[outcomeShed], sent: len(beside), stats: stats,
	}, nil
}
