package httpserver

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/testkit"
)

// forever is longer than any test.
const forever = time.Hour

func TestServe_DrainAwaitsRunningRequests(t *testing.T) {
	f := newBlockedAPI()
	srv := startServer(t, Config{DrainTimeout: forever}, &f.fakeAPI)
	running := srv.sendInBackground()
	testkit.Receive(t, f.entered)

	stopped := make(chan error, 1)
	go func() { stopped <- srv.stop() }()
	testkit.Eventually(t, "the listener is closed", func() bool {
		conn, err := net.Dial("tcp", srv.addr)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
	if w := serve(srv.Server, localRequest("GET", "/health", "")); w.Body.String() != `{"draining":true}` {
		t.Errorf("got %s while draining, want draining true", w.Body)
	}
	select {
	case err := <-stopped:
		t.Fatalf("got Serve return %v while a request was running", err)
	default:
	}
	close(f.release)
	if got := testkit.Receive(t, running); got != 200 {
		t.Errorf("running request: got %d, want 200", got)
	}
	if err := testkit.Receive(t, stopped); err != nil {
		t.Errorf("Serve: %v", err)
	}
}

func TestServe_DrainCancelsRequestsThatDoNotEnd(t *testing.T) {
	f := newBlockedAPI()
	srv := startServer(t, Config{DrainTimeout: time.Millisecond, DrainGrace: forever}, &f.fakeAPI)
	running := srv.sendInBackground()
	testkit.Receive(t, f.entered)
	if err := srv.stop(); err != nil {
		t.Errorf("Serve: %v", err)
	}
	if cause := testkit.Receive(t, f.ended); !errors.Is(cause, errShutdown) {
		t.Errorf("context: got %v, want %v", cause, errShutdown)
	}
	if got := testkit.Receive(t, running); got != 503 {
		t.Errorf("request: got %d, want 503", got)
	}
}

func TestServe_DrainGivesUpOnRequestsThatIgnoreTheirContext(t *testing.T) {
	f := newBlockedAPI()
	f.ignoreContext = true
	s := newServer(t, Config{DrainTimeout: time.Millisecond, DrainGrace: time.Millisecond}, &f.fakeAPI)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, ln) }()
	srv := &testServer{Server: s, addr: ln.Addr().String(), client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	running := srv.sendInBackground()
	testkit.Receive(t, f.entered)
	cancel()
	if err := testkit.Receive(t, served); err == nil || !strings.Contains(err.Error(), "1 requests did not end") {
		t.Errorf("Serve: got %v, want an error with the number of requests", err)
	}
	if got := testkit.Receive(t, running); got != 0 {
		t.Errorf("request: got %d, want a broken connection", got)
	}
	close(f.release)
}

func TestServe_RejectsOtherAddressesWithoutAuthentication(t *testing.T) {
	ln, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Skip(err)
	}
	if err := newServer(t, Config{}, &fakeAPI{}).Serve(t.Context(), ln); err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Errorf("got error %v, want one that names loopback addresses", err)
	}
	if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got the listener still open: %v", err)
	}
}

func TestServe_ReturnsListenerError(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = ln.Close()
	if err := newServer(t, Config{}, &fakeAPI{}).Serve(t.Context(), ln); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want %v", err, net.ErrClosed)
	}
}

func TestServer_CancelsRequestWhenCallerDisconnects(t *testing.T) {
	f := newBlockedAPI()
	srv := startServer(t, Config{}, &f.fakeAPI)
	ctx, disconnect := context.WithCancel(t.Context())
	go func() {
		<-f.entered
		disconnect()
	}()
	if resp, err := srv.open(ctx, "POST", "/work", "{}"); err == nil {
		resp.Body.Close()
		t.Errorf("got %d, want an aborted request", resp.StatusCode)
	}
	if cause := testkit.Receive(t, f.ended); !errors.Is(cause, context.Canceled) {
		t.Errorf("context: got %v, want %v", cause, context.Canceled)
	}
}

// sendRaw sends bytes and returns the statuses of the responses, up to the end of the connection.
func sendRaw(t *testing.T, srv *testServer, text string) string {
	t.Helper()
	conn, err := net.Dial("tcp", srv.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(testkit.Patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	var statuses []string
	r := bufio.NewReader(conn)
	for {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return strings.Join(statuses, " ")
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		statuses = append(statuses, resp.Status[:3])
	}
}

// TestServer_RejectsAmbiguousFraming: requests that two servers could parse differently are
// rejected, and a handler gets exactly the body that was sent.
func TestServer_RejectsAmbiguousFraming(t *testing.T) {
	const body = `{"content":{"prompt":"Please do a code review of this python module"}}` // 70 bytes
	head := "POST /work HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	cases := []struct {
		name, text, want string
		handled          int64
	}{
		{"plain", head + "Connection: close\r\nContent-Length: 70\r\n\r\n" + body, "200", 1},
		{"two lengths", head + "Content-Length: 70\r\nContent-Length: 5\r\n\r\n" + body, "400", 0},
		{"two lengths in one", head + "Content-Length: 70, 5\r\n\r\n" + body, "400", 0},
		{"signed length", head + "Content-Length: +70\r\n\r\n" + body, "400", 0},
		{"negative length", head + "Content-Length: -1\r\n\r\n" + body, "400", 0},
		{"length with a blank", head + "Content-Length : 70\r\n\r\n" + body, "400", 0},
		{"short length hides a request", head + "Content-Length: 2\r\n\r\n{}GET /work HTTP/9.9\r\n\r\n", "200 505", 1},
		{"long length", head + "Content-Length: 500\r\n\r\n" + body, "400", 0},
		{"huge length", head + "Content-Length: 99999999999\r\n\r\n" + body, "413", 0},
		{"unknown encoding", head + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "501", 0},
		{"hidden encoding", head + "Transfer-Encoding: xchunked\r\nContent-Length: 70\r\n\r\n" + body, "501", 0},
		{"broken chunk", head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n" + body + "\r\n0\r\n\r\n", "400", 0},
		{"folded header", head + "X-A: b\r\n c\r\nContent-Length : 70\r\n\r\n" + body, "400", 0},
		{"NUL in a header", head + "X-A: \x00\r\nContent-Length: 70\r\n\r\n" + body, "400", 0},
		{"two hosts", "GET /health HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", "400", 0},
		{"no host", "GET /health HTTP/1.1\r\n\r\n", "400", 0},
		{"no host in 1.0", "GET /health HTTP/1.0\r\n\r\n", "403", 0},
		{"foreign host in the target", "GET http://evil.example/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "403", 0},
		{"asterisk", "OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "404", 0},
		{"connect", "CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\nConnection: close\r\n\r\n", "403", 0},
		{"large headers", "GET /health HTTP/1.1\r\nHost: localhost\r\nX-A: " + strings.Repeat("a", maxHeaderBytes+8<<10) + "\r\n\r\n", "431", 0},
		{"unknown expectation", head + "Expect: 200-ok\r\nContent-Length: 70\r\n\r\n" + body, "417", 0},
		{"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "403", 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := &fakeAPI{}
			got := sendRaw(t, startServer(t, Config{}, f), c.text)
			if got != c.want || f.handled.Load() != c.handled {
				t.Errorf("got statuses %q and %d handled requests, want %q and %d", got, f.handled.Load(), c.want, c.handled)
			}
		})
	}
}
