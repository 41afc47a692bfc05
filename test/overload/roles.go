package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// The roles this program plays in processes of its own.
const (
	roleAgent = "agent" // the router's
	roleFloor = "floor" // what the router is compared with
)

// ioTimeout ends whatever stands still.
const ioTimeout = 10 * time.Second

// serveRole listens, prints the address, and serves until standard input closes,
// which it does with the parent, however that ends.
func serveRole(ctx context.Context, role string, opts options) error {
	var h http.Handler
	switch role {
	case roleAgent:
		h = agent(opts.work)
	case roleFloor:
		h = &bareServer{work: opts.work, most: int64(opts.inFlight)}
	default:
		return fmt.Errorf("no role %q", role)
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	return serveUntil(ctx, listener, h, os.Stdin)
}

// serveUntil serves until the parent's end of the pipe is closed.
func serveUntil(ctx context.Context, listener net.Listener, h http.Handler, parent io.Reader) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: ioTimeout}
	group := run.New(ctx)
	group.Go("serve", func(context.Context) error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	group.Go("stop", func(ctx context.Context) error {
		<-ctx.Done()
		return server.Close()
	})
	group.Go("parent", func(context.Context) error {
		_, err := io.Copy(io.Discard, parent)
		group.Stop(nil)
		return err
	})
	return group.Wait()
}

// agent answers every task after a while.
func agent(work time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if pause(r.Context(), work) {
			answer(w, http.StatusOK, "application/json", contract.Result{Status: contract.ResultSuccess})
		}
	})
}

// bareServer is what one writes without a router: it works on so many requests at
// a time, and refuses the rest at once.
type bareServer struct {
	work time.Duration
	most int64
	now  atomic.Int64
}

func (s *bareServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	defer s.now.Add(-1)
	if s.now.Add(1) > s.most {
		w.Header().Set("Retry-After", "1")
		answer(w, http.StatusServiceUnavailable, typeProblem, verdict{Status: http.StatusServiceUnavailable, Code: contract.CodeOverloaded})
		return
	}
	if pause(r.Context(), s.work) {
		answer(w, http.StatusOK, "application/json", contract.Response{Status: contract.StatusCompleted})
	}
}

func answer(w http.ResponseWriter, status int, mediaType string, body any) {
	data, err := strictjson.Marshal(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", mediaType)
	w.WriteHeader(status)
	_, _ = w.Write(data) // who does not read it has left
}

// pause waits, and reports whether it did so to the end.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
