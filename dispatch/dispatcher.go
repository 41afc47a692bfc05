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

// What an absent field of a Config means.
const (
	DefaultMaxInFlight = 256
	DefaultTimeout     = 30 * time.Second
)

// waitShare is the part of a task's remaining time it may wait for a place.
const waitShare = 4

// Config bounds the work given out. Its zero value works.
type Config struct {
	MaxInFlight int                      // tasks of all agents together; 0 = DefaultMaxInFlight
	Timeout     time.Duration            // of a task without any deadline; 0 = DefaultTimeout
	Breaker     resilience.BreakerConfig // of each agent
}

// Dispatcher gives tasks to agents. Its methods may be called from any
// goroutine.
type Dispatcher struct {
	targets map[string]Target
	timeout time.Duration
	breaker resilience.BreakerConfig
	places  chan struct{} // holds one value for each task in flight

	reload sync.Mutex // one Live at a time; taken before mu

	mu     sync.Mutex
	roster *roster           // nil before the first Live
	active map[string]*agent // those with something in flight or with a breaker
}

// New returns a Dispatcher that reaches agents through the targets, by
// protocol.
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
		targets: targets,
		timeout: cfg.Timeout,
		breaker: cfg.Breaker,
		places:  make(chan struct{}, cfg.MaxInFlight),
		active:  map[string]*agent{},
	}, nil
}

// Send gives the task to the agent and returns what came of it, by the earlier
// of the context's and the task's deadline.
func (d *Dispatcher) Send(ctx context.Context, c Call) Outcome {
	start := time.Now()
	ctx, cancel := d.withDeadline(ctx, c.Task.Deadline)
	defer cancel()
	out := d.send(ctx, c)
	out.Latency = time.Since(start)
	out.Attempts = max(out.Attempts, c.Task.Attempt-1) // those of a Send before
	return out
}

// CancelTask tells the agent that nobody waits for the task any more: for a task that
// an agent has accepted for later and that no Send is waiting for. It returns at
// once, and does nothing for an agent that cannot be told.
func (d *Dispatcher) CancelTask(c Call) {
	if target, _ := d.target(c.Agent); target != nil {
		stop(target, c)
	}
}

func stop(target Target, c Call) {
	if s, ok := target.(Canceler); ok {
		s.CancelTask(c)
	}
}

// send checks what is quick to check first. The place an agent has of its own
// for the task it keeps until the end, also of work that comes later.
func (d *Dispatcher) send(ctx context.Context, c Call) Outcome {
	target, why := d.target(c.Agent)
	if target == nil {
		return unavailable(why)
	}
	a := d.enter(c.Agent)
	defer d.leave(a)
	if until := a.live.OpenUntil(); until > d.breaker.Now().UnixMilli() {
		return unavailable(refusal(c.Agent.ID, time.UnixMilli(until)))
	}
	if !a.live.Acquire() {
		return unavailable(fmt.Sprintf("%s is at its limit of %d tasks in flight (max_in_flight)", c.Agent.ID, a.live.Limit()))
	}
	defer a.live.Release()
	out := d.give(ctx, c, target, a)
	switch {
	case out.Pending:
		return await(ctx, c, target, out)
	case out.Err != nil && out.Err.Code == contract.TaskWasCancelled && handedOver(ctx):
		return Outcome{Pending: true, Attempts: out.Attempts}
	}
	return out
}

// give gives the task out, holding one of the places all tasks share. It asks
// the breaker last: whoever it admits goes straight to the agent.
func (d *Dispatcher) give(ctx context.Context, c Call, target Target, a *agent) Outcome {
	if trouble := d.takePlace(ctx); trouble != nil {
		return Outcome{Err: trouble}
	}
	defer func() { <-d.places }()
	permit, ok := d.admit(a)
	if !ok {
		return unavailable(refusal(c.Agent.ID, d.AgentStatus(c.Agent.ID).OpenUntil))
	}
	health := HealthUnknown // should Commit or Do panic
	defer func() { d.judge(a, permit, c.Agent.Endpoint, health) }()
	if c.BeforeSend != nil {
		if err := c.BeforeSend(ctx); err != nil {
			return uncommitted(ctx, c.Agent.ID)
		}
	}
	out := target.Execute(ctx, c)
	if health = out.Health; out.Pending {
		health = HealthGood
	}
	return out
}

// await waits for the Result of work that the agent has accepted.
func await(ctx context.Context, c Call, target Target, accepted Outcome) Outcome {
	out := c.AwaitResult(ctx)
	out.Attempts = max(out.Attempts, accepted.Attempts)
	if ctx.Err() != nil && out.Result == nil && !out.Pending && !handedOver(ctx) {
		stop(target, c)
	}
	return out
}

// uncommitted is the outcome of a task whose Commit did not work. Its error is
// for the log of whoever made it.
func uncommitted(ctx context.Context, agentID string) Outcome {
	if ctx.Err() != nil {
		return Outcome{Err: ended(ctx)}
	}
	return unavailable("the task could not be recorded and was not sent to " + agentID)
}

// target returns what reaches the agent, or why nothing does.
func (d *Dispatcher) target(agent *contract.RegistryEntry) (Target, string) {
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

// refusal words what a breaker's no means; until is zero while a trial runs.
func refusal(agentID string, until time.Time) string {
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
	case ok && (task.IsZero() || !task.Before(deadline)): // a timer the less
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, task)
}

// takePlace takes one of the places all tasks share.
func (d *Dispatcher) takePlace(ctx context.Context) *contract.TaskError {
	if ctx.Err() != nil {
		return ended(ctx)
	}
	select {
	case d.places <- struct{}{}:
		return nil
	default:
	}
	deadline, _ := ctx.Deadline() // withDeadline has set one
	patience := time.Until(deadline) / waitShare
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case d.places <- struct{}{}:
		return nil
	case <-timer.C:
		return &contract.TaskError{Code: contract.TaskAgentUnavailable, Detail: fmt.Sprintf(
			"the router is at its limit of %d tasks in flight (dispatch.max_in_flight); waited %d ms", cap(d.places), patience.Milliseconds())}
	case <-ctx.Done():
		return ended(ctx)
	}
}

// ended words the end of the context of a task that was not given out.
func ended(ctx context.Context) *contract.TaskError {
	if handedOver(ctx) {
		return &contract.TaskError{Code: contract.TaskAgentUnavailable, Detail: "the router stopped before the task was sent"}
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &contract.TaskError{Code: contract.TaskDeadlineExceeded, Detail: "the deadline passed before the task was sent"}
	}
	return &contract.TaskError{Code: contract.TaskWasCancelled, Detail: "the caller disconnected before the task was sent"}
}
