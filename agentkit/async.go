package agentkit

import (
	"context"
	"time"

	"github.com/caprouter/caprouter/contract"
)

// finalGrace is how long sending a result may take after the deadline or during
// shutdown: long enough for one attempt.
const finalGrace = 2 * time.Second

// taskContextKey is the context key of the *taskContext.
type taskContextKey struct{}

// taskContext is the task of a work, for the functions that take its context.
type taskContext struct {
	caller Identity
	agent  *Agent
	job    *job
	sender *callbackSender // nil = the task has no usable callback
}

func taskContextOf(ctx context.Context) *taskContext {
	t, _ := ctx.Value(taskContextKey{}).(*taskContext)
	return t
}

// Identity identifies the caller of a task. Compare all three fields: different
// issuers and tenants may use the same subject.
type Identity struct {
	Subject string // "local" if the router does not authenticate callers
	Issuer  string // of the caller's token; "" if the router does not authenticate callers
	Tenant  string // "" = none
}

// Caller returns the subject of the caller, as the router authenticated it, or ""
// if ctx is not the context of a work. For authorization use CallerIdentity,
// because the subject alone is not unique.
func Caller(ctx context.Context) string { return CallerIdentity(ctx).Subject }

// CallerIdentity returns the caller of the task, as the router authenticated it,
// or the zero value if ctx is not the context of a work.
func CallerIdentity(ctx context.Context) Identity {
	if t := taskContextOf(ctx); t != nil {
		return t.caller
	}
	return Identity{}
}

// AcceptAsync answers the router's request with 202 Accepted, and sends the Result
// to the callback when the work returns it. It reports whether the task is
// accepted that way. It has no effect and returns false if the task has no
// callback; then the router waits on the connection.
func AcceptAsync(ctx context.Context) bool {
	t := taskContextOf(ctx)
	return t != nil && t.agent.tasks.acceptAsync(t.job)
}

// Progress reports progress to the router, and through it to the caller: a message
// for people and a percentage from 0 to 100, or less than 0 if it is unknown. It
// returns at once. Reports are sent in order; if the work reports faster than they
// can be sent, the oldest are dropped. If the task has no callback, nothing is
// sent.
func Progress(ctx context.Context, message string, percent float64) {
	t := taskContextOf(ctx)
	if t == nil || t.sender == nil || message == "" {
		return
	}
	p := contract.Progress{Message: truncateMessage(message)}
	if percent >= 0 { // and not NaN
		p.Percent = new(min(percent, 100))
	}
	t.sender.queueProgress(ctx, p)
}

// truncateMessage cuts a message to the router's limit.
func truncateMessage(message string) string {
	n := 0
	for i := range message {
		if n++; n > maxMessage {
			return message[:i]
		}
	}
	return message
}

// deliverResult sends the job's Result to its callback, unless it was written to a
// connection or the task was cancelled.
func (a *Agent) deliverResult(ctx context.Context, j *job, task contract.Task, sender *callbackSender) {
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), task.Deadline.Add(finalGrace))
	defer cancel()
	if !a.tasks.mustDeliver(j) {
		sender.discardProgress()
		return
	}
	sender.flushProgress(ctx)
	if err := sender.deliverResult(ctx, j.answer, a.closing); err != nil {
		a.log.Warn("result not delivered", "task_id", task.TaskID, "trace_id", task.TraceID, "error", err)
	}
}

// Shutdown is the graceful shutdown of asynchronous work: it waits until the work
// is done and the results are sent. Call it after http.Server.Shutdown, which
// waits for the connections. If ctx ends first, Shutdown cancels the remaining
// work, waits two more seconds for it, and returns the error of ctx.
func (a *Agent) Shutdown(ctx context.Context) error {
	idle := make(chan struct{})
	go func() {
		a.background.Wait()
		close(idle)
	}()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
	}
	a.closeOnce.Do(func() { close(a.closing) })
	a.tasks.cancelAll()
	timer := time.NewTimer(finalGrace)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C: // some work ignores its context
	}
	return ctx.Err()
}
