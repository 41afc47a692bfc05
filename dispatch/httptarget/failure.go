package httptarget

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/egress"
)

// fairTime is how long an agent must have had before its silence is held
// against it. Otherwise a caller with a timeout of 1 ms could open the breaker
// of a healthy agent for everybody.
const fairTime = time.Second

// failure is a try that brought no Result.
type failure struct {
	code      contract.TaskCode
	detail    string        // for the caller: no addresses, no words of libraries
	cause     error         // for the log; may be nil
	uncertain bool          // see dispatch.Outcome
	retry     bool          // the agent may be asked again, and that may help
	after     time.Duration // at the earliest
	health    dispatch.Health
}

// Error implements error.
func (f *failure) Error() string { return fmt.Sprintf("%s: %s: %v", f.code, f.detail, f.cause) }

// Unwrap returns what the log is told.
func (f *failure) Unwrap() error { return f.cause }

// retryable reports whether another try may follow. One that would have to wait
// longer than its share of the time is not worth it: somebody else may be free.
func (e *errand) retryable(err error) bool {
	f, ok := errors.AsType[*failure](err)
	return ok && f.retry && f.after <= time.Until(e.end)/time.Duration(1+e.call.Standbys)
}

func retryAfter(err error) time.Duration {
	if f, ok := errors.AsType[*failure](err); ok {
		return f.after
	}
	return 0
}

// lost makes the failure of a try that got no reply. sent says whether the
// request may have left.
func (e *errand) lost(ctx context.Context, err error, sent bool) *failure {
	agent := e.call.Agent.ID
	switch {
	case ctx.Err() != nil:
		return e.ended(ctx, sent)
	case !sent && !time.Now().Before(e.end): // the dialer's clock and the context's run side by side
		return e.ended(ctx, false)
	case !sent && isRefused(err):
		return e.barred(err)
	case !sent:
		f := &failure{
			code: contract.TaskAgentUnavailable, detail: agent + " could not be reached: " + whyNot(err), cause: err,
			retry: true, health: dispatch.HealthBad,
		}
		if isTimeout(err) && !e.wasFair() {
			f.health = dispatch.HealthUnknown
		}
		return f
	case isLoss(err):
		return e.unsettled(agent+" closed the connection without an answer", err)
	}
	return e.badResult("sent a reply that is not HTTP, or has too long a header", err)
}

// ended makes the failure of a try whose time was up or whose caller left.
func (e *errand) ended(ctx context.Context, sent bool) *failure {
	agent, idempotent := e.call.Agent.ID, e.call.Agent.Endpoint.Idempotent
	e.abandoned = e.abandoned || sent
	f := &failure{cause: context.Cause(ctx), uncertain: sent && !idempotent}
	if errors.Is(f.cause, dispatch.ErrHandedOver) {
		e.abandoned = false // somebody else goes on with it
		if !sent {
			f.code, f.detail = contract.TaskAgentUnavailable, "the router stopped before the task was sent to "+agent
			return f
		}
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		f.code, f.detail = contract.TaskWasCancelled, "the caller left"
		if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
			f.detail = "the router stopped the task" // it says why in the log
		}
		return f
	}
	if e.wasFair() {
		f.health = dispatch.HealthBad
	}
	switch {
	case !sent && time.Now().Before(e.end): // only the share is used up
		f.code, f.detail = contract.TaskAgentUnavailable, agent+" could not be reached: it could not be connected to in time"
		f.retry = true
	case !sent:
		f.code, f.detail = contract.TaskDeadlineExceeded, "the deadline passed before the task was sent to "+agent
	case idempotent:
		f.code, f.detail = contract.TaskDeadlineExceeded, agent+" did not answer in time"
		f.retry = true
	default:
		f.code, f.detail = contract.TaskOutcomeUnknown, agent+" was sent the task and did not answer by the deadline: it may have done it"
	}
	return f
}

// unsettled makes the failure of a try after which nobody knows what the agent
// has done.
func (e *errand) unsettled(detail string, cause error) *failure {
	if e.call.Agent.Endpoint.Idempotent {
		return &failure{code: contract.TaskAgentUnavailable, detail: detail, cause: cause, retry: true, health: dispatch.HealthBad}
	}
	return &failure{
		code: contract.TaskOutcomeUnknown, detail: detail + ": it may have done the task", cause: cause,
		uncertain: true, health: dispatch.HealthBad,
	}
}

// tokenless makes the failure of an agent for which no token could be made.
func (e *errand) tokenless(err error) *failure {
	return &failure{code: contract.TaskAgentUnavailable, detail: "no token could be made for " + e.call.Agent.ID, cause: err}
}

// badResult makes the failure of an agent that answered, but not with a Result.
// Its words go on after the agent's id.
func (e *errand) badResult(what string, cause error) *failure {
	return &failure{
		code: contract.TaskBadResult, detail: e.call.Agent.ID + " " + what, cause: cause,
		uncertain: !e.call.Agent.Endpoint.Idempotent, health: dispatch.HealthBad,
	}
}

// wasFair reports whether an agent that did not answer had the time to: all
// tries together, and a part of what the agent itself asks for, since its tries
// get only a share of that where others may take over.
func (e *errand) wasFair() bool {
	fair := fairTime
	if ms := e.call.Agent.Endpoint.TimeoutMS; ms > 0 {
		fair = min(fair, time.Duration(ms)*time.Millisecond/4)
	}
	return time.Since(e.began) >= fair
}

// whyNot words a failed connection without the address.
func whyNot(err error) string {
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return "its host name cannot be resolved"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "its TLS certificate is not trusted"
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "it does not speak TLS"
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "no route to its host"
	case isTimeout(err):
		return "it could not be connected to in time"
	}
	return "the connection failed"
}

// isRefused tells a connection that the guard did not let be made.
func isRefused(err error) bool {
	_, ok := errors.AsType[*egress.Refused](err)
	return ok
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return errors.Is(err, context.DeadlineExceeded) || ok && timeout.Timeout()
}

// isLoss tells a connection that went from one on which nonsense came. What the
// transport says of a connection closed before the first byte of a reply it
// keeps to itself, but for the text.
func isLoss(err error) bool {
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return true
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		err.Error() == "http: server closed idle connection"
}

// parseRetryAfter reads seconds or a date (RFC 9110, section 10.2.3).
func parseRetryAfter(h http.Header, now time.Time) time.Duration {
	value := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if date, err := http.ParseTime(value); err == nil {
		return max(0, date.Sub(now))
	}
	return 0
}
