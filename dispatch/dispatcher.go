package dispatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/resilience"
)

// Defaults of a Config.
const (
	DefaultMaxInFlight = 256
	DefaultTimeout     = 30 * time.Second
)

// maxWaitDivisor is the part of a task's remaining time, one quarter, for which
// it may wait for the semaphore.
const maxWaitDivisor = 4

// Config bounds the tasks in flight. Its zero value works.
type Config struct {
	MaxInFlight int                      // tasks of all agents together; 0 = DefaultMaxInFlight
	Timeout     time.Duration            // of a task without any deadline; 0 = DefaultTimeout
	Breaker     resilience.BreakerConfig // of each agent
}

// Dispatcher sends tasks to agents. It is safe for concurrent use.
type Dispatcher struct {
	targets   map[string]Target
	timeout   time.Duration
	breaker   resilience.BreakerConfig
	semaphore chan struct{} // one token per task in flight

	reload sync.Mutex // serializes SetAgents; locked before mu

	mu     sync.Mutex
	agents *agentTable            // nil before the first SetAgents
	active map[string]*agentState // of agents with tasks in flight or a breaker
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
	return &Dispatcher{
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
	out := d.sendTask(ctx, c)
	out.Latency = time.Since(start)
	out.Attempts = max(out.Attempts, c.Task.Attempt-1) // those of an earlier Send
	return out
}

// CancelTask asks the agent to stop a task that it has accepted and that no Send
// waits for. It returns at once, and does nothing if the target is no Canceler.
func (d *Dispatcher) CancelTask(c Call) {
	if target, _ := d.findTarget(c.Agent); target != nil {
		cancelTask(target, c)
	}
}

func cancelTask(target Target, c Call) {
	if canceler, ok := target.(Canceler); ok {
		canceler.CancelTask(c)
	}
}

// sendTask makes the cheap checks first. The task counts against the bound of its
// agent until the end, even while it is Pending.
func (d *Dispatcher) sendTask(ctx context.Context, c Call) Outcome {
	target, reason := d.findTarget(c.Agent)
	if target == nil {
		return unavailableOutcome(reason)
	}
	a := d.beginCall(c.Agent)
	defer d.endCall(a)
	if reason := refusalOf(a.live.State()); reason != "" {
		return unavailableOutcome(c.Agent.ID + " " + reason)
	}
	if until := a.live.OpenUntil(); until > d.breaker.Now().UnixMilli() {
		return unavailableOutcome(breakerDetail(c.Agent.ID, time.UnixMilli(until)))
	}
	if !a.live.Acquire() {
		return unavailableOutcome(fmt.Sprintf("%s is at its limit of %d tasks in flight (max_in_flight)", c.Agent.ID, a.live.Limit()))
	}
	defer a.live.Release()
	out := d.executeTask(ctx, c, target, a)
	switch {
	case out.Pending:
		return awaitResult(ctx, c, target, out)
	case out.Err != nil && out.Err.Code == contract.TaskWasCancelled && handedOver(ctx):
		return Outcome{Pending: true, Attempts: out.Attempts}
	}
	return out
}

// executeTask holds the semaphore while the target executes the task. It asks the
// circuit breaker last, so that a probe goes straight to the agent.
func (d *Dispatcher) executeTask(ctx context.Context, c Call, target Target, a *agentState) Outcome {
	if err := d.acquireSemaphore(ctx); err != nil {
		return Outcome{Err: err}
	}
	defer func() { <-d.semaphore }()
	permit, ok := d.acquirePermit(a)
	if !ok {
		return unavailableOutcome(breakerDetail(c.Agent.ID, d.AgentStatus(c.Agent.ID).OpenUntil))
	}
	health := HealthUnknown // if BeforeSend or Execute panics
	defer func() { d.recordHealth(a, permit, c.Agent.Endpoint, health) }()
	if c.Recheck != nil {
		if reason := c.Recheck(); reason != "" {
			return unavailableOutcome(reason)
		}
	}
	if c.BeforeSend != nil {
		if err := c.BeforeSend(ctx); err != nil { // the caller has logged it
			if ctx.Err() != nil {
				return Outcome{Err: endedError(ctx)}
			}
			return unavailableOutcome("the task could not be recorded and was not sent to " + c.Agent.ID)
		}
	}
	out := target.Execute(ctx, c)
	if health = out.Health; out.Pending {
		health = HealthGood
	}
	return out
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

// findTarget returns the target for the agent, or the reason why there is none.
func (d *Dispatcher) findTarget(agent *contract.RegistryEntry) (target Target, reason string) {
	protocol := agent.Endpoint.Protocol
	if protocol == "" && agent.Endpoint.URL != "" {
		protocol = contract.ProtocolHTTP
	}
	if protocol == "" || protocol == contract.ProtocolHTTP && agent.Endpoint.URL == "" {
		return nil, agent.ID + " names no endpoint"
	}
	target, ok := d.targets[protocol]
	if !ok {
		return nil, fmt.Sprintf("%s cannot be reached: protocol %s is not served by this version", agent.ID, protocol)
	}
	return target, ""
}

// breakerDetail describes a rejection by the circuit breaker; until is zero while
// a probe is in flight.
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
