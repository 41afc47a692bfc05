package pulltarget

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/auth/issuance"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/store"
)

// Config is what Leases work with. Requests, Offers, Tasks, Tokens and Issuer are
// required.
type Config struct {
	Requests *requests.Store
	Offers   *Offers
	Tasks    TaskSource
	Tokens   TokenSource
	Issuer   string // of the tokens
	// PublicURL returns the address at which agents reach the router with results.
	PublicURL func() string
	// OnLease is called for every task that is given out; redelivered is true if it was
	// given out before. Nil = none.
	OnLease func(redelivered bool)
	Logger  *slog.Logger     // nil = silent
	Now     func() time.Time // nil = time.Now
}

// TaskSource builds tasks from records.
type TaskSource interface {
	// PulledTask returns the task as its agent gets it, without the members that depend on
	// the lease, or the reason why the agent may not get it now.
	PulledTask(rec *requests.Record, task *requests.Task) (pulled contract.Task, reason string)
}

// TokenSource mints the tokens that agents receive with their tasks.
type TokenSource interface {
	AgentToken(g issuance.AgentGrant) (string, error)
	TaskToken(issuer string, g contract.TaskGrant) (string, error)
}

// Leases give tasks to agents. They are safe for concurrent use.
type Leases struct{ cfg Config }

// NewLeases returns Leases.
func NewLeases(cfg Config) (*Leases, error) {
	if cfg.Requests == nil || cfg.Offers == nil || cfg.Tasks == nil || cfg.Tokens == nil || cfg.Issuer == "" || cfg.PublicURL == nil {
		return nil, errors.New("pulltarget: requests, offers, a source of tasks and of tokens, an issuer and a URL are required")
	}
	if cfg.OnLease == nil {
		cfg.OnLease = func(bool) {}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Leases{cfg}, nil
}

// Lease returns the next task of the agent and, if there is none, waits for one as long
// as the request permits, but not after stop is closed. ok is false if none came, or ctx
// ended. The caller has checked that the request is the agent's.
func (l *Leases) Lease(
	ctx context.Context, agentID string, req *contract.LeaseRequest, stop <-chan struct{},
) (leased contract.LeasedTask, ok bool, err error) {
	waiting, cancel := context.WithTimeout(ctx, time.Duration(req.WaitS)*time.Second)
	defer cancel()
	l.cfg.Offers.beginPoll(agentID, l.cfg.Now())
	defer func() { l.cfg.Offers.endPoll(agentID, l.cfg.Now()) }()
	for ctx.Err() == nil { // a client that has disconnected must not get a task
		taken, next, changed := l.cfg.Offers.take(agentID, l.cfg.Now())
		if taken == nil {
			if !l.wait(waiting, next, changed, stop) {
				break
			}
			continue
		}
		leased, next, err := l.leaseOffer(context.WithoutCancel(ctx), taken, req)
		switch {
		case err == nil:
			l.cfg.Offers.endTake(taken, next)
			return leased, true, nil
		case errors.Is(err, errNoTask):
			l.cfg.Offers.endTake(taken, next)
		default:
			l.cfg.Offers.endTake(taken, l.cfg.Now())
			return leased, false, err
		}
	}
	return leased, false, nil
}

// wait waits until there may be an offer, and reports whether it comes in time.
func (l *Leases) wait(ctx context.Context, next time.Time, changed, stop <-chan struct{}) bool {
	var due <-chan time.Time
	if !next.IsZero() {
		timer := time.NewTimer(next.Sub(l.cfg.Now()))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-changed:
	case <-due:
	case <-stop:
		return false
	case <-ctx.Done():
		return false
	}
	return true
}

// errNoTask is the error of an offer that cannot be leased now.
var errNoTask = errors.New("the offer cannot be leased")

// refusalPause is how long a task is not looked at that its agent may not get now.
const refusalPause = time.Second

// leaseOffer leases the task of an offer. next is when another lease may look at the
// offer; the zero time is never.
func (l *Leases) leaseOffer(ctx context.Context, o *offer, req *contract.LeaseRequest) (leased contract.LeasedTask, next time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	rec, err := l.cfg.Requests.Get(ctx, o.RequestID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return leased, next, errNoTask
	case err != nil:
		return leased, next, store.CallerError(ctx, l.cfg.Logger, "the task cannot be read", err)
	}
	now := l.cfg.Now()
	task := rec.FindTask(o.TaskID)
	if task == nil || task.AgentID != o.AgentID || task.Pull == nil || task.State == requests.TaskDone || rec.State != requests.StateRunning {
		return leased, next, errNoTask
	}
	if phase, _ := task.PhaseAt(now); phase != requests.PullOffered {
		return leased, redeliveryOf(task), errNoTask
	}
	leased, reason, err := l.buildTask(rec, task)
	switch {
	case err != nil:
		return leased, next, err
	case reason != "":
		return leased, now.Add(refusalPause), errNoTask
	}
	rec, err = l.cfg.Requests.Update(ctx, o.RequestID, func(rec *requests.Record) error {
		if current := rec.FindTask(o.TaskID); current == nil || current.Pull == nil || current.Pull.Leases+1 != leased.Task.Attempt {
			return requests.ErrNotLeasable // the tokens are those of another lease
		}
		return rec.Lease(o.TaskID, o.AgentID, cmp.Or(req.Instance, contract.DefaultInstance), cmp.Or(req.LeaseTTLS, contract.DefaultTaskLeaseS), now)
	})
	switch {
	case isOver(err):
		return leased, next, errNoTask // the owner of the request offers it again, if need be
	case err != nil:
		return leased, next, store.CallerError(ctx, l.cfg.Logger, "the lease cannot be stored", err)
	}
	task = rec.FindTask(o.TaskID)
	leased.Lease = describeLease(task)
	l.cfg.OnLease(task.Pull.Leases > 1)
	return leased, redeliveryOf(task), nil
}

// redeliveryOf returns when a task that is leased may be leased again; zero = never.
func redeliveryOf(task *requests.Task) time.Time {
	if task.Pull.Leases == 0 || !task.Idempotent || task.Pull.Leases >= contract.MaxTaskLeases {
		return time.Time{}
	}
	return task.Pull.Until
}

// leaseTimeout bounds the reads and writes of one lease.
const leaseTimeout = 10 * time.Second

// isOver reports whether the error means that the agent must not work on the task, or not
// any more.
func isOver(err error) bool {
	return errors.Is(err, requests.ErrNotLeasable) || errors.Is(err, requests.ErrEnded) || errors.Is(err, requests.ErrTransition)
}

// buildTask returns the task of the next lease, with its tokens, or the reason why the
// agent may not get it.
func (l *Leases) buildTask(rec *requests.Record, task *requests.Task) (leased contract.LeasedTask, reason string, err error) {
	pulled, reason := l.cfg.Tasks.PulledTask(rec, task)
	if reason != "" {
		return leased, reason, nil
	}
	pulled.TaskID, pulled.Deadline, pulled.Attempt = task.ID, task.Pull.DueBy.UTC().Truncate(time.Millisecond), task.Pull.Leases+1
	expires := task.Pull.DueBy.Add(dispatch.TokenSlack)
	report, err := l.cfg.Tokens.TaskToken(l.cfg.Issuer, contract.TaskGrant{
		AgentID: task.AgentID, RequestID: rec.ID, TaskID: task.ID, Lease: pulled.Attempt, Expires: expires,
	})
	if err != nil {
		return leased, "", fmt.Errorf("token of a pulled task: %w", err)
	}
	token, err := l.cfg.Tokens.AgentToken(issuance.AgentGrant{
		Issuer: l.cfg.Issuer, AgentID: task.AgentID, TaskID: task.ID, Expires: expires,
		Subject: rec.Caller.Subject, SubjectIssuer: rec.Caller.Issuer, Tenant: rec.Caller.Tenant,
	})
	if err != nil {
		return leased, "", fmt.Errorf("token of a pulled task: %w", err)
	}
	pulled.Callback = dispatch.NewCallback(l.cfg.PublicURL(), task.ID, report)
	return contract.LeasedTask{Task: pulled, Token: token}, "", nil
}

// describeLease describes the latest lease of a task.
func describeLease(task *requests.Task) contract.TaskLease {
	expires := minTime(task.Pull.Until, task.Pull.DueBy)
	return contract.TaskLease{
		TaskID: task.ID, State: contract.LeaseHeld, ExpiresAt: &expires,
		HeartbeatS: float64(task.Pull.TTLS*1000/contract.HeartbeatsPerLease) / 1000,
	}
}

// Renew begins the lease in the grant anew. If the result is not needed any more, the
// lease is contract.LeaseCancelled. It returns contract.CodeNotFound if the agent has not
// pulled the task.
func (l *Leases) Renew(ctx context.Context, grant contract.TaskGrant) (contract.TaskLease, error) {
	rec, err := l.cfg.Requests.Update(ctx, grant.RequestID, func(rec *requests.Record) error {
		return rec.Renew(grant.TaskID, grant.AgentID, grant.Lease, l.cfg.Now())
	})
	switch {
	case err == nil:
		return describeLease(rec.FindTask(grant.TaskID)), nil
	case isOver(err):
		return contract.TaskLease{TaskID: grant.TaskID, State: contract.LeaseCancelled}, nil
	case errors.Is(err, store.ErrNotFound), errors.Is(err, requests.ErrUnknownTask):
		return contract.TaskLease{}, &contract.Error{Code: contract.CodeNotFound, Message: "the agent has not pulled such a task"}
	}
	return contract.TaskLease{}, store.CallerError(ctx, l.cfg.Logger, "the lease cannot be renewed", err)
}
