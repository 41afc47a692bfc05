package gateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway/mcpclient"
	"github.com/caprouter/caprouter/gateway/mcpfile"
	"github.com/caprouter/caprouter/internal/resilience"
)

// callWithRetries makes the attempts of a call. Errors are *contract.ActionError, or that of
// the context.
func (s *server) callWithRetries(ctx context.Context, t *tool, c *toolCall) (*reply, error) {
	repeatable := t.isRepeatable()
	cfg := resilience.RetryConfig{MaxAttempts: defaultAttempts, Backoff: defaultBackoff}
	if t.retry != nil {
		cfg = retryConfig(t.retry)
	}
	var r *reply
	cfg.Retryable = func(err error) bool {
		failure, ok := errors.AsType[*attemptError](err)
		return ok && (failure.notSent || repeatable && !failure.final)
	}
	err := resilience.Retry(ctx, cfg, func(ctx context.Context, _ int) error {
		var err error
		r, err = s.attempt(ctx, t, c)
		return err
	})
	if err == nil {
		return r, nil
	}
	failure, ok := errors.AsType[*attemptError](err)
	switch {
	case !ok:
		return nil, err // of the context
	case errors.Is(ctx.Err(), context.Canceled) && cfg.Retryable(failure): // while it waited for the connection, or to retry
		return nil, ctx.Err()
	}
	return nil, failure.actionError(s, t, repeatable)
}

const (
	defaultAttempts = 2
	defaultBackoff  = 200 * time.Millisecond
)

func retryConfig(r *mcpfile.Retry) resilience.RetryConfig {
	cfg := resilience.RetryConfig{MaxAttempts: r.Retries + 1, Backoff: milliseconds(r.MinMS, defaultBackoff)}
	if r.Backoff != "fixed" {
		cfg.MaxBackoff = milliseconds(r.MaxMS, maxRetryBackoff)
	}
	return cfg
}

const maxRetryBackoff = 10 * time.Second

// attemptError is why an attempt failed.
type attemptError struct {
	cause   error
	notSent bool // the server has not received the call
	timeout bool
	final   bool  // the server would answer the same again
	rpcCode int64 // of the answer
	invalid bool  // what it answered is no result
}

// Error implements error.
func (f *attemptError) Error() string { return f.cause.Error() }

// actionError returns the error of the whole call.
func (f *attemptError) actionError(s *server, t *tool, repeatable bool) *contract.ActionError {
	id := s.declared.ID
	switch {
	case f.invalid:
		return severeError(contract.ActionBadResult, fmt.Sprintf("the result of %s is none of %s: %v", t.Action, t.method, f.cause), "")
	case f.final:
		e := warningError(contract.ActionFailed, fmt.Sprintf("server %q rejected the call of %s", id, t.Action), f.cause.Error())
		e.RPCCode = f.rpcCode
		return e
	case f.notSent:
		return severeError(contract.ActionUnavailable, fmt.Sprintf("server %q is not available; %s was not called", id, t.Action), f.cause.Error())
	case !repeatable:
		return severeError(contract.ActionOutcomeUnknown, fmt.Sprintf("%s may have been executed: %v", t.Action, f.cause), "check its effect before you call it again")
	case f.timeout:
		return severeError(contract.ActionTimeout, fmt.Sprintf("%s did not answer: %v", t.Action, f.cause), "")
	}
	return severeError(contract.ActionUnavailable, fmt.Sprintf("server %q failed", id), f.cause.Error())
}

var errBreakerOpen = errors.New("its calls have failed repeatedly; the next one is permitted in a few seconds")

// attempt sends a call once. Errors are *attemptError, or that of the context.
func (s *server) attempt(ctx context.Context, t *tool, c *toolCall) (*reply, error) {
	timeout := milliseconds(t.timeoutMS, s.cfg.CallTimeout)
	attemptCtx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	l, err := s.waitLink(attemptCtx)
	if err != nil {
		return nil, &attemptError{cause: err, notSent: true}
	}
	permit, ok := s.policy.breaker.Allow()
	if !ok {
		return nil, &attemptError{cause: errBreakerOpen, notSent: true}
	}
	c.record.Attempts++
	r, err := l.call(attemptCtx, t, c)
	callError, isCallError := errors.AsType[*mcpclient.CallError](err)
	switch {
	case err == nil:
		s.policy.breaker.RecordSuccess(permit)
		return r, nil
	case isCallError && (callError.Reply || callError.Invalid):
		s.policy.breaker.RecordSuccess(permit)
		return nil, &attemptError{cause: err, final: true, rpcCode: callError.Code, invalid: callError.Invalid}
	case isCallError:
		s.policy.breaker.RecordFailure(permit)
		return nil, &attemptError{cause: err, notSent: callError.NotSent}
	case errors.Is(ctx.Err(), context.Canceled):
		s.policy.breaker.Release(permit)
		return nil, ctx.Err()
	case ctx.Err() != nil:
		s.policy.breaker.Release(permit) // the caller has less time than the server may take
		return nil, &attemptError{cause: errors.New("no answer within the time of the caller"), timeout: true}
	}
	s.policy.breaker.RecordFailure(permit)
	return nil, &attemptError{cause: fmt.Errorf("no answer within %s", timeout), timeout: true}
}
