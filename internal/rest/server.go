package rest

import (
	"crypto/tls"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/caprouter/caprouter/contract"
)

// Defaults of Config.
const (
	DefaultMaxInFlight  = 512
	DefaultMaxReaders   = 10_000
	DefaultHeartbeat    = 15 * time.Second
	DefaultDrainTimeout = 10 * time.Second
	DefaultDrainGrace   = time.Second
)

// Config is how the edge behaves. The zero value serves one local principal.
type Config struct {
	// Auth says who calls. nil is the one local principal, who holds every
	// scope: such a server listens on loopback only and answers only requests
	// that name a loopback host.
	Auth Authenticator

	// Classify bounds how often a caller may have something classified; nil = no
	// bound.
	Classify RateLimit

	// TLS is how the server proves who it is; nil = it does not, and what is said
	// is said in the clear.
	TLS *tls.Config

	MaxInFlight  int           // requests worked on at a time; 0 = DefaultMaxInFlight
	MaxReaders   int           // readers of events at a time; 0 = DefaultMaxReaders
	Heartbeat    time.Duration // between the comments in a stream of events; 0 = DefaultHeartbeat
	DrainTimeout time.Duration // what running requests get to end; 0 = DefaultDrainTimeout
	DrainGrace   time.Duration // what they get after their contexts ended; 0 = DefaultDrainGrace
	Logger       *slog.Logger  // nil drops the log
}

// Server answers the REST interface. Make one with New.
type Server struct {
	cfg   Config
	deps  Deps
	log   *slog.Logger
	local *contract.Caller // who everybody is, without authentication; else nil

	echo        *echo.Echo
	crossOrigin *http.CrossOriginProtection
	lanes       [laneCount]places
	shares      shares       // of laneWork
	receiving   pot          // bodies that were not decoded yet
	sending     pot          // answers whose requests are over
	delivering  atomic.Int64 // how many
	draining    atomic.Bool
	stopping    chan struct{} // closed when the server drains
	buffers     bufferPool
	openapi     document
}

// New checks that nothing is missing and builds the server, which serves
// nothing until Serve.
func New(cfg Config, deps Deps) (*Server, error) {
	if err := deps.check(); err != nil {
		return nil, err
	}
	s := &Server{
		cfg:         cfg.withDefaults(),
		deps:        deps,
		echo:        echo.New(),
		crossOrigin: http.NewCrossOriginProtection(),
		stopping:    make(chan struct{}),
		openapi:     loadDocument(),
	}
	s.receiving.most, s.receiving.share = maxReceiving, shareReceiving
	s.sending.most, s.sending.share = maxSending, shareSending
	if cfg.Auth == nil { // everybody is one
		s.receiving.share, s.sending.share = maxReceiving, maxSending
		s.local = &contract.Caller{Subject: "local", AllScopes: true, AllAgents: true}
	}
	s.lanes[laneWork].most = s.cfg.MaxInFlight
	s.lanes[laneRelief].most = maxRelief
	s.lanes[laneChecks].most = maxChecks
	s.lanes[laneReaders].most = s.cfg.MaxReaders
	s.log = s.cfg.Logger
	s.echo.HTTPErrorHandler = func(err error, c echo.Context) { s.fail(c.Request().Context(), exchangeOf(c), err) }
	for _, rt := range s.routes() {
		s.mount(rt)
	}
	return s, nil
}

func (c Config) withDefaults() Config {
	if c.MaxInFlight == 0 {
		c.MaxInFlight = DefaultMaxInFlight
	}
	if c.MaxReaders == 0 {
		c.MaxReaders = DefaultMaxReaders
	}
	if c.Heartbeat == 0 {
		c.Heartbeat = DefaultHeartbeat
	}
	if c.DrainTimeout == 0 {
		c.DrainTimeout = DefaultDrainTimeout
	}
	if c.DrainGrace == 0 {
		c.DrainGrace = DefaultDrainGrace
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}
