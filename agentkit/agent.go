package agentkit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/caprouter/caprouter/contract"
)

// DefaultIssuer is the issuer of a router's tokens unless auth.issuer is set.
const DefaultIssuer = "caprouter"

// requestTimeout bounds one request to the router.
const requestTimeout = 10 * time.Second

// Config describes an agent. AgentID is required, and RouterURL or JWKSURL.
type Config struct {
	AgentID   string // as in the router's registry: the key of the agent, or of its grant
	RouterURL string // of the router at which the agent registers itself; "" = the agent is in the registry file
	JWKSURL   string // the router's public keys; "" = RouterURL + /.well-known/jwks.json

	Path   string           // of endpoint.url in the registry; "" = "/"
	Issuer string           // "" = DefaultIssuer
	Client *http.Client     // fetches keys and sends results; nil = one with a timeout of 10 s
	Logger *slog.Logger     // errors and panics of the work; nil = slog.Default()
	Now    func() time.Time // nil = time.Now

	// AsyncAfter is how long the router waits on the connection before the task is
	// accepted with 202, if the task has a callback. 0 = until the work returns or
	// calls AcceptAsync.
	AsyncAfter time.Duration
	// CallbackHosts are additional hosts (host or host:port) to which results may
	// be sent, over https or the scheme of JWKSURL. The host of JWKSURL is always
	// allowed.
	CallbackHosts []string

	// Listen is the address (host:port) on which Run serves tasks; "" = 127.0.0.1 and
	// any free port.
	Listen string
	// Registration is the declaration of an agent that registers itself. These members
	// have other defaults than in the contract: Instance is the name of the host with
	// a random suffix, Endpoint.Protocol is http, and for Run Endpoint.URL is the
	// address it listens on. MaxInFlight bounds the tasks that an agent pulls.
	Registration contract.Registration
	// Token identifies the agent at the router. nil = none, for a router that does not
	// authenticate callers.
	Token TokenSource
	// DrainTimeout is how long the tasks in progress may take when the agent stops.
	// Canceling the remaining ones and deregistering take up to 6 s more. 0 =
	// DefaultDrainTimeout.
	DrainTimeout time.Duration
}

// Work executes one task. It must be safe for concurrent use.
type Work = func(ctx context.Context, t contract.Task) (contract.Result, error)

// New returns an agent that executes its tasks with work.
func New(cfg Config, work Work) (*Agent, error) {
	registration, err := newRegistration(cfg)
	if err != nil {
		return nil, err
	}
	if cfg.JWKSURL == "" && cfg.RouterURL != "" {
		cfg.JWKSURL = registration.routerURL + "/.well-known/jwks.json"
	}
	jwks, err := url.Parse(cfg.JWKSURL)
	switch {
	case !contract.ValidAgentID(cfg.AgentID):
		return nil, fmt.Errorf("agentkit: AgentID %q must match %s", cfg.AgentID, contract.AgentIDPattern)
	case err != nil || !isHTTP(jwks):
		return nil, fmt.Errorf("agentkit: JWKSURL %q must be the router's http(s)://…/.well-known/jwks.json", cfg.JWKSURL)
	case work == nil:
		return nil, errors.New("agentkit: work must not be nil")
	case cfg.AsyncAfter < 0:
		return nil, errors.New("agentkit: AsyncAfter must not be negative")
	}
	if cfg.Issuer == "" {
		cfg.Issuer = DefaultIssuer
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Client = routerClient(cfg.Client)
	return &Agent{
		path:       "/" + strings.Trim(cfg.Path, "/"),
		work:       work,
		log:        cfg.Logger.With("agent", cfg.AgentID),
		now:        cfg.Now,
		verifier:   tokenVerifier{agentID: cfg.AgentID, issuer: cfg.Issuer, now: cfg.Now, keys: newKeyCache(cfg)},
		tasks:      newTaskCache(maxFinishedTasks, maxFinishedBytes),
		asyncAfter: cfg.AsyncAfter,
		client:     cfg.Client,
		callbacks:  newCallbackPolicy(jwks, cfg.CallbackHosts),
		closing:    make(chan struct{}),

		registration: registration,
	}, nil
}

// Agent is an http.Handler that serves tasks. It is safe for concurrent use.
type Agent struct {
	path     string // "/" or without a trailing slash
	work     Work
	log      *slog.Logger
	now      func() time.Time
	verifier tokenVerifier
	tasks    *taskCache

	asyncAfter time.Duration
	client     *http.Client
	callbacks  callbackPolicy
	background sync.WaitGroup // asynchronous work, and sending progress
	closing    chan struct{}  // closed when Shutdown runs out of time
	closeOnce  sync.Once

	registration registration
}

// routerClient returns the client for requests to the router. It does not follow
// redirects, because tokens and results must not be sent to another origin.
func routerClient(custom *http.Client) *http.Client {
	client := http.Client{Timeout: requestTimeout}
	if custom != nil {
		client = *custom
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client
}

// ServeHTTP serves tasks, cancel requests and the health check.
func (a *Agent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	switch {
	case path == "/healthz":
		a.requireMethod(http.MethodGet, a.serveHealth, w, r)
	case path == a.path || path == a.path+"/" || path == "" && a.path == "/":
		a.requireMethod(http.MethodPost, a.serveTask, w, r)
	case a.parseCancelPath(path) != "":
		a.requireMethod(http.MethodPost, a.serveCancel, w, r)
	default:
		problemf(http.StatusNotFound, "not_found", "tasks are sent to POST %s", a.path).writeTo(w)
	}
}

// parseCancelPath returns the id in <path>/{task_id}/cancel, or "" for any
// other path.
func (a *Agent) parseCancelPath(path string) string {
	rest, below := strings.CutPrefix(path, strings.TrimSuffix(a.path, "/")+"/")
	id, isCancel := strings.CutSuffix(rest, "/cancel")
	if !below || !isCancel || !validTaskID(id) {
		return ""
	}
	return id
}

func (a *Agent) requireMethod(method string, serve http.HandlerFunc, w http.ResponseWriter, r *http.Request) {
	if r.Method == method || method == http.MethodGet && r.Method == http.MethodHead {
		serve(w, r)
		return
	}
	w.Header().Set("Allow", method)
	problemf(http.StatusMethodNotAllowed, "method_not_allowed", "only %s is served here", method).writeTo(w)
}

func (a *Agent) serveHealth(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, []byte(`{"status":"ok"}`))
}

// serveCancel cancels a task. An unknown task is recorded as cancelled, because
// the cancel request may arrive before the task.
func (a *Agent) serveCancel(w http.ResponseWriter, r *http.Request) {
	token, refusal := a.verifier.verifyRequest(r)
	id := a.parseCancelPath(r.URL.Path)
	if refusal == nil {
		refusal = token.checkTask(id)
	}
	if refusal != nil {
		refusal.writeTo(w)
		return
	}
	a.tasks.cancelJob(jobKey{token.caller, id}, a.encodeResult(id, Failure(textCancelled)))
	w.WriteHeader(http.StatusNoContent)
}
