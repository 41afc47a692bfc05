package agentkit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/caprouter/caprouter/contract"
)

const (
	// minRegisterPause is doubled up to maxPause after each attempt.
	minRegisterPause = time.Second

	minHeartbeat        = 100 * time.Millisecond
	minHeartbeatTimeout = time.Second
	// drainTimeout bounds the request, so that a dead router leaves time for the tasks.
	drainTimeout = 5 * time.Second
)

// KeepRegistered registers the agent at Config.RouterURL and renews the lease until
// ctx ends. It is for an agent with a server of its own, which must serve the agent
// at Config.Registration.Endpoint.URL; [Run] and [Agent.Serve] do both.
//
// When ctx ends, KeepRegistered asks the router to send no more tasks, calls
// shutdown, which must wait for the tasks in progress ([http.Server.Shutdown] does),
// then [Agent.Shutdown], and ends the registration. shutdown has DrainTimeout; then
// the remaining tasks are cancelled.
//
// If the router rejects the first registration, for example because the operator has
// granted nothing to the agent, KeepRegistered calls shutdown and returns an error
// with the reason. The error wraps a [*contract.Error]. If the router does not
// respond, is overloaded, or has the agent in its registry file, KeepRegistered tries
// again until it succeeds.
func (a *Agent) KeepRegistered(ctx context.Context, shutdown func(context.Context) error) error {
	if a.pulls() {
		return errors.New("agentkit: KeepRegistered is for an agent that serves its tasks; Run pulls them")
	}
	if a.registration.routerURL == "" || a.registration.declared.Endpoint.URL == "" {
		return errors.New("agentkit: KeepRegistered needs RouterURL and Registration.Endpoint.URL")
	}
	return a.keepRegistered(ctx, a.registration.declared, shutdown)
}

// keepRegistered is KeepRegistered with a declaration that is complete.
func (a *Agent) keepRegistered(ctx context.Context, declared contract.Registration, shutdown func(context.Context) error) error {
	r := newRegistrar(a, declared)
	rejected := r.keepLease(ctx)

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.registration.drainTimeout)
	defer cancel()
	r.drain(ctx)
	stopHeartbeats := r.startHeartbeats(ctx)
	err := shutdown(ctx)
	if err != nil {
		a.tasks.cancelAll()
	}
	if workErr := a.Shutdown(ctx); err == nil {
		err = workErr
	}
	stopHeartbeats()
	r.deregister(ctx)
	if err != nil {
		err = fmt.Errorf("agentkit: shutdown: %w", err)
	}
	return errors.Join(rejected, err)
}

// registrar keeps one instance of an agent registered. It is owned by one goroutine
// at a time.
type registrar struct {
	client   agentClient
	declared *contract.Registration
	log      *slog.Logger

	accepted   bool // a registration was accepted once
	registered bool // the router has the registration, or may have it
	lease      contract.Lease
	failure    string // the latest failure that was logged; "" = none since the last success
}

func newRegistrar(a *Agent, declared contract.Registration) *registrar {
	return &registrar{
		client:   a.newAgentClient(declared.Instance),
		declared: &declared,
		log:      a.log.With("instance", declared.Instance),
	}
}

// keepLease registers the agent and renews the lease until ctx ends. It returns an
// error if the first registration is rejected.
func (r *registrar) keepLease(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := r.register(ctx); err != nil {
			return err
		}
		r.renewLease(ctx)
	}
	return nil
}

// register tries until the registration is accepted or ctx ends. It returns an error
// if the first registration is rejected. Later rejections are retried, because the
// agent may have tasks in progress, and an operator may correct the mistake.
func (r *registrar) register(ctx context.Context) error {
	for pause := minRegisterPause; ; pause = min(2*pause, maxPause) {
		lease, err := r.client.registerAgent(ctx, r.declared)
		switch {
		case err == nil:
			r.accepted, r.registered, r.failure = true, true, ""
			r.log.Info("registered", "url", r.declared.Endpoint.URL, "state", lease.State,
				"intents", lease.Granted.Intent, "domains", lease.Granted.Domains)
			r.lease.State = lease.State // it is in the line
			r.setLease(lease)
			return nil
		case ctx.Err() != nil:
			r.registered = true // the router may have received the request
			return nil          //nolint:nilerr // the end of ctx is no error
		case !r.accepted && isRejected(err):
			return fmt.Errorf("agentkit: the agent cannot register at %s: %w", r.client.url, err)
		}
		r.logFailure("registration", err)
		if !sleep(ctx, max(addJitter(pause), retryAfterOf(err))) {
			return nil
		}
	}
}

// isRejected reports whether the registration must be changed, or the token, before
// it can succeed.
func isRejected(err error) bool {
	if _, noToken := errors.AsType[*tokenError](err); noToken {
		return true
	}
	status := statusOf(err)
	return isFinal(status) && status != http.StatusConflict // the operator may remove the agent from the file
}

// renewLease sends heartbeats until ctx ends or the router does not know the
// registration.
func (r *registrar) renewLease(ctx context.Context) {
	wait, pause := r.heartbeatInterval(), minRegisterPause
	for sleep(ctx, wait) {
		lease, err := r.sendHeartbeat(ctx)
		switch {
		case err == nil:
			if r.failure != "" {
				r.log.Info("heartbeat accepted again")
			}
			r.failure = ""
			r.setLease(lease)
			wait, pause = r.heartbeatInterval(), minRegisterPause
			continue
		case ctx.Err() != nil:
			return
		case statusOf(err) == http.StatusNotFound:
			r.registered = false
			r.log.Warn("the router does not know the registration any more")
			return
		}
		r.logFailure("heartbeat", err)
		wait = r.heartbeatInterval()
		if !isFinal(statusOf(err)) {
			wait = max(min(wait, addJitter(pause)), retryAfterOf(err))
			pause = min(2*pause, maxPause)
		}
	}
}

// sendHeartbeat sends a heartbeat, which takes at most one interval, so that the lease
// does not expire while one request is not answered.
func (r *registrar) sendHeartbeat(ctx context.Context) (contract.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, max(r.heartbeatInterval(), minHeartbeatTimeout))
	defer cancel()
	return r.client.sendHeartbeat(ctx)
}

// heartbeatInterval returns the interval of the lease, a little shorter at random so
// that the heartbeats of many agents spread.
func (r *registrar) heartbeatInterval() time.Duration {
	seconds := r.lease.HeartbeatS
	if seconds <= 0 {
		seconds = contract.DefaultLeaseTTLS / contract.HeartbeatsPerLease
	}
	interval := max(time.Duration(min(seconds, contract.MaxLeaseTTLS)*float64(time.Second)), minHeartbeat)
	return interval - rand.N(interval/10) //nolint:gosec // no secret
}

// setLease stores the lease and logs the differences.
func (r *registrar) setLease(lease contract.Lease) {
	if lease.State != r.lease.State {
		r.log.Info("state of the registration has changed", "state", lease.State)
	}
	if !slices.Equal(lease.Refused, r.lease.Refused) {
		for _, reason := range lease.Refused {
			r.log.Warn("declaration refused", "reason", reason)
		}
	}
	r.lease = lease
}

// logFailure logs a failure, unless it equals the latest one.
func (r *registrar) logFailure(request string, err error) {
	if text := request + err.Error(); text != r.failure {
		r.failure = text
		r.log.Warn("the router does not accept the request; trying again", "request", request, "error", err)
	}
}

// drain asks the router to send no more tasks to the instance.
func (r *registrar) drain(ctx context.Context) {
	if !r.registered {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	lease, err := r.client.drainInstance(ctx)
	if err != nil {
		r.log.Warn("the router does not know that the agent stops", "error", err)
		return
	}
	r.setLease(lease)
}

// startHeartbeats renews the lease in the background while the instance is draining,
// because the router may give up the tasks of an expired instance. The returned
// function stops that.
func (r *registrar) startHeartbeats(ctx context.Context) (stop func()) {
	if !r.registered {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		r.renewLease(ctx)
	}()
	return func() {
		cancel()
		<-stopped
	}
}

// deregister ends the registration. It does not end with ctx, whose time may be used
// up.
func (r *registrar) deregister(ctx context.Context) {
	if !r.registered {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finalGrace)
	defer cancel()
	if err := r.client.deregisterInstance(ctx); err != nil && statusOf(err) != http.StatusNotFound {
		r.log.Warn("not deregistered; the registration expires", "error", err)
		return
	}
	r.log.Info("deregistered")
}

// sleep waits for the duration. It returns false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
