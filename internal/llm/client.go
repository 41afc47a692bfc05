package llm

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/resilience"
)

const (
	defaultMaxInFlight = 256
	// defaultCallTimeout bounds a call whose context has no deadline.
	defaultCallTimeout = 60 * time.Second
	// retryBackoff is the base of the jittered wait before a retry. It is
	// short, because a classification has two seconds in total.
	retryBackoff = 100 * time.Millisecond
)

// A timeout counts as a failure of the model only if the call had at least this
// much time, because many deadlines are the caller's own. A direct answer
// (policy A) is much longer than a classification, so it needs more.
const (
	DefaultMinBreakerTime = time.Second
	minAnswerBreakerTime  = 10 * time.Second
)

// OutcomeCancelled is the outcome of a call that its caller cancelled.
const OutcomeCancelled = "cancelled"

// ClientConfig configures a Client.
type ClientConfig struct {
	Provider       string      // gemini, genai or openai
	Model          string      // as configured
	MaxInFlight    int         // concurrent calls; 0 = 256
	Budget         TokenBudget // nil = unlimited
	Breaker        resilience.BreakerConfig
	MinBreakerTime time.Duration // minimum time of a call whose timeout counts as a failure; 0 = DefaultMinBreakerTime
	Observe        func(Call)    // called after every exchange or rejection, in the caller's goroutine; may be nil
}

// Call is an exchange with the model, or a call that the client rejected.
type Call struct {
	Purpose contract.CallPurpose
	Outcome string // contract.OutcomeOK, OutcomeCancelled or a reason
	Retry   bool   // the second of two
	Latency time.Duration
	Tokens  contract.Tokens
}

// Client calls a provider with a limit of concurrent calls, a circuit breaker,
// a token budget and a retry budget. It is safe for concurrent use.
//
//	                   rejected: llm_overloaded     llm_breaker_open, llm_budget
//	                              ▲                          ▲
//	Generate ── calls in flight ──┴─ callOnce ─ circuit breaker, budget ── Provider.Generate
//	                                    ▲                              │
//	                                    └── 429, 5xx, no connection ◀──┘
//	                                        one retry, within deadline and retry budget
type Client struct {
	provider       Provider
	name, model    string
	breaker        *resilience.Breaker
	retries        retryBudget // limits retries
	tokenBudget    TokenBudget
	inFlight       atomic.Int64
	maxInFlight    int64
	minBreakerTime time.Duration
	observe        func(Call)
}

// NewClient returns a client of provider p.
func NewClient(cfg ClientConfig, p Provider) *Client {
	if cfg.MaxInFlight <= 0 {
		cfg.MaxInFlight = defaultMaxInFlight
	}
	if cfg.MinBreakerTime <= 0 {
		cfg.MinBreakerTime = DefaultMinBreakerTime
	}
	if cfg.Budget == nil {
		cfg.Budget = noTokenBudget{}
	}
	if cfg.Observe == nil {
		cfg.Observe = func(Call) {}
	}
	return &Client{
		provider: p, name: cfg.Provider, model: cfg.Model,
		breaker:        resilience.NewBreaker(cfg.Breaker),
		retries:        retryBudget{left: initialRetryBudget},
		tokenBudget:    cfg.Budget,
		maxInFlight:    int64(cfg.MaxInFlight),
		minBreakerTime: cfg.MinBreakerTime,
		observe:        cfg.Observe,
	}
}

// Provider returns the provider's name.
func (c *Client) Provider() string { return c.name }

// Model returns the model's name.
func (c *Client) Model() string { return c.model }

// BreakerState returns closed, open or half_open.
func (c *Client) BreakerState() string { return c.breaker.State() }

// Close closes idle connections of the provider.
func (c *Client) Close() error {
	if p, ok := c.provider.(io.Closer); ok {
		return p.Close()
	}
	return nil
}

// Generate calls the model, and retries once if that may help. Errors are
// *Error or those of the context.
func (c *Client) Generate(ctx context.Context, req *Request) (*Reply, error) {
	if c.inFlight.Add(1) > c.maxInFlight {
		c.inFlight.Add(-1)
		err := &Error{Reason: ReasonOverloaded, Detail: "too many calls to the model are under way"}
		c.observe(Call{Purpose: req.Purpose, Outcome: err.Reason})
		return nil, err
	}
	defer c.inFlight.Add(-1)
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, defaultCallTimeout)
		defer cancel()
	}
	c.retries.addCall()

	var (
		reply *Reply
		spent bool
		first error
	)
	err := resilience.Retry(ctx, resilience.RetryConfig{
		MaxAttempts: 2, Backoff: retryBackoff, MinDelay: retryAfterOf,
		Retryable: func(err error) bool {
			if spent || !isWorthRetrying(ctx, err) || !c.retries.takeRetry() {
				return false
			}
			spent = true
			return true
		},
	}, func(ctx context.Context, n int) (err error) {
		reply, err = c.callOnce(ctx, req, n > 1)
		switch {
		case n == 1:
			first = err
		case ReasonOf(err) == ReasonBreakerOpen, ReasonOf(err) == ReasonBudget:
			return first // the cause of the failure
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return reply, nil
}

// callOnce makes one exchange, or rejects it.
func (c *Client) callOnce(ctx context.Context, req *Request, retry bool) (reply *Reply, err error) {
	call := Call{Purpose: req.Purpose, Retry: retry}
	if ctx.Err() != nil { // no time left: not a failure of the model
		err := WrapProviderError(ctx, ctx.Err())
		call.Outcome = outcomeOf(err)
		c.observe(call)
		return nil, err
	}
	permit, settle, refusal := c.acquirePermits(req)
	if refusal != nil {
		call.Outcome = refusal.Reason
		c.observe(call)
		return nil, refusal
	}
	began, answered := time.Now(), false
	deadline, _ := ctx.Deadline() // always set by Generate
	defer func() {
		settle(reply, err)
		if !answered { // after a panic, free the permit of a half-open breaker
			c.breaker.Release(permit)
		}
	}()
	reply, err = c.provider.Generate(ctx, req)
	answered = true
	if err == nil && reply == nil {
		err = &Error{Reason: ReasonEmpty, Detail: "the model returned no reply"}
	}
	if ReasonOf(err) == ReasonTimeout && !c.countsAsTimeout(req.Purpose, deadline.Sub(began)) {
		c.breaker.Release(permit)
	} else {
		c.breaker.RecordError(permit, breakerError(err))
	}
	call.Latency, call.Outcome = time.Since(began), outcomeOf(err)
	if reply != nil {
		call.Tokens = reply.Tokens
	}
	c.observe(call)
	return reply, err
}

// acquirePermits asks the circuit breaker and the token budget for permission.
// settle must be called with the result.
func (c *Client) acquirePermits(req *Request) (permit resilience.Permit, settle func(*Reply, error), refusal *Error) {
	permit, ok := c.breaker.Allow()
	if !ok {
		return permit, nil, &Error{Reason: ReasonBreakerOpen, Detail: "the circuit breaker is open after repeated failures of the model"}
	}
	estimate := req.estimateTokens()
	book, ok := c.tokenBudget.Reserve(estimate)
	if !ok {
		c.breaker.Release(permit) // not a failure of the model
		return permit, nil, &Error{Reason: ReasonBudget, Detail: "the call does not fit into the tokens of this hour (limits.llm_tokens_per_hour)"}
	}
	return permit, func(reply *Reply, err error) { book(actualTokens(estimate, reply, err)) }, nil
}

// countsAsTimeout reports whether a call had enough time for its timeout to
// count as a failure of the model. A tenth may have passed before the call.
func (c *Client) countsAsTimeout(purpose contract.CallPurpose, given time.Duration) bool {
	enough := c.minBreakerTime
	switch purpose {
	case contract.PurposeAnswer, contract.PurposeSummarize, contract.PurposePlan, contract.PurposeVerify:
		enough = minAnswerBreakerTime
	}
	return given >= enough-enough/10
}

// breakerError returns the error to record in the circuit breaker.
func breakerError(err error) error {
	if e, ok := errors.AsType[*Error](err); ok && !e.countsAgainstModel() {
		return nil
	}
	return err
}

func outcomeOf(err error) string {
	switch {
	case err == nil:
		return contract.OutcomeOK
	case errors.Is(err, context.Canceled):
		return OutcomeCancelled
	}
	return ReasonOf(err)
}

// isWorthRetrying reports whether a retry may succeed and there is time for it.
// A retry whose wait alone exceeds the deadline would waste the retry budget.
func isWorthRetrying(ctx context.Context, err error) bool {
	e, ok := errors.AsType[*Error](err)
	if !ok || !e.isRetryable() {
		return false
	}
	deadline, ok := ctx.Deadline()
	return !ok || time.Until(deadline) > max(e.RetryAfter, retryBackoff)
}

// retryAfterOf returns the server's Retry-After.
func retryAfterOf(err error) time.Duration {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.RetryAfter
	}
	return 0
}
