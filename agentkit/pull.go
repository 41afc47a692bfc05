package agentkit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/caprouter/caprouter/contract"
)

const (
	// pullWaitS is how many seconds the router may wait for a task. An agent that stops
	// lets its last poll end, so that no task is lost on its way.
	pullWaitS = 5
	// taskLeaseS is the TTL of the leases in seconds. A third of it is how soon a
	// cancellation is noticed.
	taskLeaseS = 15
	// minPollPause bounds how often the agent polls a router that does not wait.
	minPollPause = time.Second
)

// PullTasks pulls tasks from the router until ctx ends, and then waits for those in
// progress, for at most DrainTimeout. It is for an agent that the registry file declares
// with the protocol pull; an agent that registers itself calls [Run] instead.
func (a *Agent) PullTasks(ctx context.Context) error {
	if a.registration.routerURL == "" {
		return errors.New("agentkit: PullTasks needs RouterURL")
	}
	a.newPuller().pollTasks(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.registration.drainTimeout)
	defer cancel()
	if err := a.Shutdown(ctx); err != nil {
		return fmt.Errorf("agentkit: shutdown: %w", err)
	}
	return nil
}

// pullRegistered pulls tasks and keeps the agent registered until ctx ends.
func (a *Agent) pullRegistered(ctx context.Context) error {
	if a.registration.routerURL == "" {
		return errors.New("agentkit: RouterURL is required for an agent that registers itself")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	polled := make(chan struct{})
	go func() {
		defer close(polled)
		a.newPuller().pollTasks(ctx)
	}()
	return a.keepRegistered(ctx, a.registration.declared, func(drain context.Context) error {
		cancel() // also if the registration was rejected
		select {
		case <-polled:
			return nil
		case <-drain.Done():
			return drain.Err()
		}
	})
}

// puller pulls the tasks of one instance of an agent.
type puller struct {
	agent     *Agent
	client    agentClient
	semaphore chan struct{} // holds a token for each task in progress
	failure   string        // the latest failure that was logged
}

func (a *Agent) newPuller() *puller {
	return &puller{
		agent: a, client: a.newAgentClient(a.registration.declared.Instance),
		semaphore: make(chan struct{}, cmp.Or(a.registration.declared.MaxInFlight, contract.DefaultMaxInFlight)),
	}
}

// pollTasks polls whenever the agent can take a task, until ctx ends.
func (p *puller) pollTasks(ctx context.Context) {
	for pause := minPause; ; {
		select {
		case <-ctx.Done():
			return
		case p.semaphore <- struct{}{}:
		}
		if ctx.Err() != nil {
			return
		}
		began := p.agent.now()
		leased, err := p.client.leaseTask(context.WithoutCancel(ctx)) // which ends soon, see pullWaitS
		switch {
		case leased != nil:
			pause, p.failure = minPause, ""
			p.agent.background.Go(func() {
				defer func() { <-p.semaphore }()
				p.agent.executeLeased(context.WithoutCancel(ctx), leased)
			})
			continue
		case err == nil:
			pause, p.failure = minPause, ""
			<-p.semaphore
			if p.agent.now().Sub(began) < minPollPause && !sleep(ctx, minPollPause) {
				return
			}
			continue
		}
		<-p.semaphore
		if ctx.Err() != nil { // a draining instance gets no tasks
			return
		}
		p.logFailure(err)
		if !sleep(ctx, max(addJitter(pause), retryAfterOf(err))) {
			return
		}
		pause = min(2*pause, maxPause)
	}
}

// logFailure logs a failure, unless it equals the latest one. 404 is not one: the
// registration, which is made at the same time, logs its own failures.
func (p *puller) logFailure(err error) {
	if text := err.Error(); text != p.failure && statusOf(err) != http.StatusNotFound {
		p.failure = text
		p.agent.log.Warn("no tasks can be pulled; trying again", "error", err)
	}
}

// leaseTask pulls the next task. It returns nil if there is none.
func (c *agentClient) leaseTask(ctx context.Context) (*contract.LeasedTask, error) {
	body, err := json.Marshal(contract.LeaseRequest{Instance: c.instance, WaitS: pullWaitS, LeaseTTLS: taskLeaseS})
	if err != nil {
		return nil, err
	}
	reply, err := c.sendRequest(ctx, http.MethodPost, c.url+"/lease", body)
	if err != nil || len(reply) == 0 {
		return nil, err
	}
	leased := new(contract.LeasedTask)
	if err := decodeStrict(reply, leased); err != nil {
		return nil, fmt.Errorf("the reply is not a task: %w", err)
	}
	return leased, nil
}

// executeLeased executes a task, renews its lease meanwhile, and sends the result.
func (a *Agent) executeLeased(ctx context.Context, leased *contract.LeasedTask) {
	task := leased.Task
	sender := a.newCallbackSender(task)
	if sender == nil || !validTaskID(task.TaskID) {
		a.log.Error("a pulled task cannot be executed: it has no usable callback", "task_id", task.TaskID)
		return
	}
	ctx, cancel := context.WithDeadline(ctx, task.Deadline)
	defer cancel()
	caller, err := a.verifier.verifyCaller(ctx, leased.Token, task.TaskID)
	// A later lease is a task of its own, because this one may still be in progress.
	key := jobKey{caller, task.TaskID + "#" + strconv.Itoa(task.Attempt)}
	j, first := a.tasks.startJob(key, cancel, true)
	a.tasks.acceptAsync(j)
	sender.onCancelled = func() { a.tasks.cancelJob(key, nil) } // the job is known, so no answer is needed
	stopHeartbeats := a.startTaskHeartbeats(ctx, leased, sender)
	defer stopHeartbeats()
	switch {
	case !first: // the router has repeated a lease, for example with an older copy of its store
		select {
		case <-j.done:
		case <-ctx.Done():
			return
		}
	case err != nil: // the work must not begin without knowing its caller
		a.log.Error("the token of a pulled task is not valid", "task_id", task.TaskID, "trace_id", task.TraceID, "error", err)
		a.tasks.finishJob(j, a.encodeResult(task.TaskID, Failure(textFailed)))
	default:
		a.runJob(context.WithValue(ctx, taskContextKey{}, &taskContext{caller: caller, agent: a, job: j, sender: sender}), j, task)
	}
	a.deliverResult(ctx, j, task, sender)
}

// startTaskHeartbeats renews the lease until the returned function is called.
func (a *Agent) startTaskHeartbeats(ctx context.Context, leased *contract.LeasedTask, sender *callbackSender) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	stopped := make(chan struct{})
	interval := max(time.Duration(min(leased.Lease.HeartbeatS, contract.MaxLeaseTTLS)*float64(time.Second)), minHeartbeat)
	go func() {
		defer close(stopped)
		for sleep(ctx, interval*9/10) {
			if err := sender.renewLease(ctx); err != nil && ctx.Err() == nil {
				a.log.Warn("the lease of a task is not renewed", "task_id", leased.Task.TaskID, "error", err)
			}
		}
	}()
	return func() {
		cancel()
		<-stopped
	}
}

// renewLease sends a heartbeat of the task.
func (c *callbackSender) renewLease(ctx context.Context) error {
	status, reply, _, err := c.post(ctx, strings.TrimSuffix(c.resultURL, "result")+"heartbeat", nil)
	switch {
	case err != nil:
		return err
	case isFinal(status): // the task does not exist any more
		c.onCancelled()
	case status != http.StatusOK:
		return fmt.Errorf("the router answered %d", status)
	}
	c.noticeCancellation(reply)
	return nil
}

// noticeCancellation calls onCancelled if the reply to a heartbeat or to progress is a
// lease that is cancelled. Only tasks that were pulled have leases.
func (c *callbackSender) noticeCancellation(reply []byte) {
	var lease contract.TaskLease
	if c.onCancelled != nil && decodeStrict(reply, &lease) == nil && lease.State == contract.LeaseCancelled {
		c.onCancelled()
	}
}
