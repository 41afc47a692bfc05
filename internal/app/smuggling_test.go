package app

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/testkit"
)

// raw sends bytes over a new connection and returns the responses, and whether the server closed
// the connection.
func (s *testServer) raw(request string, answers int) (got []apiResponse, closed bool) {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(testkit.Patience)); err != nil {
		s.t.Fatal(err)
	}
	// The server may reject the request and close the connection before it has read all bytes.
	_, _ = io.WriteString(conn, request)
	in := bufio.NewReader(conn)
	for len(got) < answers {
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			break
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			s.t.Errorf("incomplete response to %.80q: %v", request, err)
		}
		got = append(got, apiResponse{resp.StatusCode, resp.Header, body})
		if resp.Close {
			break
		}
	}
	_, err = in.ReadByte()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		s.t.Errorf("got the connection of %.80q open without a response", request)
	}
	return got, err != nil
}

// The end of a message must be unambiguous: the body for this server must not be the next request
// for another one.
func TestServer_RejectsRequestSmuggling(t *testing.T) {
	t.Parallel()
	s := startServer(t, "clients:\n"+entry("counter", "count_words", "prose", ""))
	const (
		start = "POST /api/v1/classify HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
		body  = `{"content":{"prompt":"count words"}}` // 36 bytes
		next  = "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
		chunk = "24\r\n" + body + "\r\n0\r\n\r\n"
	)
	if len(body) != 0x24 {
		t.Fatalf("got a body of %d bytes", len(body))
	}
	good, closed := s.raw(start+"Connection: close\r\nContent-Length: 36\r\n\r\n"+body, 2)
	if len(good) != 1 || good[0].status != 200 || !closed {
		t.Fatalf("valid request: got %v", good)
	}
	if good, _ = s.raw(start+"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"+chunk, 2); len(good) != 1 || good[0].status != 200 {
		t.Fatalf("valid chunked request: got %v", good)
	}
	// Each is rejected with one response, and the bytes after it are not read.
	for name, request := range map[string]string{
		"two lengths":                  start + "Content-Length: 36\r\nContent-Length: 5\r\n\r\n" + body + next,
		"two lengths in one header":    start + "Content-Length: 36, 5\r\n\r\n" + body + next,
		"length with a sign":           start + "Content-Length: +36\r\n\r\n" + body + next,
		"negative length":              start + "Content-Length: -1\r\n\r\n" + body + next,
		"hexadecimal length":           start + "Content-Length: 0x24\r\n\r\n" + body + next,
		"length out of range":          start + "Content-Length: 99999999999999999999\r\n\r\n" + body + next,
		"space before the colon":       start + "Content-Length : 36\r\n\r\n" + body + next,
		"NUL in a header name":         start + "Content-Length\x00: 36\r\n\r\n" + body + next,
		"chunked twice":                start + "Transfer-Encoding: chunked, chunked\r\n\r\n" + chunk + next,
		"chunked and identity":         start + "Transfer-Encoding: chunked, identity\r\n\r\n" + chunk + next,
		"two encodings":                start + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n" + chunk + next,
		"unknown encoding":             start + "Transfer-Encoding: xchunked\r\n\r\n" + chunk + next,
		"vertical tab in the encoding": start + "Transfer-Encoding: \x0bchunked\r\n\r\n" + chunk + next,
		"chunk size with a sign":       start + "Transfer-Encoding: chunked\r\n\r\n+24\r\n" + body + "\r\n0\r\n\r\n" + next,
		"chunk size with a prefix":     start + "Transfer-Encoding: chunked\r\n\r\n0x24\r\n" + body + "\r\n0\r\n\r\n" + next,
		"chunk size out of range":      start + "Transfer-Encoding: chunked\r\n\r\n10000000000000024\r\n" + body + "\r\n0\r\n\r\n" + next,
		"chunk longer than its size":   start + "Transfer-Encoding: chunked\r\n\r\n5\r\n" + body + "\r\n0\r\n\r\n" + next,
		"no host":                      "GET /healthz HTTP/1.1\r\n\r\n" + next,
		"two hosts":                    "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n" + next,
		"host with a path":             "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1/x\r\n\r\n" + next,
		"NUL in a value":               "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX: a\x00b\r\n\r\n" + next,
		"header without a colon":       "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX\r\n\r\n" + next,
		"unknown version":              "GET /healthz HTTP/3.7\r\nHost: 127.0.0.1\r\n\r\n" + next,
		"space in the target":          "GET /healthz x HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" + next,
		"headers without an end":       "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + strings.Repeat("a", 64<<10) + "\r\n\r\n" + next,
		"too many headers":             "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n" + strings.Repeat("X: a\r\n", 10_000) + "\r\n" + next,
		"HTTP/2 preface":               "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"TLS handshake":                "\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03\r\n\r\n",
	} {
		got, closed := s.raw(request, 2)
		if len(got) > 1 || !closed {
			t.Errorf("%s: got %d responses, closed %t; want at most one, then closed", name, len(got), closed)
		}
		if len(got) == 1 && (got[0].status < 400 || got[0].status >= 500 && got[0].status != 501 && got[0].status != 505) {
			t.Errorf("%s: got %d %s", name, got[0].status, got[0].body)
		}
	}
	// With both, the encoding determines the end of the body (RFC 9112 §6.1), and the bytes after
	// it are another request.
	got, _ := s.raw(start+"Content-Length: 300\r\nTransfer-Encoding: chunked\r\n\r\n"+chunk+next, 2)
	if len(got) != 2 || got[0].status != 200 || !strings.Contains(string(got[1].body), `"status":"ok"`) {
		t.Errorf("length and encoding: got %v, want the responses to both requests", got)
	}
	// The host in the target has precedence, and is checked.
	for _, target := range []string{"http://evil.example/healthz", "http://evil.example:80/healthz"} {
		if got, _ := s.raw("GET "+target+" HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", 1); len(got) != 1 || got[0].status != 403 {
			t.Errorf("target %s: got %v, want 403", target, got)
		}
	}
}

// Bytes of a request never become a header or another line of the response.
func TestServer_RejectsHeaderInjection(t *testing.T) {
	s := startServer(t, "clients:\n"+entry("counter", "count_words", "prose", ""))
	for _, evil := range []string{"%0d%0aX-Evil:%20yes", "%0aX-Evil:%20yes", "%E5%98%8A%E5%98%8DX-Evil:%20yes", "\\r\\nX-Evil: yes", "%00%0d%0aX-Evil:%20yes"} {
		for _, request := range []string{
			"GET /api/v1/requests/" + evil + " HTTP/1.1\r\n",
			"GET /" + evil + " HTTP/1.1\r\n",
			"GET /api/v1/decisions?agent=" + evil + " HTTP/1.1\r\n",
			"GET /healthz HTTP/1.1\r\nPrefer: " + evil + "\r\nX-Request-Id: " + evil + "\r\nTraceparent: " + evil + "\r\n",
			"POST /api/v1/route HTTP/1.1\r\nContent-Type: application/json" + evil + "\r\nIdempotency-Key: " + evil + "\r\nContent-Length: 2\r\n",
			"DELETE" + evil + " / HTTP/1.1\r\n",
		} {
			got, _ := s.raw(request+"Host: 127.0.0.1\r\nConnection: close\r\n\r\n{}", 1)
			for _, a := range got {
				if a.header.Get("X-Evil") != "" || strings.Contains(encode(a.header), "X-Evil") {
					t.Errorf("%q: got header %v in the response", request, a.header)
				}
				if a.status >= 500 {
					t.Errorf("%q: got %d", request, a.status)
				}
			}
		}
	}
}
