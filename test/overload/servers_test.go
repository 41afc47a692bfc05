package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/test/internal/process"
)

// startServer serves h until the test ends and returns the address.
func startServer(t *testing.T, server *http.Server) (addr string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	group := run.New(context.WithoutCancel(t.Context()))
	group.Go("serve", func(context.Context) error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	t.Cleanup(func() {
		if err := errors.Join(server.Close(), group.Wait()); err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

func handleConnection(t *testing.T, h http.Handler) (addr string) {
	return startServer(t, &http.Server{Handler: h, ReadHeaderTimeout: process.IOTimeout})
}

func subjectAt(addr string, connections int) *subject {
	return &subject{name: "server", addr: addr, requests: [][]byte{formatPost(routePath, routeBody)}, want: contract.StatusCompleted, connections: connections, failures: &failureLog{}}
}

func TestBareServer_RejectsBeyondLimit(t *testing.T) {
	bare := &bareServer{work: time.Hour, limit: 2}
	addr := handleConnection(t, bare)
	ctx, cancel := context.WithCancel(t.Context())
	group := run.New(ctx)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for range 2 {
		group.Go("caller", func(ctx context.Context) error {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr, http.NoBody)
			if err != nil {
				return err
			}
			resp, err := client.Do(req)
			if err == nil {
				resp.Body.Close()
				return errors.New("got an answer, want none for an hour")
			}
			return err
		})
	}
	testkit.Eventually(t, "two requests are active", func() bool { return bare.active.Load() == 2 })
	l := &connection{addr: addr}
	defer l.close()
	r, err := l.roundTrip(t.Context(), formatPost("/", "{}"))
	if err != nil {
		t.Fatal(err)
	}
	if got, why := classifyResponse(r, contract.StatusCompleted); got != outcomeShed {
		t.Errorf("third request: got %s, %s, want shed", got, why)
	}
	cancel()
	if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestServeRole_RejectsUnknownRole(t *testing.T) {
	if err := serveRole(t.Context(), "king"); err == nil {
		t.Error("got nil, want an error")
	}
}

func TestConnection_IsReused(t *testing.T) {
	var conns atomic.Int64
	addr := startServer(t, &http.Server{
		ReadHeaderTimeout: process.IOTimeout,
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				conns.Add(1)
			}
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/last" {
				w.Header().Set("Connection", "close")
			}
			if r.URL.Path == "/broken" {
				panic(http.ErrAbortHandler)
			}
			_, _ = io.Copy(w, r.Body)
		}),
	})
	l := &connection{addr: addr}
	defer l.close()
	for _, tt := range []struct {
		path  string
		conns int64
		fails bool
	}{{"/", 1, false}, {"/", 1, false}, {"/last", 1, false}, {"/", 2, false}, {"/broken", 2, true}, {"/", 3, false}} {
		r, err := l.roundTrip(t.Context(), formatPost(tt.path, "text"))
		if (err != nil) != tt.fails || !tt.fails && string(r.body) != "text" {
			t.Errorf("%s: got %q, %v", tt.path, r.body, err)
		}
		if got := conns.Load(); got != tt.conns {
			t.Errorf("%s: %d connections so far, want %d", tt.path, got, tt.conns)
		}
	}
}

func TestOpenLoop_SendsEverythingOnce(t *testing.T) {
	var asked, now, most atomic.Int64
	addr := handleConnection(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer now.Add(-1)
		most.Store(max(most.Load(), now.Add(1)))
		switch asked.Add(1) % 4 {
		case 0:
			(&bareServer{}).ServeHTTP(w, r) // refuses
		case 1:
			writeJSON(w, http.StatusInternalServerError, typeProblem, problemBody{})
		default:
			(&bareServer{limit: 1}).ServeHTTP(w, r)
		}
	}))
	s := subjectAt(addr, 8)
	samples, err := s.runOpenLoop(t.Context(), schedule{{400, 500 * time.Millisecond}, {200, 500 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	c := countOutcomes(samples)
	if len(samples) != 300 || int64(c.countSent()) != asked.Load() || most.Load() > 8 {
		t.Errorf("got %d samples, %d of them sent, %d requests received, %d at a time, want 300, as many received as sent, at most 8 at a time", len(samples), c.countSent(), asked.Load(), most.Load())
	}
	wrong, _ := s.failures.list()
	if c[outcomeGood] == 0 || c[outcomeShed] == 0 || c[outcomeInvalid] == 0 || c[outcomeBroken] != 0 || wrong != c[outcomeInvalid] {
		t.Errorf("got %v and %d wrong, want good, shed, other ones, and the other ones wrong", c, wrong)
	}
	for i, at := range samples {
		if at.outcome != outcomeUnsent && at.done < at.due {
			t.Errorf("number %d was due at %s and done at %s", i, at.due, at.done)
		}
	}
}

func TestOpenLoop_SkipsRequestsOfEndedSegment(t *testing.T) {
	var seen atomic.Int64
	addr := handleConnection(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Add(1)
		(&bareServer{work: 50 * time.Millisecond, limit: 1}).ServeHTTP(w, r)
	}))
	s := subjectAt(addr, 1)
	samples, err := s.runOpenLoop(t.Context(), schedule{{1000, 100 * time.Millisecond}, {10, 300 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	first := countOutcomes(samplesBetween(samples, 0, 100*time.Millisecond))
	if first[outcomeUnsent] < 90 || int64(countOutcomes(samples).countSent()) != seen.Load() {
		t.Errorf("got %v in the first stretch, and %d asked, want nearly all of them unsent", first, seen.Load())
	}
}

func TestOpenLoop_FailsWithoutServer(t *testing.T) {
	const addr = testkit.RefusingAddress
	if _, err := subjectAt(addr, 8).runOpenLoop(t.Context(), schedule{{100, 100 * time.Millisecond}}); err == nil {
		t.Error("got nil, want an error: no server listens")
	}
	if _, err := subjectAt(addr, 8).measure(t.Context(), time.Second); err == nil || !strings.Contains(err.Error(), "no good answer") {
		t.Errorf("got %v, want no peak", err)
	}
}

func TestClosedLoop_PausesAfterRejection(t *testing.T) {
	var asked atomic.Int64
	addr := handleConnection(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		(&bareServer{}).ServeHTTP(w, r)
	}))
	s := subjectAt(addr, 8)
	lasts := 4 * retryPause
	samples := s.runClosedLoop(t.Context(), 3, lasts)
	if got := countOutcomes(samples)[outcomeShed]; got != len(samples) || int64(got) != asked.Load() || got < 1 || got > 3*5 {
		t.Errorf("got %d shed of %d, %d asked, want all, from 1 to 15", got, len(samples), asked.Load())
	}
}

func TestSlowConnections_EndByServer(t *testing.T) {
	if testing.Short() {
		t.Skip("is slow")
	}
	const limit = 100 * time.Millisecond
	kinds := slowKinds()
	headers, body, reading := kinds[0], kinds[1], kinds[2]
	// Without the header the server waits for the body before it answers.
	refuse := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	drain := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			w.WriteHeader(http.StatusBadRequest)
		}
	})
	flood := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 16<<20)) })
	for _, tt := range []struct {
		name   string
		kind   slowKind
		server *http.Server
		want   string
	}{
		{"headers that do not end", headers, &http.Server{ReadHeaderTimeout: limit}, endClosed},
		{"body that does not end", body, &http.Server{ReadTimeout: limit, ReadHeaderTimeout: limit, Handler: drain}, "answered 400"},
		{"body without Expect", body, &http.Server{ReadHeaderTimeout: limit, Handler: refuse}, "answered 503"},
		{"answer that is not read", reading, &http.Server{ReadHeaderTimeout: limit, WriteTimeout: limit, Handler: flood}, endClosed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.kind.holdConnection(t.Context(), startServer(t, tt.server)); got != tt.want {
				t.Errorf("got end %q, want %q", got, tt.want)
			}
		})
	}
}

func TestSlowConnections_StopEndsAll(t *testing.T) {
	const many = 20
	var asked atomic.Int64
	all := make(chan struct{})
	addr := handleConnection(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == many {
			close(all)
		}
		_, _ = io.Copy(io.Discard, r.Body) // it does not come
	}))
	stop := startSlowConnections(t.Context(), slowKinds()[1], addr, many, 100*time.Millisecond)
	testkit.WaitClosed(t, all)
	ends, err := stop()
	if err != nil {
		t.Fatal(err)
	}
	if ends.opened != many || len(ends.ends) != 0 {
		t.Errorf("got %d opened, ends %v, want %d and none by the server", ends.opened, ends.ends, many)
	}
}

func TestSlowConnections_RecordRefused(t *testing.T) {
	if got := slowKinds()[0].holdConnection(t.Context(), testkit.RefusingAddress); got != endRefused {
		t.Errorf("got end %q, want %q", got, endRefused)
	}
}
