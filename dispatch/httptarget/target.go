package httptarget

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/auth"
	"github.com/caprouter/caprouter/internal/egress"
	"github.com/caprouter/caprouter/internal/resilience"
)

// maxTries is how often one agent is sent one task.
const maxTries = 2

// The pause before the second try, jittered.
const backoff = 50 * time.Millisecond

// Config says who the router is to its agents. Issuer is required.
type Config struct {
	Issuer         string        // of the tokens
	TokenReuse     time.Duration // a token serves a caller's tasks for an agent that long; 0 = one task
	AllowPlainHTTP bool          // tokens over http to hosts other than this one
	Version        string        // of this build, for the User-Agent
	// PublicURL is where agents reach the router, for what they send later; ""
	// while nobody knows. nil = never known.
	PublicURL func() string

	// Guard is where agents that registered themselves may be; nil = they are not
	// called.
	Guard *egress.Guard

	TLS    *tls.Config      // nil = the system's roots
	Logger *slog.Logger     // why tasks failed; nil = silent
	Now    func() time.Time // for the life of reused tokens; nil = time.Now
}

// TokenSource mints the tokens agents receive.
type TokenSource interface {
	AgentToken(g auth.AgentGrant) (string, error)
	TaskToken(issuer string, g contract.TaskGrant) (string, error)
	KeyID() string // of the key that signs now
}

// Target gives tasks to agents over HTTP. It may be used from any goroutine,
// and must be closed.
type Target struct {
	plainHTTP bool
	publicURL func() string
	blank     *http.Request // what all tasks' requests have in common; copied, never changed
	log       *slog.Logger
	tokens    *tokens
	guard     *egress.Guard
	// Two sets of connections: one that was made for an address of the file is
	// not lent to an agent that names the same one. guarded is nil without a guard.
	trusted, guarded *http.Transport
	stopper          *stopper
	buffers          buffers
}

var (
	_ dispatch.Target   = (*Target)(nil)
	_ dispatch.Canceler = (*Target)(nil)
)

// New returns a Target whose tokens come from source.
func New(cfg Config, source TokenSource) (*Target, error) {
	switch {
	case cfg.Issuer == "":
		return nil, errors.New("httptarget: an issuer is required")
	case source == nil:
		return nil, errors.New("httptarget: a token source is required")
	case cfg.TokenReuse < 0:
		return nil, errors.New("httptarget: token reuse must not be negative")
	}
	if cfg.Version == "" {
		cfg.Version = "dev"
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.PublicURL == nil {
		cfg.PublicURL = func() string { return "" }
	}
	t := &Target{
		plainHTTP: cfg.AllowPlainHTTP,
		publicURL: cfg.PublicURL,
		blank: &http.Request{
			Method: http.MethodPost, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{
				"Accept":          {"application/json"},
				"Accept-Encoding": {"gzip"}, // named here, so that the transport leaves decoding to us
				"Content-Type":    {"application/json"},
				"User-Agent":      {"caprouter/" + cfg.Version},
			},
		},
		log:     cfg.Logger,
		tokens:  newTokens(source, cfg.Issuer, cfg.TokenReuse, cfg.Now),
		guard:   cfg.Guard,
		trusted: newTransport(cfg.TLS, nil),
		stopper: newStopper(),
	}
	if cfg.Guard != nil {
		t.guarded = newTransport(cfg.TLS, cfg.Guard)
	}
	return t, nil
}

// Close waits for the cancellations on their way, which are short, and closes
// the idle connections. Do and Stop must not be called any more.
func (t *Target) Close() {
	t.stopper.close()
	t.trusted.CloseIdleConnections()
	if t.guarded != nil {
		t.guarded.CloseIdleConnections()
	}
}

// Execute gives the task to the agent and returns what came of it.
func (t *Target) Execute(ctx context.Context, c dispatch.Call) dispatch.Outcome {
	now := time.Now()
	due, end := endOf(ctx, c, now)
	e := &errand{target: t, call: c, began: now, due: due, end: end, before: max(c.Task.Attempt-1, 0)}
	if by, ok := ctx.Deadline(); !ok || e.end.Before(by) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, e.end)
		defer cancel()
	}
	f := e.prepare(ctx)
	if f == nil {
		f = e.run(ctx)
	}
	if e.abandoned && f != nil {
		t.stopper.tell(e.transport, e.stopRequest())
	}
	if f != nil {
		e.report(ctx, f)
		return dispatch.Outcome{
			Err:      &contract.TaskError{Code: f.code, Detail: f.detail},
			Attempts: e.before + e.tries, MayHaveExecuted: f.uncertain, Health: f.health,
		}
	}
	return dispatch.Outcome{Result: e.result, Pending: e.later, Attempts: e.before + e.tries, Health: dispatch.HealthGood}
}

// CancelTask tells the agent that nobody waits for the task any more, in the
// background and as well as it can.
func (t *Target) CancelTask(c dispatch.Call) {
	e := &errand{target: t, call: c}
	f := e.locate()
	if f == nil {
		var err error
		if e.token, err = t.tokens.get(c, time.Now()); err != nil {
			f = e.tokenless(err)
		}
	}
	if f != nil {
		t.log.Warn("agent not told to stop", "agent", c.Agent.ID, "task_id", c.Task.TaskID, "trace_id", c.Task.TraceID, "detail", f.detail, "err", f.cause)
		return
	}
	t.stopper.tell(e.transport, e.stopRequest())
}

// run tries until there is a result, no more tries, or no more time.
func (e *errand) run(ctx context.Context) *failure {
	err := resilience.Retry(ctx, resilience.RetryConfig{
		MaxAttempts: maxTries,
		Backoff:     backoff,
		Retryable:   e.retryable,
		MinDelay:    retryAfter,
	}, func(ctx context.Context, try int) error {
		e.tries = try
		if f := e.try(ctx, try); f != nil {
			return f
		}
		return nil
	})
	f, _ := errors.AsType[*failure](err)
	return f
}

// report logs what the caller is not told.
func (e *errand) report(ctx context.Context, f *failure) {
	level := slog.LevelWarn
	if f.code == contract.TaskWasCancelled {
		level = slog.LevelDebug
	}
	e.target.log.Log(ctx, level, "task not done", "agent", e.call.Agent.ID, "task_id", e.call.Task.TaskID,
		"trace_id", e.call.Task.TraceID, "attempts", e.tries, "code", f.code, "detail", f.detail, "err", f.cause)
}
