package httptarget

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/dispatch/attempt"
	"github.com/caprouter/caprouter/internal/auth/issuance"
	"github.com/caprouter/caprouter/internal/egress"
)

// Config describes the router to its agents. Issuer is required.
type Config struct {
	Issuer         string        // of the tokens
	TokenReuse     time.Duration // how long a token serves the tasks of a caller for an agent; 0 = one task
	AllowPlainHTTP bool          // send tokens over http to other hosts
	Version        string        // of this build, for the User-Agent
	// PublicURL returns the address at which agents reach the router with later
	// results; "" while it is unknown. nil = always unknown.
	PublicURL func() string

	// Guard restricts the addresses of agents that registered themselves; nil =
	// they are not called.
	Guard *egress.Guard

	TLS    *tls.Config      // nil = the system's roots
	Logger *slog.Logger     // receives the causes of failures; nil = silent
	Now    func() time.Time // for the life of reused tokens; nil = time.Now
}

// TokenSource mints the tokens agents receive.
type TokenSource interface {
	AgentToken(g issuance.AgentGrant) (string, error)
	TaskToken(issuer string, g contract.TaskGrant) (string, error)
	KeyID() string // of the present signing key
}

// Target sends tasks to agents over HTTP. It is safe for concurrent use and must
// be closed.
type Target struct {
	plainHTTP bool
	publicURL func() string
	template  *http.Request // the common part of all task requests; read only
	log       *slog.Logger
	tokens    *tokenCache
	guard     *egress.Guard
	// Connections are not shared between the two kinds of address, because the
	// guard is checked only when a connection is made. guarded is nil without a
	// guard.
	trusted, guarded *transport
	cancels          *cancelSender
	buffers          bufferPool
}

var (
	_ dispatch.Target    = (*Target)(nil)
	_ dispatch.Preparer  = (*Target)(nil)
	_ dispatch.Canceller = (*Target)(nil)
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
		template: &http.Request{
			Method: http.MethodPost, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{
				"Accept":          {"application/json"},
				"Accept-Encoding": {"gzip"}, // set explicitly, so that the transport does not decompress
				"Content-Type":    {"application/json"},
				"User-Agent":      {"caprouter/" + cfg.Version},
			},
		},
		log:     cfg.Logger,
		tokens:  newTokenCache(source, cfg.Issuer, cfg.TokenReuse, cfg.Now),
		guard:   cfg.Guard,
		trusted: newTransport(cfg.TLS, egress.Unrestricted{}),
		cancels: newCancelSender(),
	}
	if cfg.Guard != nil {
		t.guarded = newTransport(cfg.TLS, cfg.Guard)
	}
	return t, nil
}

// Close waits for the cancel requests in flight, which are short, and closes the
// idle connections. Execute and CancelTask must not be called any more.
func (t *Target) Close() {
	t.cancels.closeAndWait()
	t.trusted.close()
	if t.guarded != nil {
		t.guarded.close()
	}
}

// Execute sends the task to the agent and returns the outcome.
func (t *Target) Execute(ctx context.Context, c dispatch.Call) dispatch.Outcome {
	policy := attempt.NewPolicy(ctx, c, time.Now())
	ctx, cancel := policy.WithDeadline(ctx)
	defer cancel()
	call := &agentCall{target: t, Call: c, policy: policy}
	attempts, failure := 0, call.prepare(ctx)
	if failure == nil {
		attempts, failure = policy.Run(ctx, call.sendTask)
	}
	if failure != nil {
		failure.Address = call.describeAddress()
		if failure.Abandoned {
			t.cancels.enqueue(call.transport, call.newCancelRequest(ctx))
		}
		call.logFailure(ctx, attempts, failure)
		return policy.Outcome(attempts, failure)
	}
	return dispatch.Outcome{Result: call.result, Pending: call.accepted, Attempts: policy.Previous + attempts, Health: dispatch.HealthGood}
}

// Prepare implements dispatch.Preparer. It begins to connect to the agent if no connection is
// idle, and mints the token, unless tokens are reused.
func (t *Target) Prepare(ctx context.Context, c dispatch.Call) dispatch.Token {
	policy := attempt.NewPolicy(ctx, c, time.Now())
	t.connectEarly(c, policy)
	if t.tokens.reuse != 0 {
		return dispatch.Token{}
	}
	keyID := t.tokens.source.KeyID()
	token, err := t.tokens.agentToken(c, policy.ReplyBy)
	if err != nil {
		return dispatch.Token{}
	}
	return dispatch.Token{Value: token, KeyID: keyID, Expires: policy.ReplyBy.Add(dispatch.TokenSlack)}
}

// connectEarly begins to connect to the agent. Execute reports why it cannot be called. net/http
// connects to another form of a host name that is not ASCII, and would not use the connection.
func (t *Target) connectEarly(c dispatch.Call, policy *attempt.Policy) {
	call := &agentCall{target: t, Call: c, policy: policy}
	if call.resolveEndpoint() != nil || strings.ContainsFunc(call.url.Host, func(r rune) bool { return r > unicode.MaxASCII }) {
		return
	}
	call.transport.dialer.connectEarly(originOf(call.url), policy.Limits(time.Now(), 1).ConnectBy)
}

// CancelTask sends a cancel request in the background, best effort.
func (t *Target) CancelTask(c dispatch.Call) {
	now := time.Now()
	call := &agentCall{target: t, Call: c, policy: attempt.NewPolicy(context.Background(), c, now)}
	failure := call.resolveEndpoint()
	if failure == nil {
		var err error
		if call.token, err = t.tokens.agentToken(c, now); err != nil {
			failure = call.tokenFailure(err)
		}
	}
	if failure != nil {
		t.log.Warn("cannot cancel a task at its agent", "agent", c.Agent.ID, "task_id", c.Task.TaskID, "trace_id", c.Task.TraceID,
			"detail", failure.Detail, "error", failure.Cause)
		return
	}
	t.cancels.enqueue(call.transport, call.newCancelRequest(context.Background()))
}
