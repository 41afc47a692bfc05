package agentkit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/caprouter/caprouter/contract"
)

// DefaultIssuer is the name a router goes by unless it is configured otherwise
// (auth.issuer).
const DefaultIssuer = "caprouter"

// maxTaskBytes bounds the body of a task.
const maxTaskBytes = 2 << 20

// Config says which agent this is and whose tokens it trusts. AgentID and
// JWKSURL are required.
type Config struct {
	AgentID string // as in the router's registry
	JWKSURL string // the router's public keys: <router>/.well-known/jwks.json

	Path   string           // of endpoint.url in the registry; "" = "/"
	Issuer string           // "" = DefaultIssuer
	Client *http.Client     // fetches the keys; nil = one with sane bounds
	Logger *slog.Logger     // errors and panics of the work; nil = slog.Default()
	Now    func() time.Time // nil = time.Now
}

// Work does one task. It is called from several goroutines at once.
type Work = func(ctx context.Context, t contract.Task) (contract.Result, error)

// New returns the handler of an agent that does its tasks with work.
func New(cfg Config, work Work) (http.Handler, error) {
	jwks, err := url.Parse(cfg.JWKSURL)
	switch {
	case !contract.ValidAgentID(cfg.AgentID):
		return nil, fmt.Errorf("agentkit: AgentID %q must match %s", cfg.AgentID, contract.AgentIDPattern)
	case err != nil || jwks.Host == "" || jwks.Scheme != "http" && jwks.Scheme != "https":
		return nil, fmt.Errorf("agentkit: JWKSURL %q must be the router's http(s)://…/.well-known/jwks.json", cfg.JWKSURL)
	case work == nil:
		return nil, errors.New("agentkit: work must not be nil")
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
	return &agent{
		path:     "/" + strings.Trim(cfg.Path, "/"),
		work:     work,
		log:      cfg.Logger.With("agent", cfg.AgentID),
		now:      cfg.Now,
		verifier: verifier{agentID: cfg.AgentID, issuer: cfg.Issuer, now: cfg.Now, keys: newKeys(cfg)},
		memory:   newMemory(maxRemembered, maxRememberedBytes),
	}, nil
}

// agent is the handler New returns.
type agent struct {
	path     string // "/" or without a slash at the end
	work     Work
	log      *slog.Logger
	now      func() time.Time
	verifier verifier
	memory   *memory
}

// ServeHTTP serves the three places of an agent.
func (a *agent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	switch {
	case path == "/healthz":
		a.only(http.MethodGet, a.serveHealth, w, r)
	case path == a.path || path == a.path+"/" || path == "" && a.path == "/":
		a.only(http.MethodPost, a.serveTask, w, r)
	case a.cancelledTask(path) != "":
		a.only(http.MethodPost, a.serveCancel, w, r)
	default:
		problemf(http.StatusNotFound, "not_found", "tasks are sent to POST %s", a.path).write(w)
	}
}

// cancelledTask returns the id in <path>/{task_id}/cancel, or "".
func (a *agent) cancelledTask(path string) string {
	rest, below := strings.CutPrefix(path, strings.TrimSuffix(a.path, "/")+"/")
	id, isCancel := strings.CutSuffix(rest, "/cancel")
	if !below || !isCancel || !validTaskID(id) {
		return ""
	}
	return id
}

func (a *agent) only(method string, serve http.HandlerFunc, w http.ResponseWriter, r *http.Request) {
	if r.Method == method || method == http.MethodGet && r.Method == http.MethodHead {
		serve(w, r)
		return
	}
	w.Header().Set("Allow", method)
	problemf(http.StatusMethodNotAllowed, "method_not_allowed", "only %s is served here", method).write(w)
}

func (a *agent) serveHealth(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, []byte(`{"status":"ok"}`))
}

// serveTask does a task, or waits for the same task to be done, and answers
// with its result.
func (a *agent) serveTask(w http.ResponseWriter, r *http.Request) {
	// The token comes first: nothing of a stranger's body is read.
	token, trouble := a.verifier.verify(r)
	if trouble != nil {
		trouble.write(w)
		return
	}
	task, trouble := a.readTask(w, r)
	if trouble == nil {
		trouble = token.allows(task.TaskID)
	}
	if trouble != nil {
		trouble.write(w)
		return
	}
	// The work outlives the connection; see the package comment.
	ctx, cancel := context.WithDeadline(context.WithoutCancel(r.Context()), task.Deadline)
	defer cancel()
	j, first := a.memory.begin(jobKey{token.Subject, task.TaskID}, cancel)
	if first {
		a.do(context.WithValue(ctx, callerKey{}, token.Subject), j, task)
	}
	select {
	case <-j.done:
		writeJSON(w, http.StatusOK, j.answer)
	case <-r.Context().Done(): // this one has left; others may still wait
	}
}

// serveCancel ends the work on a task. A task that is not here yet is not begun
// when it comes: a cancellation may overtake it.
func (a *agent) serveCancel(w http.ResponseWriter, r *http.Request) {
	token, trouble := a.verifier.verify(r)
	id := a.cancelledTask(r.URL.Path)
	if trouble == nil {
		trouble = token.allows(id)
	}
	if trouble != nil {
		trouble.write(w)
		return
	}
	a.memory.cancel(jobKey{token.Subject, id}, a.encode(id, Failure(saidCancelled)))
	w.WriteHeader(http.StatusNoContent)
}

// readTask reads the body. Members it does not know are ignored, so that an
// agent survives a newer router.
func (a *agent) readTask(w http.ResponseWriter, r *http.Request) (contract.Task, *problem) {
	var task contract.Task
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if charset, named := params["charset"]; err != nil || media != "application/json" || named && !strings.EqualFold(charset, "utf-8") {
		return task, problemf(http.StatusUnsupportedMediaType, "unsupported_media_type", "send application/json in UTF-8")
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return task, problemf(http.StatusUnsupportedMediaType, "unsupported_media_type", "send the task without a content encoding")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxTaskBytes))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return task, problemf(http.StatusRequestEntityTooLarge, "payload_too_large", "a task has at most %d bytes", maxTaskBytes)
	}
	if err == nil {
		err = decodeStrict(body, &task)
	}
	switch {
	case err != nil:
		return task, problemf(http.StatusBadRequest, "invalid_request", "not a task: %.200v", err)
	case !validTaskID(task.TaskID):
		return task, problemf(http.StatusBadRequest, "invalid_request", "not a task: task_id is missing or not an id")
	case !task.Deadline.After(a.now()):
		return task, problemf(http.StatusBadRequest, "invalid_request", "the task's deadline has passed by this agent's clock")
	}
	return task, nil
}

// validTaskID takes what can stand in a path and be kept in memory.
func validTaskID(id string) bool {
	return id != "" && len(id) <= 128 && !strings.ContainsFunc(id, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune(`/\?#%`, r)
	})
}
