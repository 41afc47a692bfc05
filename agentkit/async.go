package agentkit

import (
	"context"
	"time"

	"github.com/caprouter/caprouter/contract"
)

// finalGrace is how long delivering goes on when the task's time is up, or the
// process has no more time: long enough for one try.
const finalGrace = 2 * time.Second

// taskContextKey is where serveTask puts what the context of a work is about.
type taskContextKey struct{}

// taskContext is one task, for the functions that take the context of its work.
type taskContext struct {
	caller Identity
	agent  *Agent
	job    *job
	sender *callbackSender // nil = nothing can be said outside the connection
}

func taskContextOf(ctx context.Context) *taskContext {
	s, _ := ctx.Value(taskContextKey{}).(*taskContext)
	return s
}

// Identity is whom a task is done for. Two are the same only when all of it is:
// each issuer, and each tenant, may have an alice.
type Identity struct {
	Subject string // "local" when the router authenticates nobody
	Issuer  string // who vouches for the subject; "" when the router authenticates nobody
	Tenant  string // "" = none
}

// Caller returns the subject the task is done for, as the router authenticated
// it; "" in a context that is not that of a work. It says nothing of who vouches
// for the subject: what a caller may do is decided by CallerIdentity.
func Caller(ctx context.Context) string { return CallerIdentity(ctx).Subject }

// CallerIdentity returns whom the task is done for, as the router authenticated
// them; nobody in a context that is not that of a work.
func CallerIdentity(ctx context.Context) Identity {
	if s := taskContextOf(ctx); s != nil {
		return s.caller
	}
	return Identity{}
}

// AcceptAsync lets the router go: it is told that the task is accepted, and the Result
// is delivered when the work returns it. It reports whether that is so. Without
// a callback of the router in the task the connection stays, and so does the
// time the router waits on it: then Later changes nothing and returns false.
func AcceptAsync(ctx context.Context) bool {
	s := taskContextOf(ctx)
	return s != nil && s.agent.tasks.acceptAsync(s.job)
}

// Progress tells the router, and through it the caller, how far the work is:
// message in words for people, percent between 0 and 100, or less than 0 when
// nobody knows. It returns at once. What is told is sent in its order; of a work
// that tells faster than can be sent, the oldest is left out. Without a callback
// in the task nothing is sent.
func Progress(ctx context.Context, message string, percent float64) {
	s := taskContextOf(ctx)
	if s == nil || s.sender == nil || message == "" {
		return
	}
	p := contract.Progress{Message: truncateMessage(message)}
	if percent >= 0 { // and not NaN
		p.Percent = new(min(percent, 100))
	}
	s.sender.queueProgress(ctx, p)
}

// truncateMessage cuts a message to what the router takes.
func truncateMessage(message string) string {
	n := 0
	for i := range message {
		if n++; n > maxMessage {
			return message[:i]
		}
	}
	return message
}

// deliverResult delivers the job's Result, where no connection has taken it.
func (a *Agent) deliverResult(ctx context.Context, j *job, task contract.Task, c *callbackSender) {
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), task.Deadline.Add(finalGrace))
	defer cancel()
	if !a.tasks.mustDeliver(j) {
		c.discardProgress()
		return
	}
	c.flushProgress(ctx)
	if err := c.deliverResult(ctx, j.answer, a.closing); err != nil {
		a.log.Warn("result not delivered", "task_id", task.TaskID, "trace_id", task.TraceID, "err", err)
	}
}

// Shutdown waits until the work that no connection waits for is done and its
// results are delivered. It is called after the http.Server's, which waits for
// the connections. When ctx ends first, the work that is left is told to stop;
// it has two more seconds to do so and say that it failed. Then ctx's error is
// returned.
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
	case <-timer.C: // work that does not heed its context
	}
	return ctx.Err()
}
