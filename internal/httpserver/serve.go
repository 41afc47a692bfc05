package httpserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/internal/run"
)

// Bounds of one connection. readTimeout covers headers and body; the time to
// handle a request is not bounded here.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 30 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 32 << 10
)

// shutdownSignal records that the graceful shutdown has begun.
type shutdownSignal struct {
	draining atomic.Bool
	started  chan struct{}
}

// start begins the shutdown. Later calls have no effect.
func (s *shutdownSignal) start() {
	if s.draining.CompareAndSwap(false, true) {
		close(s.started)
	}
}

// Serve answers requests from ln, which it closes, until ctx ends or the listener
// fails. Then it shuts down gracefully:
//
//	ctx ends ─▶ Context.Draining reports true, no new connections, streams with
//	            EndOnShutdown end, incomplete bodies get uploadGrace
//	         ─▶ running requests end by themselves              at most DrainTimeout
//	         ─▶ their contexts are cancelled, they write their outcome … DrainGrace
//	         ─▶ connections of requests that still run are closed (an error)
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	if len(s.apis) == 0 {
		return errors.Join(errors.New("httpserver: no API is mounted"), ln.Close())
	}
	if err := s.access.checkListener(ln.Addr()); err != nil {
		return errors.Join(err, ln.Close())
	}
	// Requests do not end with ctx: while the server drains they end by themselves.
	requests, cancelRequests := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancelRequests(nil)
	srv := s.newHTTPServer(requests)
	g := run.New(requests)
	g.Go("serve http", func(context.Context) error {
		err := s.acceptConnections(srv, ln)
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}
		return err
	})
	g.Go("drain http", func(group context.Context) error {
		select {
		case <-ctx.Done():
		case <-group.Done(): // the listener failed
		}
		s.shutdown.start()
		s.uploads.endSoon()
		return s.drainRequests(context.WithoutCancel(ctx), srv, cancelRequests)
	})
	return g.Wait()
}

func (s *Server) acceptConnections(srv *http.Server, ln net.Listener) error {
	if s.cfg.TLS == nil {
		return srv.Serve(ln)
	}
	return srv.ServeTLS(ln, "", "") // the certificate is in Config.TLS
}

func (s *Server) newHTTPServer(requests context.Context) *http.Server {
	return &http.Server{
		Handler:           s,
		BaseContext:       func(net.Listener) context.Context { return requests },
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		TLSConfig:         s.cfg.TLS,
		// "OPTIONS *" takes the same path as other requests, so that its response
		// has the same headers.
		DisableGeneralOptionsHandler: true,
		// net/http logs broken connections, which are not errors of the server.
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}

// errShutdown is the cause of a request context that the shutdown cancelled.
var errShutdown = errors.New("the server is stopping")

// drainRequests waits for running requests, cancels them if that takes too long, and
// closes their connections as the last resort.
func (s *Server) drainRequests(ctx context.Context, srv *http.Server, cancelRequests context.CancelCauseFunc) error {
	if waitForRequests(ctx, srv, s.cfg.DrainTimeout) == nil {
		return nil
	}
	s.log.Warn("cancel requests to stop", "in_flight", s.runningRequests(), "after", s.cfg.DrainTimeout)
	cancelRequests(errShutdown)
	if waitForRequests(ctx, srv, s.cfg.DrainGrace) == nil {
		return nil
	}
	if left := s.runningRequests(); left > 0 {
		return errors.Join(fmt.Errorf("%d requests did not end in time", left), srv.Close())
	}
	return srv.Close() // the remaining requests were never received completely
}

// runningRequests counts requests that are handled or whose response is being written.
func (s *Server) runningRequests() int64 { return s.admission.inFlight() + s.delivering.Load() }

// waitForRequests waits until no request runs, for at most the timeout.
func waitForRequests(ctx context.Context, srv *http.Server, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return srv.Shutdown(ctx)
}
