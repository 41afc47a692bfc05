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
	// longestCall bounds a call whose context has no deadline.
	longestCall = 60 * time.Second
	// backoff is the wait before the one retry, jittered; short, because a
	// classification has two seconds in all.
	backoff = 100 * time.Millisecond
)

// A timeout says that the model fails only if the call had a fair time: many
// deadlines are a caller's own. An answer by policy A is much longer than a
// classification, and has a fair time of its own.
const (
	DefaultMinBreakerTime = time.Second
	fairAnswerTime        = 10 * time.Second
)

// OutcomeCancelled is the outcome of a Call that nobody waited for any more.
const OutcomeCancelled = "cancelled"

// ClientConfig is what a Client does with its provider.
type ClientConfig struct {
	Provider       string      // gemini, genai or openai
	Model          string      // as configured
	MaxInFlight    int         // calls at a time; 0 = 256
	Budget         TokenBudget // of tokens; nil = no bound
	Breaker        resilience.BreakerConfig
	MinBreakerTime time.Duration // below which a timeout is no failure of the model's, but for answers; 0 = DefaultFairTime
	Observe        func(Call)    // told of every exchange and refusal, by the caller's goroutine; nil = nobody
}

// Call is one exchange with the model, or one that was refused here.
type Call struct {
	Purpose contract.CallPurpose
	Outcome string // contract.OutcomeOK, OutcomeCancelled or a reason
	Retry   bool   // the second of two
	Latency time.Duration
	Tokens  contract.Tokens
}

// Client is the one way to a model: it holds what all providers have in common
// about one that fails. Its methods may be called from any goroutine.
//
//	                 refused: llm_overloaded      llm_breaker_open, llm_budget
//	                              ▲                          ▲
//	Generate ── calls in flight ──┴── try ── breaker, Budget ┴── Provider.Generate
//	                                   ▲                              │
//	                                   └── 429, 5xx, no connection ◀──┘
//	                                       once, within the deadline and the retry budget
type Client struct {
	provider    Provider
	name, model string
	breaker     *resilience.Breaker
	budget      budget // of retries
	tokens      TokenBudget
	inFlight    atomic.Int64
	maxInFlight int64
	fairTime    time.Duration
	observe     func(Call)
}

// NewClient returns a client of p.
func NewClient(cfg ClientConfig, p Provider) *Client {
	if cfg.MaxInFlight <= 0 {
		cfg.MaxInFlight = defaultMaxInFlight
	}
	if cfg.MinBreakerTime <= 0 {
		cfg.MinBreakerTime = DefaultMinBreakerTime
	}
	if cfg.Budget == nil {
		cfg.Budget = unbounded{}
	}
	if cfg.Observe == nil {
		cfg.Observe = func(Call) {}
	}
	return &Client{
		provider: p, name: cfg.Provider, model: cfg.Model,
		breaker:     resilience.NewBreaker(cfg.Breaker),
		budget:      budget{left: firstBudget},
		tokens:      cfg.Budget,
		maxInFlight: int64(cfg.MaxInFlight),
		fairTime:    cfg.MinBreakerTime,
		observe:     cfg.Observe,
	}
}

// Provider returns the provider's name.
func (c *Client) Provider() string { return c.name }

// Model returns the model's name.
func (c *Client) Model() string { return c.model }

// BreakerState returns closed, open or half_open.
func (c *Client) BreakerState() string { return c.breaker.State() }

// Close lets go of the provider's idle connections.
func (c *Client) Close() error {
	if p, ok := c.provider.(io.Closer); ok {
		return p.Close()
	}
	return nil
}

// Generate asks the model, and asks once more where that may help. Errors are
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
		ctx, cancel = context.WithTimeout(ctx, longestCall)
		defer cancel()
	}
	c.budget.earn()

	var (
		reply *Reply
		spent bool
		first error
	)
	err := resilience.Retry(ctx, resilience.RetryConfig{
		MaxAttempts: 2, Backoff: backoff, MinDelay: askedToWait,
		Retryable: func(err error) bool {
			if spent || !mayHelp(ctx, err) || !c.budget.spend() {
				return false
			}
			spent = true
			return true
		},
	}, func(ctx context.Context, n int) (err error) {
		reply, err = c.try(ctx, req, n > 1)
		switch {
		case n == 1:
			first = err
		case ReasonOf(err) == ReasonBreakerOpen, ReasonOf(err) == ReasonBudget:
			return first // which says what the model did
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return reply, nil
}

// try is one exchange, or its refusal.
func (c *Client) try(ctx context.Context, req *Request, retry bool) (reply *Reply, err error) {
	call := Call{Purpose: req.Purpose, Retry: retry}
	if ctx.Err() != nil { // there was no time left: nobody's failure
		err := WrapProviderError(ctx, ctx.Err())
		call.Outcome = outcome(err)
		c.observe(call)
		return nil, err
	}
	permit, settle, refusal := c.admit(req)
	if refusal != nil {
		call.Outcome = refusal.Reason
		c.observe(call)
		return nil, refusal
	}
	began, answered := time.Now(), false
	deadline, _ := ctx.Deadline() // Generate sees to one
	defer func() {
		settle(reply, err)
		if !answered { // a panic: the trial must not stay under way for ever
			c.breaker.Release(permit)
		}
	}()
	reply, err = c.provider.Generate(ctx, req)
	answered = true
	if err == nil && reply == nil {
		err = &Error{Reason: ReasonEmpty, Detail: "the model said nothing"}
	}
	if ReasonOf(err) == ReasonTimeout && !c.fair(req.Purpose, deadline.Sub(began)) {
		c.breaker.Release(permit)
	} else {
		c.breaker.RecordError(permit, verdict(err))
	}
	call.Latency, call.Outcome = time.Since(began), outcome(err)
	if reply != nil {
		call.Tokens = reply.Tokens
	}
	c.observe(call)
	return reply, err
}

// admit is the leave to make one call, of the breaker and of the budget of
// tokens; settle must be told what came of it.
func (c *Client) admit(req *Request) (permit resilience.Permit, settle func(*Reply, error), refusal *Error) {
	permit, ok := c.breaker.Allow()
	if !ok {
		return permit, nil, &Error{Reason: ReasonBreakerOpen, Detail: "the model failed repeatedly and is left alone for a while"}
	}
	estimate := req.estimate()
	book, ok := c.tokens.Reserve(estimate)
	if !ok {
		c.breaker.Release(permit) // nobody's failure
		return permit, nil, &Error{Reason: ReasonBudget, Detail: "the call does not fit into the tokens of this hour (limits.llm_tokens_per_hour)"}
	}
	return permit, func(reply *Reply, err error) { book(tookOf(estimate, reply, err)) }, nil
}

// fair reports whether a call that was given so much time had enough of it for
// the model to be blamed. A tenth may have passed on the way to the call.
func (c *Client) fair(purpose contract.CallPurpose, given time.Duration) bool {
	enough := c.fairTime
	if purpose == contract.PurposeAnswer {
		enough = fairAnswerTime
	}
	return given >= enough-enough/10
}

// verdict is what the breaker is told of an error.
func verdict(err error) error {
	if e, ok := errors.AsType[*Error](err); ok && !e.blames() {
		return nil
	}
	return err
}

func outcome(err error) string {
	switch {
	case err == nil:
		return contract.OutcomeOK
	case errors.Is(err, context.Canceled):
		return OutcomeCancelled
	}
	return ReasonOf(err)
}

// mayHelp reports whether err may be gone the next time, and there is time for
// one: a retry whose wait alone outlasts the deadline is not worth its budget.
func mayHelp(ctx context.Context, err error) bool {
	e, ok := errors.AsType[*Error](err)
	if !ok || !e.retryable() {
		return false
	}
	deadline, ok := ctx.Deadline()
	return !ok || time.Until(deadline) > max(e.RetryAfter, backoff)
}

// askedToWait is the server's Retry-After.
func askedToWait(err error) time.Duration {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.RetryAfter
	}
	return 0
}
