package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
)

// Router is the core as this edge needs it.
type Router interface {
	// Handle routes a request. A request nobody may serve is an answer
	// (contract.StatusUnsupported), not an error; a *contract.Error is told to
	// the caller, any other error only to the log.
	Handle(ctx context.Context, req *contract.Request, caller *contract.Caller) (*contract.Response, error)
	Classify(ctx context.Context, req *contract.Request, caller *contract.Caller) (*contract.Classification, error)
}

// Meter counts what only the edge sees. Answers the core counts itself.
type Meter interface {
	// Request counts a routing request that got an error and no answer; outcome
	// is the error's code.
	Request(outcome string, took time.Duration)
	// InFlight adds to the number of requests being worked on.
	InFlight(delta int)
}

// Deps is what the edge stands in front of. All but Meter are required; every
// function is called from many goroutines at a time.
type Deps struct {
	Router     Router
	Registry   func() *capabilities.Snapshot // the one in force
	AgentState func(id string) AgentState
	Readiness  func() Readiness
	JWKS       func() []byte // the key set agents verify their tokens with, as JSON
	NewID      func() string // makes request ids (UUIDv7)
	Metrics    http.Handler  // what /metrics answers
	Meter      Meter         // nil counts nothing
}

// Defaults of Config.
const (
	DefaultMaxInFlight  = 512
	DefaultDrainTimeout = 10 * time.Second
	DefaultDrainGrace   = time.Second
)

// Config is how the edge behaves. The zero value serves one local principal.
type Config struct {
	// Auth says who calls. nil is the one local principal, who holds every
	// scope: such a server listens on loopback only and answers only requests
	// that name a loopback host.
	Auth Authenticator

	MaxInFlight  int           // requests worked on at a time; 0 = DefaultMaxInFlight
	DrainTimeout time.Duration // what running requests get to end; 0 = DefaultDrainTimeout
	DrainGrace   time.Duration // what they get after their contexts ended; 0 = DefaultDrainGrace
	Logger       *slog.Logger  // nil drops the log
}

// Server answers the REST interface. Make one with New.
type Server struct {
	cfg   Config
	deps  Deps
	log   *slog.Logger
	local bool // no authentication: loopback only

	echo        *echo.Echo
	crossOrigin *http.CrossOriginProtection
	inFlight    atomic.Int64
	draining    atomic.Bool
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
		local:       cfg.Auth == nil,
		echo:        echo.New(),
		crossOrigin: http.NewCrossOriginProtection(),
		openapi:     loadDocument(),
	}
	s.log = s.cfg.Logger
	s.echo.HTTPErrorHandler = func(err error, c echo.Context) { s.fail(c.Request().Context(), exchangeOf(c), err) }
	for _, rt := range s.routes() {
		s.mount(rt)
	}
	return s, nil
}

func (c Config) withDefaults() Config {
	if c.Auth == nil {
		c.Auth = localPrincipal{caller: &contract.Caller{Subject: "local", AllScopes: true, AllAgents: true}}
	}
	if c.MaxInFlight == 0 {
		c.MaxInFlight = DefaultMaxInFlight
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

// check names every dependency that is missing, so that it shows at start and
// not with the first request to the path.
func (d *Deps) check() error {
	var missing []error
	v := reflect.ValueOf(d).Elem()
	for field, value := range v.Fields() {
		if field.Name != "Meter" && value.IsNil() {
			missing = append(missing, fmt.Errorf("httpapi: Deps.%s is required", field.Name))
		}
	}
	return errors.Join(missing...)
}
