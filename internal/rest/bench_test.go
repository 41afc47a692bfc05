package rest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/auth"
	"github.com/caprouter/caprouter/internal/auth/issuance"
	"github.com/caprouter/caprouter/internal/auth/jwk"
	"github.com/caprouter/caprouter/internal/auth/keyring"
	"github.com/caprouter/caprouter/internal/httpserver"
	"github.com/caprouter/caprouter/internal/limits"
)

// echoServer is the baseline: net/http, a decoder and an encoder.
func echoServer(b *testing.B) string {
	b.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req contract.Request
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(&req); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
	b.Cleanup(srv.Close)
	return srv.Listener.Addr().String()
}

// wire is a client with little overhead, so that the benchmark measures the
// server.
type wire struct {
	conn    net.Conn
	r       *bufio.Reader
	request []byte
}

func dial(b *testing.B, addr, path, body string) *wire {
	b.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	return &wire{conn: conn, r: bufio.NewReader(conn), request: fmt.Appendf(nil,
		"POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, addr, len(body), body)}
}

func (w *wire) roundTrip(b *testing.B) {
	if _, err := w.conn.Write(w.request); err != nil {
		b.Fatal(err)
	}
	resp, err := http.ReadResponse(w.r, nil)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		b.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b.Fatalf("got %d", resp.StatusCode)
	}
}

const benchBody = `{"content":{"prompt":"Please do a code review of this python module and look at the error handling","inputs":{"repo":"https://git.example/data/jobs"}},` +
	`"metadata":{"locale":"pt-BR"},"session_id":"s-42","options":{"dry_run":true,"timeout_ms":30000}}`

func BenchmarkRoundTrip(b *testing.B) {
	b.Run("baseline", func(b *testing.B) {
		w := dial(b, echoServer(b), "/", benchBody)
		b.ReportAllocs()
		for b.Loop() {
			w.roundTrip(b)
		}
	})
	b.Run("route", func(b *testing.B) {
		w := dial(b, startServer(b, httpserver.Config{}, benchCore()).addr, "/api/v1/route", benchBody)
		b.ReportAllocs()
		for b.Loop() {
			w.roundTrip(b)
		}
	})
}

// benchCore keeps no requests, so that only the HTTP layer is measured.
func benchCore() *fakeBackend {
	plan := plannedResponse(&contract.Request{RequestID: "01980c1a-7c00-7a3e-9d41-000000000001", TraceID: goodTrace})
	return &fakeBackend{
		forget: true,
		handle: func(context.Context, *contract.Request, *contract.Caller) (*contract.Response, error) {
			return plan, nil
		},
	}
}

// BenchmarkOverFloor alternates between the server and the baseline, and reports the median CPU
// time per request of both, including the client, and their ratio.
func BenchmarkOverFloor(b *testing.B) {
	floor := dial(b, echoServer(b), "/", benchBody)
	edge := dial(b, startServer(b, httpserver.Config{}, benchCore()).addr, "/api/v1/route", benchBody)
	const perRound = 500
	round := func(w *wire) float64 {
		before := cpuTime(b)
		for range perRound {
			w.roundTrip(b)
		}
		return float64(cpuTime(b)-before) / perRound
	}
	var floors, edges []float64
	for b.Loop() {
		floors = append(floors, round(floor))
		edges = append(edges, round(edge))
	}
	f, e := median(floors), median(edges)
	b.ReportMetric(f, "floor-cpu-ns")
	b.ReportMetric(e, "edge-cpu-ns")
	b.ReportMetric(e/f, "ratio")
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// BenchmarkServeHTTP measures the HTTP layer without a connection: for the local caller, with a
// cached token, and with a rate limit.
func BenchmarkServeHTTP(b *testing.B) {
	keys, err := keyring.New()
	if err != nil {
		b.Fatal(err)
	}
	issuer, err := issuance.New(keys, jwk.EdDSA)
	if err != nil {
		b.Fatal(err)
	}
	token, err := issuer.CallerToken(issuance.CallerGrant{
		Issuer: "caprouter", Audience: "caprouter", Subject: "bench",
		Scopes: []string{contract.ScopeRouteSubmit, contract.ScopeAllAgents}, Expires: time.Now().Add(time.Hour),
	})
	if err != nil {
		b.Fatal(err)
	}
	verifier, err := auth.NewVerifier(auth.VerifierConfig{Issuer: "caprouter", Audience: "caprouter", Own: keys})
	if err != nil {
		b.Fatal(err)
	}
	for _, bc := range []struct {
		name  string
		cfg   httpserver.Config
		limit httpserver.RateLimiter
	}{
		{"local", httpserver.Config{}, nil},
		{"token", httpserver.Config{Auth: verifier}, nil},
		{"token and limit", httpserver.Config{Auth: verifier}, perCaller{limits.New("classify", limits.Rate{PerSecond: 1e9, Burst: 1e9})}},
	} {
		b.Run(bc.name, func(b *testing.B) {
			core := benchCore()
			core.limit = bc.limit
			s := newServer(b, bc.cfg, core)
			body := &rewinder{text: benchBody}
			r := localRequest(http.MethodPost, "/api/v1/route", "")
			r.Header.Set("Authorization", "Bearer "+token)
			r.Body, r.ContentLength = body, int64(len(benchBody))
			w := &discard{header: http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				body.at = 0
				clear(w.header)
				s.ServeHTTP(w, r)
			}
			if w.status != http.StatusOK {
				b.Fatalf("got %d", w.status)
			}
		})
	}
}

type perCaller struct{ *limits.Limiter }

func (l perCaller) Take(c *contract.Caller) (contract.Limit, bool) {
	return l.Limiter.Take(limits.PrincipalOf(c), time.Now())
}

type rewinder struct {
	text string
	at   int
}

func (r *rewinder) Read(p []byte) (int, error) {
	n := copy(p, r.text[r.at:])
	if r.at += n; r.at == len(r.text) {
		return n, io.EOF
	}
	return n, nil
}

func (r *rewinder) Close() error { return nil }

type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(status int)      { d.status = status }

// BenchmarkStream compares a response of five events with a plain response.
func BenchmarkStream(b *testing.B) {
	for _, accept := range []string{httpserver.MediaTypeJSON, httpserver.MediaTypeEvents} {
		b.Run(accept, func(b *testing.B) {
			srv := startServer(b, httpserver.Config{}, &fakeBackend{forget: true})
			w := dial(b, srv.addr, "/api/v1/route", benchBody)
			w.request = bytes.Replace(w.request, []byte("Content-Type:"), []byte("Accept: "+accept+"\r\nContent-Type:"), 1)
			b.ReportAllocs()
			for b.Loop() {
				w.roundTrip(b)
			}
		})
	}
}

// BenchmarkReaders measures the time to send one event to many readers, and the memory of an idle
// reader.
func BenchmarkReaders(b *testing.B) {
	const readers = 1000
	type turn = chan struct{}
	next := make(chan turn)
	core := &fakeBackend{later: fakeLater{events: func(ctx context.Context, _ uint64, emit func(uint64, *contract.Event) error) error {
		ev := &contract.Event{Type: contract.EventTaskProgress, At: testTime, Progress: &contract.Progress{Message: "m"}}
		for seq := uint64(1); ; seq++ {
			if err := emit(seq, ev); err != nil {
				return err
			}
			select {
			case t := <-next:
				<-t // each reader continues once
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}}}
	srv := startServer(b, httpserver.Config{}, core)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	all := make([]*bufio.Reader, readers)
	for i := range all {
		conn, err := net.Dial("tcp", srv.addr)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = conn.Close() })
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", eventsPath, srv.addr)
		all[i] = bufio.NewReaderSize(conn, 1<<10)
		readEvent(b, all[i])
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	for b.Loop() {
		t := make(turn)
		for range all {
			next <- t
		}
		close(t)
		for _, r := range all {
			readEvent(b, r)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*readers), "ns/event")
	b.ReportMetric(float64(after.HeapInuse+after.StackInuse-before.HeapInuse-before.StackInuse)/readers, "B/reader")
}

// readEvent reads up to the data of the next event, including headers before it.
func readEvent(b *testing.B, r *bufio.Reader) {
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			b.Fatal(err)
		}
		if bytes.HasPrefix(line, []byte("data: ")) {
			return
		}
	}
}
