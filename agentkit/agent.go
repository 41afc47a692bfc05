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

// DefaultIssuer is the name a router goes by unless it is configured otherwise
// (auth.issuer).
const DefaultIssuer = "caprouter"

// postTimeout is how long one thing said to the router may take.
const postTimeout = 10 * time.Second

// Config says which agent this is and whose tokens it trusts. AgentID and
// JWKSURL are required.
type Config struct {
	AgentID string // as in the router's registry
	JWKSURL string // the router's public keys: <router>/.well-known/jwks.json

	Path   string           // of endpoint.url in the registry; "" = "/"
	Issuer string           // "" = DefaultIssuer
	Client *http.Client     // fetches the keys, delivers results; nil = one with sane bounds
	Logger *slog.Logger     // errors and panics of the work; nil = slog.Default()
	Now    func() time.Time // nil = time.Now

	// AsyncAfter is how long the router is kept waiting on the connection for the
	// result of work that may come later. 0 = until the work is done or calls
	// Later.
	AsyncAfter time.Duration
	// CallbackHosts are more hosts (host or host:port) that results may be
	// delivered to, over https or as plainly as JWKSURL. Its host is always one.
	CallbackHosts []string
}

// Work does one task. It is called from several goroutines at once.
type Work = func(ctx context.Context, t contract.Task) (contract.Result, error)

// New returns an agent that does its tasks with work.
func New(cfg Config, work Work) (*Agent, error) {
	jwks, err := url.Parse(cfg.JWKSURL)
	switch {
	case !contract.ValidAgentID(cfg.AgentID):
		return nil, fmt.Errorf("agentkit: AgentID %q must match %s", cfg.AgentID, contract.AgentIDPattern)
	case err != nil || jwks.Host == "" || jwks.Scheme != "http" && jwks.Scheme != "https":
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
	}, nil
}

// Agent is an agent as an http.Handler.
type Agent struct {
	path     string // "/" or without a slash at the end
	work     Work
	log      *slog.Logger
	now      func() time.Time
	verifier tokenVerifier
	tasks    *taskCache

	asyncAfter time.Duration
	client     *http.Client
	callbacks  callbackPolicy
	background sync.WaitGroup // work that no connection waits for, and progress
	closing    chan struct{}  // closed when there is no time for a second try
	closeOnce  sync.Once
}

// routerClient returns the client with which all is said to the router: it goes
// where the operator named and nowhere else, so no redirect is followed.
func routerClient(given *http.Client) *http.Client {
	client := http.Client{Timeout: postTimeout}
	if given != nil {
		client = *given
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client
}

// ServeHTTP serves the three places of an agent.
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

// parseCancelPath returns the id in <path>/{task_id}/cancel, or "".
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

// serveCancel ends the work on a task. A task that is not here yet is not begun
// when it comes: a cancellation may overtake it.
func (a *Agent) serveCancel(w http.ResponseWriter, r *http.Request) {
	token, trouble := a.verifier.verifyRequest(r)
	id := a.parseCancelPath(r.URL.Path)
	if trouble == nil {
		trouble = token.checkTask(id)
	}
	if trouble != nil {
		trouble.writeTo(w)
		return
	}
	a.tasks.cancelJob(jobKey{token.caller, id}, a.encodeResult(id, Failure(textCancelled)))
	w.WriteHeader(http.StatusNoContent)
}
