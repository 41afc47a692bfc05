package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway/mcpclient"
	"github.com/caprouter/caprouter/gateway/mcpfile"
	"github.com/caprouter/caprouter/gateway/schema"
	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

// toolCall is one call, the same in all attempts.
type toolCall struct {
	action *contract.Action
	input  json.RawMessage
}

// reply is what a server answers: a result, or an error of the tool.
type reply struct {
	result contract.ActionResult
	failed *contract.ActionError
}

// Invoke calls a tool and returns its result. Errors are *contract.ActionError, or that of
// the context if it was cancelled.
func (g *Gateway) Invoke(ctx context.Context, action contract.Action) (*contract.ActionResult, error) {
	s, t, err := g.resolve(ctx, action.Action)
	if err != nil {
		return nil, err
	}
	if t.Error != "" {
		return nil, severe(contract.ActionUnavailable, fmt.Sprintf("%s cannot be called: %s", t.Action, t.Error), "")
	}
	c := &toolCall{action: &action, input: action.Input}
	if len(c.input) == 0 {
		c.input = json.RawMessage("{}")
	}
	if err := checkInput(t, c.input); err != nil {
		return nil, err
	}
	start := time.Now()
	r, err := s.invoke(ctx, t, c)
	if err != nil {
		return nil, err
	}
	if r.failed != nil {
		return nil, r.failed
	}
	r.result.Metadata = contract.ActionMetadata{Provider: s.declared.ID, LatencyMS: time.Since(start).Milliseconds()}
	if err := checkResult(t, &r.result); err != nil {
		return nil, err
	}
	return &r.result, nil
}

func severe(code, message, suggestion string) *contract.ActionError {
	return &contract.ActionError{Code: code, Message: message, Suggestion: suggestion, Severity: contract.SeveritySevere}
}

func warning(code, message, suggestion string) *contract.ActionError {
	return &contract.ActionError{Code: code, Message: message, Suggestion: suggestion, Severity: contract.SeverityWarning}
}

// resolve finds the tool of an action. Names of servers and tools may contain dots, so
// that each dot can be the one between them.
func (g *Gateway) resolve(ctx context.Context, action string) (*server, *tool, error) {
	var (
		found  []*server
		match  *tool
		down   *server
		reason error
	)
	for _, s := range g.servers {
		name, ok := strings.CutPrefix(action, s.declared.ID+".")
		if !ok {
			continue
		}
		select {
		case <-s.tried:
		case <-ctx.Done():
		}
		t := s.findTool(name)
		if t == nil {
			if _, err := s.waitLink(ctx); err != nil {
				down, reason = s, err
				continue
			}
			t = s.findTool(name)
		}
		if t != nil {
			found, match = append(found, s), t
		}
	}
	switch {
	case len(found) == 1:
		return found[0], match, nil
	case len(found) > 1:
		return nil, nil, severe(contract.ActionAmbiguous, fmt.Sprintf("%s is a tool of the servers %q and %q", action, found[0].declared.ID, found[1].declared.ID), "rename one of the servers")
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled):
		return nil, nil, ctx.Err()
	case down != nil:
		return nil, nil, severe(contract.ActionUnavailable, fmt.Sprintf("server %q is not connected", down.declared.ID), reason.Error())
	}
	suggestion := "list the actions"
	if near := strictyaml.Nearest(action, g.actionNames()); near != "" {
		suggestion = fmt.Sprintf("did you mean %s?", near)
	}
	return nil, nil, warning(contract.ActionNotFound, fmt.Sprintf("there is no action %q", action), suggestion)
}

func checkInput(t *tool, input json.RawMessage) error {
	if t.input == nil {
		return nil
	}
	err := t.input.Validate(input)
	if err == nil {
		return nil
	}
	out := warning(contract.ActionInvalidInput, fmt.Sprintf("the input of %s does not match its schema: %v", t.Action, err), "")
	if invalid, ok := errors.AsType[*schema.InvalidError](err); ok {
		out.Details = invalid.Details
	}
	return out
}

// invoke makes the attempts of a call.
func (s *server) invoke(ctx context.Context, t *tool, c *toolCall) (*reply, error) {
	repeatable := t.idempotent
	cfg := resilience.RetryConfig{MaxAttempts: defaultAttempts, Backoff: defaultBackoff}
	if t.retry != nil {
		repeatable = t.retry.Idempotent == nil || *t.retry.Idempotent
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
	if !ok {
		return nil, err // of the context
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
	final   bool // the server would answer the same again
}

// Error implements error.
func (f *attemptError) Error() string { return f.cause.Error() }

// actionError returns the error of the whole call.
func (f *attemptError) actionError(s *server, t *tool, repeatable bool) *contract.ActionError {
	id := s.declared.ID
	switch {
	case f.final:
		return warning(contract.ActionFailed, fmt.Sprintf("server %q rejected the call of %s", id, t.Action), f.cause.Error())
	case f.notSent:
		return severe(contract.ActionUnavailable, fmt.Sprintf("server %q is not available; %s was not called", id, t.Action), f.cause.Error())
	case !repeatable:
		return severe(contract.ActionOutcomeUnknown, fmt.Sprintf("%s may have been executed: %v", t.Action, f.cause), "check its effect before you call it again")
	case f.timeout:
		return severe(contract.ActionTimeout, fmt.Sprintf("%s did not answer: %v", t.Action, f.cause), "")
	}
	return severe(contract.ActionUnavailable, fmt.Sprintf("server %q failed", id), f.cause.Error())
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
	permit, ok := s.breaker.Allow()
	if !ok {
		return nil, &attemptError{cause: errBreakerOpen, notSent: true}
	}
	r, err := l.call(attemptCtx, t, c)
	callError, isCallError := errors.AsType[*mcpclient.CallError](err)
	switch {
	case err == nil:
		s.breaker.RecordSuccess(permit)
		return r, nil
	case isCallError && callError.Reply:
		s.breaker.RecordSuccess(permit)
		return nil, &attemptError{cause: err, final: true}
	case isCallError:
		s.breaker.RecordFailure(permit)
		return nil, &attemptError{cause: err, notSent: callError.NotSent}
	case errors.Is(ctx.Err(), context.Canceled):
		s.breaker.Release(permit)
		return nil, ctx.Err()
	case ctx.Err() != nil:
		s.breaker.Release(permit) // the caller has less time than the server may take
		return nil, &attemptError{cause: errors.New("no answer within the time of the caller"), timeout: true}
	}
	s.breaker.RecordFailure(permit)
	return nil, &attemptError{cause: fmt.Errorf("no answer within %s", timeout), timeout: true}
}
