package natsserver

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Version is the version of the server.
const Version = server.VERSION

const (
	maxPayload        = 1 << 20     // the default of every NATS server
	indexSyncInterval = time.Minute // of the index files, which SyncAlways leaves out
)

// Config configures a server. Every field is required, except SyncEvery.
type Config struct {
	Dir       string        // of its files
	MaxBytes  int64         // of its files
	MaxMemory int64         // of its streams in memory
	SyncEvery time.Duration // 0 = every write is synced before it is acknowledged
	// StartTimeout is how long Start waits for the server, once it has read its files.
	StartTimeout time.Duration
	Logger       *slog.Logger
	// Failures receives messages of the server after which a stream, or all of them, rejects
	// writes until the server is restarted. A message that cannot be sent at once is dropped.
	Failures chan<- string
}

// Server is a server in this process. Its methods may be called from any goroutine.
type Server struct {
	cfg    Config
	server *server.Server
	log    *serverLog
}

// New returns a server that is not started.
func New(cfg Config) (*Server, error) {
	srv, err := server.NewServer(cfg.serverOptions())
	if err != nil {
		return nil, err
	}
	log := newServerLog(cfg.Logger, cfg.Failures)
	srv.SetLoggerV2(log, false, false, false)
	return &Server{cfg: cfg, server: srv, log: log}, nil
}

func (c *Config) serverOptions() *server.Options {
	opts := &server.Options{
		ServerName:             "caprouter",
		DontListen:             true,
		NoSigs:                 true,
		DisableJetStreamBanner: true,
		JetStream:              true,
		StoreDir:               c.Dir,
		JetStreamMaxStore:      c.MaxBytes,
		JetStreamMaxMemory:     c.MaxMemory,
		MaxPayload:             maxPayload,
		SyncAlways:             c.SyncEvery == 0,
		SyncInterval:           c.SyncEvery,
	}
	if opts.SyncAlways {
		opts.SyncInterval = indexSyncInterval
	}
	return opts
}

// Start starts the server, and returns after it has read its files. If it fails, it leaves
// nothing running; its error contains the server's last message.
func (s *Server) Start(ctx context.Context) error {
	s.server.Start() // returns after it has read the files
	if ctx.Err() != nil || s.log.hasFailed() || !s.IsHealthy() || !s.server.ReadyForConnections(s.cfg.StartTimeout) {
		s.Stop()
		return fmt.Errorf("the engine does not start: %s", s.log.lastMessage())
	}
	return nil
}

// Stop stops the server, and returns when its files are closed.
func (s *Server) Stop() {
	s.server.Shutdown()
	s.server.WaitForShutdown()
}

// IsHealthy reports whether the storage of the server is enabled.
func (s *Server) IsHealthy() bool { return s.server.JetStreamEnabled() }

// InProcessConn connects to the server; see nats.InProcessServer.
func (s *Server) InProcessConn() (net.Conn, error) { return s.server.InProcessConn() }

// UsedBytes returns the size of the stored messages on disk.
func (s *Server) UsedBytes() int64 { return int64(s.server.GlobalAccount().JetStreamUsage().Store) }
