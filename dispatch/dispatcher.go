package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/telemetry"
)

// Defaults of a Config.
const (
	DefaultMaxInFlight = 256
	DefaultTimeout     = 30 * time.Second
)

// maxWaitDivisor is the part of a task's remaining time, one quarter, for which
// it may wait for the semaphore.
const maxWaitDivisor = 4

// Config bounds the tasks in flight, and names the log. Its zero value works.
type Config struct {
	MaxInFlight int                      // tasks of all agents together; 0 = DefaultMaxInFlight
	Timeout     time.Duration            // of a task without any deadline; 0 = DefaultTimeout
	Breaker     resilience.BreakerConfig // of each instance of an agent
	Logger      *slog.Logger             // receives which circuit breakers open and close; nil = silent
}

// Dispatcher sends tasks to agents. It is safe for concurrent use.
type Dispatcher struct {
	targets   map[string]Target
	timeout   time.Duration
	breaker   resilience.BreakerConfig
	log       *slog.Logger
	semaphore chan struct{} // one token per task in flight

	reload sync.Mutex // serializes SetAgents; locked before mu

	mu            sync.Mutex
	agents        *agentTable            // nil before the first SetAgents
	active        map[string]*agentState // of agents with tasks in flight or a breaker
	checksRunning bool                   // RunHealthChecks is running
}

// New returns a Dispatcher with the targets by protocol.
func New(cfg Config, targets map[string]Target) (*Dispatcher, error) {
	for protocol, target := range targets {
		if target == nil {
			return nil, fmt.Errorf("dispatch: no target for protocol %s", protocol)
		}
	}
	if cfg.MaxInFlight < 0 || cfg.Timeout < 0 {
		return nil, errors.New("dispatch: max_in_flight and timeout must not be negative")
	}
	if cfg.MaxInFlight == 0 {
		cfg.MaxInFlight = DefaultMaxInFlight
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.Breaker.OpenFor <= 0 {
		cfg.Breaker.OpenFor = resilience.DefaultOpenFor
	}
	if cfg.Breaker.Now == nil {
		cfg.Breaker.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Dispatcher{
		log:       cfg.Logger,
		targets:   targets,
		timeout:   cfg.Timeout,
		breaker:   cfg.Breaker,
		semaphore: make(chan struct{}, cfg.MaxInFlight),
		active:    map[string]*agentState{},
	}, nil
}

// Send sends the task to the agent and returns its outcome, by the earlier of
// the context's and the task's deadline.
func (d *Dispatcher) Send(ctx context.Context, c Call) Outcome {
	start := time.Now()
	ctx, cancel := d.withDeadline(ctx, c.Task.Deadline)
	defer cancel()
	ctx, span := telemetry.StartSpan(ctx, "dispatch")
	dl := delivery{call: c, entry: c.Agent, standbys: c.Standbys}
	out := d.sendTask(ctx, &dl)
	out.Latency = time.Since(start)
	out.Attempts = max(out.Attempts, dl.call.Task.Attempt-1) // those before
	endSpan(span, &c, &out)
	return out
}

// Prepare mints the token of a task that may not be sent yet, for Call.Token, and begins to
// connect to the agent. The signature takes longer than the rest of the work for a small task,
// and a connection longer than that. Prepare returns the zero value if the target signs no
// tokens, or if no instance could take the task now.
func (d *Dispatcher) Prepare(ctx context.Context, c Call) Token {
	at, target := d.likelyInstance(c.Agent)
	preparer, ok := target.(Preparer)
	if !ok {
		return Token{}
	}
	c.Agent = at
	ctx, cancel := d.withDeadline(ctx, c.Task.Deadline)
	defer cancel()
	return preparer.Prepare(ctx, c)
}

// endSpan ends the span of a task for one agent.
func endSpan(span telemetry.Span, c *Call, out *Outcome) {
	span.SetString(telemetry.AttrAgent, c.Agent.ID)
	span.SetString(telemetry.AttrProtocol, cmp.Or(c.Agent.Endpoint.Protocol, contract.ProtocolHTTP))
	span.SetInt(telemetry.AttrAttempts, out.Attempts)
	switch {
	case out.Err != nil:
		span.SetString(telemetry.AttrOutcome, string(out.Err.Code))
		span.Fail(string(out.Err.Code))
	case out.Result != nil:
		span.SetString(telemetry.AttrOutcome, string(out.Result.Status))
	default:
		span.SetString(telemetry.AttrOutcome, "pending")
	}
	span.End()
}

// CancelTask asks the agent to stop a task that it has accepted and that no Send
// waits for. It is unknown which instance has the task, so each is asked, also one whose
// lease has ended, because it may still work; an agent ignores the cancellation of an
// unknown task. CancelTask returns at once, and does nothing if the target is no
// Canceller.
func (d *Dispatcher) CancelTask(c Call) {
	d.mu.Lock()
	entry := d.entryInForce(c.Agent)
	d.mu.Unlock()
	if entry == nil {
		return
	}
	var buf [1]contract.Instance
	list := listInstances(entry, &buf)
	for i := range list {
		target, _ := d.findTarget(entry.ID, &list[i].Endpoint)
		if target == nil {
			continue
		}
		at := c
		if len(entry.Instances) > 0 {
			at.Agent = atInstance(c.Agent, &list[i])
		}
		cancelTask(target, at)
	}
}

func cancelTask(target Target, c Call) {
	if canceller, ok := target.(Canceller); ok {
		canceller.CancelTask(c)
	}
}

// sendTask makes the cheap checks first. The task counts against the bounds of its
// agent and of its instance until the end, even while it is Pending.
func (d *Dispatcher) sendTask(ctx context.Context, dl *delivery) Outcome {
	if len(dl.entry.Instances) == 0 {
		if target, reason := d.findTarget(dl.entry.ID, &dl.entry.Endpoint); target == nil {
			return unavailableOutcome(reason)
		}
	}
	dl.agent = d.beginCall(dl.entry)
	defer d.endDelivery(dl)
	live := dl.agent.live
	if reason := refusalOf(live.State()); reason != "" {
		return unavailableOutcome(dl.entry.ID + " " + reason)
	}
	if until := live.OpenUntil(); until > d.breaker.Now().UnixMilli() {
		return unavailableOutcome(breakerDetail(dl.entry.ID, time.UnixMilli(until)))
	}
	if dl.admitted = live.Acquire(); !dl.admitted {
		return unavailableOutcome(fmt.Sprintf("%s is at its limit of %d tasks in flight (max_in_flight)", dl.entry.ID, live.Limit()))
	}
	out := d.executeTask(ctx, dl)
	switch {
	case out.Pending && out.Health == HealthLater:
		health := HealthUnknown // if AwaitResult panics
		defer func() { d.recordHealth(&dl.instanceCall, health) }()
		out = awaitResult(ctx, dl.call, dl.target, out)
		health = out.Health
	case out.Pending:
		return awaitResult(ctx, dl.call, dl.target, out)
	case out.Err != nil && out.Err.Code == contract.TaskWasCancelled && handedOver(ctx):
		return Outcome{Pending: true, Attempts: out.Attempts}
	}
	return out
}

// executeTask holds the semaphore while the target executes the task. It chooses the
// instance last, so that a trial of its circuit breaker goes straight to the agent. If
// an instance has certainly not executed the task, another one gets it.
func (d *Dispatcher) executeTask(ctx context.Context, dl *delivery) Outcome {
	if err := d.acquireSemaphore(ctx); err != nil {
		return Outcome{Err: err}
	}
	defer func() { <-d.semaphore }()
	if reason := d.assignInstance(dl); reason != "" {
		return unavailableOutcome(reason)
	}
	for {
		out, sent := d.sendToInstance(ctx, dl)
		if out.Attempts >= max(dl.call.Task.Attempt, 1) {
			dl.call.Task.Attempt = out.Attempts + 1
		}
		if !sent || !isUnexecuted(&out) || ctx.Err() != nil || !d.assignNext(dl) {
			return out
		}
	}
}

// sendToInstance sends the task to the instance that has it. If the task may not be
// sent to any instance, sent is false.
func (d *Dispatcher) sendToInstance(ctx context.Context, dl *delivery) (out Outcome, sent bool) {
	health := HealthUnknown // if BeforeSend or Execute panics
	defer func() {
		if health != HealthLater {
			d.recordHealth(&dl.instanceCall, health)
		}
	}()
	if dl.call.Recheck != nil {
		if reason := dl.call.Recheck(); reason != "" {
			return unavailableOutcome(reason), false
		}
	}
	if dl.call.BeforeSend != nil && !dl.recorded {
		if err := dl.call.BeforeSend(ctx); err != nil { // the caller has logged it
			if ctx.Err() != nil {
				return Outcome{Err: endedError(ctx)}, false
			}
			return unavailableOutcome("the task could not be recorded and was not sent to " + dl.entry.ID), false
		}
		dl.recorded = true
	}
	out = dl.target.Execute(ctx, dl.call)
	if health = out.Health; out.Pending && health != HealthLater {
		health = HealthGood
	}
	return out, true
}

// isUnexecuted reports whether the agent has certainly not executed the task, and
// another instance may succeed.
func isUnexecuted(out *Outcome) bool {
	return out.Err != nil && out.Err.Code == contract.TaskAgentUnavailable && !out.MayHaveExecuted && out.Result == nil && !out.Pending
}

// awaitResult waits for the Result of a task that the agent has accepted.
func awaitResult(ctx context.Context, c Call, target Target, accepted Outcome) Outcome {
	out := c.AwaitResult(ctx)
	out.Attempts = max(out.Attempts, accepted.Attempts)
	if ctx.Err() != nil && out.Result == nil && !out.Pending && !handedOver(ctx) {
		cancelTask(target, c)
	}
	return out
}

// findTarget returns the target for the endpoint of the agent, or the reason why
// there is none.
func (d *Dispatcher) findTarget(agentID string, endpoint *contract.Endpoint) (target Target, reason string) {
	protocol := endpoint.Protocol
	if protocol == "" && endpoint.URL != "" {
		protocol = contract.ProtocolHTTP
	}
	if protocol == "" || protocol == contract.ProtocolHTTP && endpoint.URL == "" {
		return nil, agentID + " names no endpoint"
	}
	target, ok := d.targets[protocol]
	if !ok {
		return nil, fmt.Sprintf("%s cannot be reached: protocol %s is not served by this version", agentID, protocol)
	}
	return target, ""
}

// breakerDetail describes a rejection by the circuit breaker; until is zero while
// a trial is in flight.
func breakerDetail(agentID string, until time.Time) string {
	if until.IsZero() {
		return agentID + " has failed repeatedly and is being tried again with another task"
	}
	return fmt.Sprintf("%s has failed repeatedly and gets no tasks until %s", agentID, until.UTC().Format(time.RFC3339))
}

func (d *Dispatcher) withDeadline(ctx context.Context, task time.Time) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	switch {
	case task.IsZero() && !ok:
		task = time.Now().Add(d.timeout)
	case ok && (task.IsZero() || !task.Before(deadline)): // saves a timer
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, task)
}

// acquireSemaphore waits for a token of the semaphore that all tasks share, for
// at most a quarter of the remaining time.
func (d *Dispatcher) acquireSemaphore(ctx context.Context) *contract.TaskError {
	if ctx.Err() != nil {
		return endedError(ctx)
	}
	select {
	case d.semaphore <- struct{}{}:
		return nil
	default:
	}
	deadline, _ := ctx.Deadline() // withDeadline has set one
	maxWait := time.Until(deadline) / maxWaitDivisor
	timer := time.NewTimer(maxWait)
	defer timer.Stop()
	select {
	case d.semaphore <- struct{}{}:
		return nil
	case <-timer.C:
		return &contract.TaskError{Code: contract.TaskAgentUnavailable, Detail: fmt.Sprintf(
			"the router is at its limit of %d tasks in flight (dispatch.max_in_flight); waited %d ms", cap(d.semaphore), maxWait.Milliseconds())}
	case <-ctx.Done():
		return endedError(ctx)
	}
}

// endedError returns the error of a task whose context ended before it was sent.
func endedError(ctx context.Context) *contract.TaskError {
	switch {
	case handedOver(ctx):
		return &contract.TaskError{Code: contract.TaskAgentUnavailable, Detail: "the router stopped before the task was sent"}
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &contract.TaskError{Code: contract.TaskDeadlineExceeded, Detail: "the deadline passed before the task was sent"}
	}
	return &contract.TaskError{Code: contract.TaskWasCancelled, Detail: "the caller disconnected before the task was sent"}
}
