package rest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/caprouter/caprouter/internal/run"
)

// Bounds of one connection. readTimeout covers headers and body; how long a
// request is worked on is the core's business.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 30 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 32 << 10
)

// Serve answers requests from ln, which it closes, until ctx ends or the
// listener fails. Then it drains:
//
//	ctx ends ─▶ /readyz says draining, no new connections, readers of events go
//	         ─▶ running requests end by themselves         at most DrainTimeout
//	         ─▶ their contexts end, they say how far they got   … DrainGrace
//	         ─▶ what still runs loses its connection (an error)
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	if s.local != nil && !loopbackListener(ln) {
		return errors.Join(
			fmt.Errorf("listen on %s: without authentication only loopback addresses are served", ln.Addr()),
			ln.Close())
	}
	// Requests outlive ctx: they end by themselves while the server drains.
	requests, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	srv := s.httpServer(requests)
	g := run.New(requests)
	g.Go("serve http", func(context.Context) error {
		err := s.accept(srv, ln)
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
		s.stop()
		return s.drain(context.WithoutCancel(ctx), srv, cut)
	})
	return g.Wait()
}

func (s *Server) accept(srv *http.Server, ln net.Listener) error {
	if s.cfg.TLS == nil {
		return srv.Serve(ln)
	}
	return srv.ServeTLS(ln, "", "") // the certificate is the configuration's
}

// stop says that the server drains. Only the first call counts.
func (s *Server) stop() {
	if s.draining.CompareAndSwap(false, true) {
		close(s.stopping)
	}
}

func (s *Server) httpServer(requests context.Context) *http.Server {
	return &http.Server{
		Handler:           s,
		BaseContext:       func(net.Listener) context.Context { return requests },
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		TLSConfig:         s.cfg.TLS,
		// "OPTIONS *" gets the same headers as everything else.
		DisableGeneralOptionsHandler: true,
		// What it has to say is about broken connections.
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}

// errStopping is why a request's context ends while the server drains.
var errStopping = errors.New("the server is stopping")

func (s *Server) drain(ctx context.Context, srv *http.Server, cut context.CancelCauseFunc) error {
	if s.shutdown(ctx, srv, s.cfg.DrainTimeout) == nil {
		return nil
	}
	s.log.Warn("requests are cancelled to stop", "in_flight", s.taken()+s.delivering.Load(), "after", s.cfg.DrainTimeout)
	cut(errStopping)
	if s.shutdown(ctx, srv, s.cfg.DrainGrace) == nil {
		return nil
	}
	if left := s.taken() + s.delivering.Load(); left > 0 {
		return errors.Join(fmt.Errorf("%d requests did not end in time", left), srv.Close())
	}
	return srv.Close() // of requests that never came in whole, nothing was begun
}

// shutdown waits until no request is running, for at most the given time.
func (s *Server) shutdown(ctx context.Context, srv *http.Server, atMost time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	return srv.Shutdown(ctx)
}
