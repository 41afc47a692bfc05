package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/caprouter/caprouter/internal/datadir"
	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/store/natsserver"
	"github.com/caprouter/caprouter/internal/store/repair"
)

const (
	startTimeout  = 30 * time.Second // a store of many GiB is read when it opens
	reconnectWait = 20 * time.Millisecond
)

// engine is the connection to JetStream and, if embedded, the server. The
// connections outlive a server: the client reconnects to the next one by itself, so
// that buckets and logs only notice a pause.
type engine struct {
	cfg     Config
	main    *nats.Conn
	js      jetstream.JetStream // of main: manages streams
	options []nats.Option       // of each connection
	streams streamConns

	failures    chan string   // failures that the server logs; capacity 1
	reconnected chan struct{} // the connection was restored; capacity 1

	mu           sync.Mutex
	server       *natsserver.Server // nil if external, or during a restart
	err          error              // why server is nil
	serverCtx    context.Context    //nolint:containedctx // ends with the server of the moment, as calls to it do
	cancelServer context.CancelFunc
	callCtx      context.Context //nolint:containedctx // as serverCtx; ends with each connection that is lost
	cancelCalls  context.CancelFunc
	damage       map[string][]repair.Damage // by stream: removed since the last store was closed

	restarts atomic.Int64

	// A server that was disconnected may have been restarted without its streams in
	// memory. They exist again if the counts are equal.
	disconnects, recreated atomic.Int64
}

func newEngine(cfg Config) *engine {
	e := &engine{cfg: cfg, failures: make(chan string, 1), reconnected: make(chan struct{}, 1)}
	e.callCtx, e.cancelCalls = context.WithCancel(context.Background())
	return e
}

// startEmbedded starts a server and connects to it inside the process.
func startEmbedded(ctx context.Context, cfg Config) (*engine, error) {
	e := newEngine(cfg)
	var err error
	if e.damage, err = cfg.engineFiles().Repaired(); err != nil {
		return nil, err
	}
	if err := e.startServer(ctx); err != nil {
		return nil, err
	}
	// Without a network, only a stalled machine is slow to connect.
	if err := e.openConnections(nats.InProcessServer(e), nats.Timeout(startTimeout)); err != nil {
		e.stop()
		return nil, err
	}
	return e, nil
}

// connectExternal connects to the server at cfg.URL.
func connectExternal(cfg Config) (*engine, error) {
	e := newEngine(cfg)
	e.serverCtx, e.cancelServer = context.WithCancel(context.Background())
	if err := e.openConnections(); err != nil {
		e.stop()
		return nil, fmt.Errorf("connect to %s: %w", redactURL(cfg.URL), classifyError(withoutURL(err)))
	}
	return e, nil
}

// openConnections opens the main connection.
func (e *engine) openConnections(options ...nats.Option) (err error) {
	options = append(options,
		nats.Name("caprouter "+e.cfg.Owner),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait),
		nats.ReconnectJitter(reconnectWait, reconnectWait),
		// Do not buffer writes without a server: a buffered write could be sent
		// after its caller has received an error.
		nats.ReconnectBufSize(-1),
		nats.NoCallbacksAfterClientClose(),
		nats.NoEcho(), // see Subscribe
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			subject := ""
			if sub != nil {
				subject = sub.Subject
			}
			e.cfg.Logger.Warn("store: the connection reported an error", "subject", subject, "error", err)
		}),
		nats.DisconnectErrHandler(func(*nats.Conn, error) { e.cancelAttempts() }),
	)
	e.options = options
	onReconnect := nats.ReconnectHandler(func(*nats.Conn) {
		select {
		case e.reconnected <- struct{}{}:
		default:
		}
	})
	onDisconnect := nats.DisconnectErrHandler(func(*nats.Conn, error) {
		e.disconnects.Add(1)
		e.cancelAttempts()
	})
	if e.main, err = nats.Connect(e.cfg.URL, append(slices.Clip(options), onDisconnect, onReconnect)...); err != nil {
		return err
	}
	e.js, err = jetstream.New(e.main)
	return err
}

// EngineVersion is the version of the embedded storage engine.
const EngineVersion = natsserver.Version

// engineDir is the directory of the engine's files.
func (c *Config) engineDir() string { return filepath.Join(c.Dir, "store") }

// startServer starts a server and makes it the current one.
func (e *engine) startServer(ctx context.Context) error {
	if err := e.checkFiles(); err != nil {
		return err
	}
	if err := e.repairFiles(ctx); err != nil {
		return err
	}
	srv, err := natsserver.New(natsserver.Config{
		Dir: e.cfg.engineDir(), MaxBytes: e.cfg.MaxBytes, MaxMemory: maxMemoryLog, SyncEvery: e.cfg.SyncEvery,
		StartTimeout: startTimeout, Logger: e.cfg.Logger, Failures: e.failures,
	})
	if err != nil {
		return fmt.Errorf("start the engine: %w", err)
	}
	if err := srv.Start(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.server, e.err = srv, nil
	e.serverCtx, e.cancelServer = context.WithCancel(context.Background())
	return nil
}

// checkFiles returns an error if other users can change the engine's files, or if a
// newer engine wrote them.
func (e *engine) checkFiles() error {
	if err := datadir.CheckSubdir(e.cfg.engineDir()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	wrote, err := datadir.Engine(e.cfg.Dir)
	if err == nil && datadir.CompareEngines(wrote, EngineVersion) > 0 {
		err = fmt.Errorf("%w: storage engine %s wrote %s, and this version has %s; start the newer version, or restore the backup from before the upgrade",
			datadir.ErrNewer, wrote, e.cfg.Dir, EngineVersion)
	}
	return err
}

// repairFiles removes damage from the files while no server uses them.
func (e *engine) repairFiles(ctx context.Context) error {
	found, err := e.cfg.engineFiles().RepairAtStart(ctx, e.cfg.RepairAll)
	e.mu.Lock()
	defer e.mu.Unlock()
	for stream, damage := range found {
		e.damage[stream] = append(e.damage[stream], damage...)
	}
	return err
}

// stopServer stops the server, if there is one. Calls in progress fail with why.
func (e *engine) stopServer(why error) {
	e.mu.Lock()
	srv := e.server
	e.server, e.err = nil, why
	if e.cancelServer != nil {
		e.cancelServer()
	}
	e.mu.Unlock()
	if srv != nil {
		srv.Stop()
	}
}

// InProcessConn connects to the current server. The client calls it for each
// reconnect.
func (e *engine) InProcessConn() (net.Conn, error) {
	e.mu.Lock()
	srv := e.server
	e.mu.Unlock()
	if srv == nil {
		return nil, errors.New("the engine is down")
	}
	return srv.InProcessConn()
}

func (e *engine) stop() {
	if e.main != nil {
		e.main.Close()
	}
	e.streams.close()
	e.cancelAttempts()
	e.stopServer(fmt.Errorf("%w: the store is closed", ErrUnavailable))
}

// currentError returns why the engine cannot be used now, or nil.
func (e *engine) currentError() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return e.err
	}
	if e.server == nil && !e.main.IsConnected() {
		return fmt.Errorf("%w: not connected to %s", ErrUnavailable, redactURL(e.cfg.URL))
	}
	return nil
}

// usedBytes returns the bytes on disk.
func (e *engine) usedBytes() int64 {
	e.mu.Lock()
	srv := e.server
	e.mu.Unlock()
	if srv != nil {
		return srv.UsedBytes()
	}
	if e.cfg.URL == "" {
		return 0
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	info, err := e.js.AccountInfo(ctx)
	if err != nil {
		return 0
	}
	return int64(info.Store)
}

// attemptContext returns the context of one call, which ends after the limit, when the
// current server stops, or when a connection is lost.
func (e *engine) attemptContext(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	detach := e.cancelWithServer(cancel)
	e.mu.Lock()
	defer e.mu.Unlock()
	detachCall := context.AfterFunc(e.callCtx, cancel)
	return ctx, func() { detach(); detachCall(); cancel() }
}

// cancelAttempts ends the calls in progress, because no answer arrives over a lost
// connection. Calls over other connections end as well: all are repeated, and a repeated
// write changes nothing.
func (e *engine) cancelAttempts() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cancelCalls()
	e.callCtx, e.cancelCalls = context.WithCancel(context.Background())
}

// serverContext returns a context that ends when the current server stops.
func (e *engine) serverContext(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	detach := e.cancelWithServer(cancel)
	return ctx, func() { detach(); cancel() }
}

func (e *engine) cancelWithServer(cancel context.CancelFunc) (detach func() bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return context.AfterFunc(e.serverCtx, cancel)
}

const (
	healthInterval  = time.Second
	maxRestartPause = 30 * time.Second
)

// supervise restarts the embedded engine after it has failed.
func (s *Store) supervise(ctx context.Context) error {
	tick := time.NewTicker(healthInterval)
	defer tick.Stop()
	for {
		var why string
		select {
		case <-ctx.Done():
			return nil
		case why = <-s.engine.failures:
		case <-tick.C:
			if s.engine.isHealthy() {
				s.probeWrites(ctx)
				continue
			}
			why = "JetStream is disabled"
		}
		s.restartEngine(ctx, why)
	}
}

// isHealthy reports whether the embedded server runs with its storage enabled.
func (e *engine) isHealthy() bool {
	e.mu.Lock()
	srv := e.server
	e.mu.Unlock()
	return srv != nil && srv.IsHealthy()
}

// restartEngine stops the engine and starts it, with exponential backoff, until that
// succeeds or ctx ends.
func (s *Store) restartEngine(ctx context.Context, why string) {
	log := s.cfg.Logger
	log.Error("store: the engine failed, restarting it", "reason", why)
	s.failedWrite.Store(&why)
	s.engine.stopServer(fmt.Errorf("%w: the engine failed: %s", ErrUnavailable, why))
	s.engine.restarts.Add(1)
	backoff := resilience.Backoff{Min: minPause, Max: maxRestartPause}
	for ctx.Err() == nil {
		err := s.engine.startServer(ctx)
		if err == nil {
			err = s.recreateMemoryStreams(ctx)
		}
		if err == nil {
			log.Info("store: the engine is running again")
			s.probeAfterRestart(ctx)
			return
		}
		pause := backoff.Next()
		log.Error("store: the engine does not start", "error", err, "retry_in_ms", pause.Milliseconds())
		s.engine.stopServer(err)
		resilience.Sleep(ctx, pause)
	}
}

// probeAfterRestart writes a probe as soon as the client is connected, so that writes are
// not rejected until the next check of the engine's health. It ends with the first success
// or failure of the engine.
func (s *Store) probeAfterRestart(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, healthInterval)
	defer cancel()
	backoff := resilience.Backoff{Min: minPause, Max: maxPause}
	for s.failedWrite.Load() != nil && len(s.engine.failures) == 0 && backoff.Sleep(ctx) {
		// A probe gets no answer if the client has not noticed yet that its server is gone.
		attempt, end := context.WithTimeout(ctx, healthInterval/10)
		s.probeWrites(attempt)
		end()
	}
}

// recreateAfterReconnect recreates the streams in memory after each reconnect to an
// external server until ctx ends, because the server may have been restarted.
func (s *Store) recreateAfterReconnect(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.engine.reconnected:
		}
		backoff := resilience.Backoff{Min: minPause, Max: maxPause}
		for ctx.Err() == nil {
			disconnects := s.engine.disconnects.Load()
			err := s.recreateMemoryStreams(ctx)
			if err == nil {
				s.engine.recreated.Store(disconnects)
				break
			}
			pause := backoff.Next()
			s.cfg.Logger.WarnContext(ctx, "store: cannot recreate the streams in memory", "error", err, "retry_in_ms", pause.Milliseconds())
			resilience.Sleep(ctx, pause)
		}
	}
}
