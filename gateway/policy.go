package gateway

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway/mcpfile"
	"github.com/caprouter/caprouter/gateway/redaction"
	"github.com/caprouter/caprouter/internal/limits"
	"github.com/caprouter/caprouter/internal/resilience"
)

// callPolicy applies to all calls of a server, on any of its connections.
type callPolicy struct {
	breaker *resilience.Breaker
	rules   *redaction.Rules
	rate    func(tool string) limits.Rate

	mu       sync.Mutex
	limiters map[string]*limits.Limiter // by tool
}

// newCallPolicy returns an error if a rule of redaction is not valid, because results must
// not be returned without it.
func newCallPolicy(declared *mcpfile.Server, cfg *Config) (*callPolicy, error) {
	rules, err := redaction.Compile(declared.Redaction)
	if err != nil {
		return nil, fmt.Errorf("redaction: %w", err)
	}
	p := &callPolicy{limiters: map[string]*limits.Limiter{}, rules: rules}
	breaker := cfg.Breaker
	if declared.Breaker.Failures > 0 {
		breaker.Failures = declared.Breaker.Failures
	}
	breaker.OpenFor = milliseconds(declared.Breaker.OpenMS, breaker.OpenFor)
	p.breaker = resilience.NewBreaker(breaker)
	p.rate = func(tool string) limits.Rate { return rateOf(declared, tool, cfg.RateLimit) }
	return p, nil
}

// rateOf returns the rate of a tool: its own, or that of its server, or the default.
func rateOf(declared *mcpfile.Server, tool string, fallback limits.Rate) limits.Rate {
	limit := declared.RateLimit
	for i := range declared.Actions {
		if a := &declared.Actions[i]; a.Name == tool && a.RateLimit != nil {
			limit = a.RateLimit
		}
	}
	if limit == nil {
		return fallback
	}
	return limits.Rate{PerSecond: limit.RPS, Burst: limit.Burst}
}

// countCall counts a call for the rate limit, or returns an error if the caller calls the
// tool too often.
func (p *callPolicy) countCall(t *tool, by *Invocation) error {
	p.mu.Lock()
	limiter := p.limiters[t.Name]
	if limiter == nil {
		limiter = limits.New(t.Action, p.rate(t.Name))
		p.limiters[t.Name] = limiter
	}
	p.mu.Unlock()
	state, ok := limiter.Take(limits.PrincipalOf(by.Caller), time.Now())
	if ok {
		return nil
	}
	err := warningError(contract.ActionRateLimited, t.Action+" is called too often", fmt.Sprintf("call it again in %s", state.Reset.Round(time.Millisecond)))
	err.RetryAfterMS = (state.Reset + time.Millisecond - 1).Milliseconds()
	return err
}

// redactResult returns the result as it may be seen at the stage.
func (p *callPolicy) redactResult(stage string, r *contract.ActionResult) *contract.ActionResult {
	if !p.rules.Has(stage) {
		return r
	}
	out := *r
	out.Content, out.Structured = p.rules.JSON(stage, r.Content), p.rules.JSON(stage, r.Structured)
	return &out
}

// redactError returns the error as it may be seen at the stage.
func (p *callPolicy) redactError(stage string, e *contract.ActionError) *contract.ActionError {
	if !p.rules.Has(stage) {
		return e
	}
	out := *e
	out.Message, out.Suggestion = p.rules.Text(stage, e.Message), p.rules.Text(stage, e.Suggestion)
	out.Details = append([]contract.ErrorDetail(nil), e.Details...)
	for i := range out.Details {
		out.Details[i].Detail = p.rules.Text(stage, out.Details[i].Detail)
	}
	return &out
}

// redactInput returns the input as it may be seen at the stage.
func (p *callPolicy) redactInput(stage string, input json.RawMessage) json.RawMessage {
	return p.rules.JSON(stage, input)
}

// redactProgress returns the progress as the caller may see it.
func (p *callPolicy) redactProgress(progress contract.ActionProgress) contract.ActionProgress {
	progress.Message = p.rules.Text(redaction.Response, progress.Message)
	return progress
}
