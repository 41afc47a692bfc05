package httpserver

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/telemetry"
)

// Defaults of Config.
const (
	DefaultMaxInFlight  = 512
	DefaultMaxReaders   = 10_000
	DefaultHeartbeat    = 15 * time.Second
	DefaultDrainTimeout = 10 * time.Second
	DefaultDrainGrace   = time.Second
)

// Config configures a Server. Only NewID is required.
type Config struct {
	// NewID returns a new request id.
	NewID func() string

	// Auth verifies the tokens of callers. If it is nil, every request is one of
	// the local caller, who holds all scopes; the server then listens on loopback
	// addresses only, and rejects requests whose Host is not a loopback host.
	Auth Authenticator

	// TLS holds the server's certificate. If it is nil, connections are not
	// encrypted.
	TLS *tls.Config

	MaxInFlight int // ClassWork requests at a time; 0 = DefaultMaxInFlight
	MaxReaders  int // ClassStream requests at a time; 0 = DefaultMaxReaders
	// MaxSchedulingDelay is how long goroutines may wait for a processor (99th percentile)
	// before requests of the tenants that send the most are delayed. 0 delays none.
	MaxSchedulingDelay time.Duration

	Heartbeat    time.Duration // interval between comments in event streams; 0 = DefaultHeartbeat
	DrainTimeout time.Duration // time for running requests to end; 0 = DefaultDrainTimeout
	DrainGrace   time.Duration // time after their contexts are cancelled; 0 = DefaultDrainGrace
	Logger       *slog.Logger  // nil discards the log
	Meter        Meter         // nil discards the measurements

	// Tracer starts the spans of requests. Nil starts none.
	Tracer *telemetry.Tracer
}

// Meter observes the load of the server.
type Meter interface {
	// AddInFlight adds delta to the number of ClassWork requests in flight.
	AddInFlight(delta int)
	// RecordThrottled counts a request of a tenant that sends more than others, which is
	// delayed or rejected while the processors are overloaded.
	RecordThrottled(rejected bool)
}

type discardMeter struct{}

func (discardMeter) AddInFlight(int)      {}
func (discardMeter) RecordThrottled(bool) {}

// API is one HTTP interface: routes that share an error format.
type API struct {
	// Prefix starts the path of each route. A request that matches no route gets
	// its error in the format of the API with the longest prefix of its path, or
	// of the API that was mounted first.
	Prefix string
	Routes []Route

	// EncodeError returns an error in the format of the API. It reports false if
	// the API does not define the error's code; the client then gets
	// contract.CodeInternal, and the log gets the error.
	EncodeError func(requestID string, e *contract.Error) (EncodedError, bool)

	// NotFound is the message of the error for a path without a route.
	NotFound string

	// ResourceMetadata returns the URL of the metadata of the API (RFC 9728), which names
	// the servers that issue its tokens. Responses that ask for a token contain it. Nil =
	// there are none.
	ResourceMetadata func() string

	// SuccessHeaders are headers, in canonical form, that handlers set and that an
	// error response must not carry.
	SuccessHeaders []string
}

// EncodedError is the response to a failed request. In an event stream that has
// begun, Body becomes the data of the event EventError.
type EncodedError struct {
	Status      int
	ContentType string
	Body        any // encoded as JSON
}

// Public is the Scope of a route that needs no token.
const Public = ""

// Route is one operation of an API. A GET route answers HEAD requests, too.
type Route struct {
	Method string
	Path   string // ":name" is a parameter: see Context.PathParam
	Scope  string // that the caller must hold, or Public
	// OrAdmin permits callers with contract.ScopeAdmin, too.
	OrAdmin bool

	// HasScope replaces the check whether the caller holds Scope, if the scope depends on
	// the body: it reports whether the caller holds any such scope.
	HasScope func(caller *contract.Caller) bool
	// MissingScope is the error if HasScope reports false; nil names Scope.
	MissingScope *contract.Error

	// Authorize replaces the check of the caller's token and scope if it is set.
	// It may set Context.MemoryOwner.
	Authorize func(c *Context) error

	Class     Class
	RateLimit RateLimiter // nil = the route is not rate limited
	Body      BodySpec    // the zero value ignores the body

	// Handle answers the request. An error is encoded by the API.
	Handle func(c *Context) error

	// ObserveError, if set, is called once for each request that got an error.
	ObserveError func(outcome string, took time.Duration)
}

// mountedRoute is a route with the API it belongs to. It is immutable.
type mountedRoute struct {
	Route
	api *API
}

// Server serves the APIs that are mounted on it. Its methods, except Mount, may
// be called from any goroutine.
type Server struct {
	cfg    Config
	log    *slog.Logger
	access accessPolicy
	apis   []*API

	echo           *echo.Echo
	crossOrigin    *http.CrossOriginProtection
	throttle       *tenantThrottle // nil = there is one caller, or no limit
	admission      *admissionController
	requestMemory  *memoryBudget // bodies that are not decoded yet
	responseMemory *memoryBudget // responses whose requests hold no permit any more
	delivering     atomic.Int64  // number of those responses
	uploads        uploads
	shutdown       shutdownSignal
	buffers        bufferPool
}

// New returns a server without routes. Serve starts it.
func New(cfg Config) (*Server, error) {
	if cfg.NewID == nil {
		return nil, errors.New("httpserver: Config.NewID is required")
	}
	cfg = cfg.withDefaults()
	access := newAccessPolicy(cfg.Auth)
	share := int64(memoryShares)
	if !access.hasManyCallers() {
		share = 1
	}
	s := &Server{
		cfg:            cfg,
		log:            cfg.Logger,
		access:         access,
		echo:           echo.New(),
		crossOrigin:    http.NewCrossOriginProtection(),
		admission:      newAdmissionController(&cfg, access.hasManyCallers()),
		requestMemory:  newMemoryBudget(maxRequestMemory, maxRequestMemory/share),
		responseMemory: newMemoryBudget(maxResponseMemory, maxResponseMemory/share),
		shutdown:       shutdownSignal{started: make(chan struct{})},
	}
	if access.hasManyCallers() && cfg.MaxSchedulingDelay > 0 {
		s.throttle = newTenantThrottle(&cfg)
	}
	s.echo.HTTPErrorHandler = func(err error, ec echo.Context) { s.writeError(contextOf(ec), err) }
	return s, nil
}

func (c Config) withDefaults() Config {
	c.MaxInFlight = cmp.Or(c.MaxInFlight, DefaultMaxInFlight)
	c.MaxReaders = cmp.Or(c.MaxReaders, DefaultMaxReaders)
	c.Heartbeat = cmp.Or(c.Heartbeat, DefaultHeartbeat)
	c.DrainTimeout = cmp.Or(c.DrainTimeout, DefaultDrainTimeout)
	c.DrainGrace = cmp.Or(c.DrainGrace, DefaultDrainGrace)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Meter == nil {
		c.Meter = discardMeter{}
	}
	return c
}

// Mount adds the routes of an API. It must not be called after Serve.
func (s *Server) Mount(api API) error {
	if err := s.checkAPI(&api); err != nil {
		return fmt.Errorf("httpserver: mount the API at %q: %w", api.Prefix, err)
	}
	s.apis = append(s.apis, &api)
	for i := range api.Routes {
		route := &mountedRoute{Route: api.Routes[i], api: &api}
		handle := s.guardRoute(route)
		s.echo.Add(route.Method, route.Path, handle)
		if route.Method == http.MethodGet {
			s.echo.Add(http.MethodHead, route.Path, handle) // net/http discards the body
		}
	}
	return nil
}

func (s *Server) checkAPI(api *API) error {
	if api.EncodeError == nil {
		return errors.New("EncodeError is required")
	}
	for _, code := range ownCodes() {
		if _, ok := api.EncodeError("", &contract.Error{Code: code}); !ok {
			return fmt.Errorf("EncodeError does not define %s", code)
		}
	}
	taken := map[string]bool{}
	for _, mounted := range s.echo.Routes() {
		taken[mounted.Method+" "+mounted.Path] = true
	}
	for i := range api.Routes {
		route := &api.Routes[i]
		name := route.Method + " " + route.Path
		switch {
		case !strings.HasPrefix(route.Path, api.Prefix):
			return fmt.Errorf("%s does not begin with the prefix", name)
		case route.Handle == nil:
			return fmt.Errorf("%s has no handler", name)
		case taken[name]:
			return fmt.Errorf("%s is mounted twice", name)
		}
		taken[name] = true
	}
	return nil
}

// apiOf returns the API whose error format a request without a route gets.
func (s *Server) apiOf(path string) *API {
	best := s.apis[0]
	longest := -1
	for _, api := range s.apis {
		if n := len(api.Prefix); n > longest && strings.HasPrefix(path, api.Prefix) {
			best, longest = api, n
		}
	}
	return best
}
