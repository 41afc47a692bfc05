package router

import (
	"context"
	"errors"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/requests"
)

// putting tells the record that a task goes out.
type putting = func(ctx context.Context, agent *contract.RegistryEntry, task *contract.Task) error

// given puts a new task on record.
func (d *delivery) given(ctx context.Context, agent *contract.RegistryEntry, task *contract.Task) error {
	if t := d.job.tracked; t != nil {
		if _, err := t.change(ctx, func(rec *requests.Record) error {
			return rec.Send(requests.Task{ID: task.TaskID, AgentID: agent.ID, Part: d.index, SentAt: d.router.cfg.Now().UTC(), Attempts: task.Attempt, Idempotent: agent.Endpoint.Idempotent})
		}); err != nil {
			return err
		}
	}
	d.times++
	d.started(agent, task)
	return nil
}

// again puts a task on record that goes out once more.
func (d *delivery) again(ctx context.Context, agent *contract.RegistryEntry, task *contract.Task) error {
	if _, err := d.job.tracked.change(ctx, func(rec *requests.Record) error { return rec.Resend(task.TaskID, task.Attempt) }); err != nil {
		return err
	}
	d.started(agent, task)
	return nil
}

func (d *delivery) started(agent *contract.RegistryEntry, task *contract.Task) {
	d.router.tellEvent(d.job, &contract.Event{Type: contract.EventTaskStarted, Task: &contract.TaskReport{
		TaskID: task.TaskID, AgentID: agent.ID, SubtaskTitle: d.part.Title, Status: contract.TaskRunning, Attempts: task.Attempt,
	}})
}

// finished puts what came of a task on record and returns what counts: a result
// that came by callback first, else this.
func (d *delivery) finished(ctx context.Context, w *waiter, out dispatch.Outcome) dispatch.Outcome {
	t := d.job.tracked
	if t == nil {
		return w.close(out)
	}
	if out.Pending || !w.recorded {
		return out // handed back, or never given out
	}
	rec, err := t.insist(ctx, func(rec *requests.Record) error {
		return rec.Finish(w.taskID, requests.Outcome{
			Result: out.Result, Err: out.Err, Uncertain: out.MayHaveExecuted, Attempts: out.Attempts, LatencyMS: millis(out.Latency),
		})
	})
	if errors.Is(err, requests.ErrDifferentResult) { // a callback was first
		ctx, cancel := afterwards(ctx)
		defer cancel()
		rec, err = t.book.Get(ctx, t.id)
	}
	if err != nil {
		return out // ended by somebody else, whose word counts
	}
	if known, ok := doneOnRecord(rec, w.taskID); ok {
		known.Health = out.Health
		return known
	}
	return out
}

// doneOnRecord is what the record says of a task that has ended.
func doneOnRecord(rec *requests.Record, taskID string) (dispatch.Outcome, bool) {
	if rec == nil {
		return dispatch.Outcome{}, false
	}
	for i := range rec.Tasks {
		if task := &rec.Tasks[i]; task.ID == taskID && task.State == requests.TaskDone {
			return outcomeOf(task), true
		}
	}
	return dispatch.Outcome{}, false
}

// recall takes up what an earlier life of the request has left of the part, and
// reports whether the part ends with it.
//
//	done, delivered or uncertain   that is it
//	done, failed                   the next agent
//	waiting                        its result may still come: wait
//	sent, idempotent               given out again, under the same id
//	sent, not idempotent           outcome_unknown: it may have been done
//
// What the registry said when a task was sent counts, and what it says now.
func (d *delivery) recall(ctx context.Context) (ends bool) {
	for i := range d.job.before {
		task := &d.job.before[i]
		if task.Part != d.index {
			continue
		}
		switch agent := d.job.view.Registry.Agent(task.AgentID); {
		case task.State == requests.TaskDone:
			d.book(&contract.Task{TaskID: task.ID}, task.AgentID, outcomeOf(task))
			ends = d.ends()
		case task.State == requests.TaskWaiting:
			ends = d.waitAgain(ctx, task, agent)
		case agent != nil && agent.Endpoint.Idempotent && task.Idempotent:
			ends = d.giveAgain(ctx, task, agent)
		default:
			w := d.router.waiting.expect(task.ID, task.AgentID, d.job)
			w.recorded = true
			ends = d.settle(ctx, w, &contract.Task{TaskID: task.ID}, task.AgentID, dispatch.Outcome{
				Attempts: task.Attempts, Latency: d.router.cfg.Now().Sub(task.SentAt), MayHaveExecuted: true, Err: &contract.TaskError{
					Code: contract.TaskOutcomeUnknown, Detail: task.AgentID + " was sent the task before the router restarted: it may have done it",
				},
			})
			d.router.waiting.forget(w)
		}
		if ends {
			return true
		}
	}
	return false
}

// giveAgain gives a task out once more, as soon as its agent can be given one.
func (d *delivery) giveAgain(ctx context.Context, task *requests.Task, agent *contract.RegistryEntry) bool {
	for round := 0; ; round++ {
		again := d.task(ctx, agent)
		again.TaskID, again.Attempt = task.ID, task.Attempts+1
		if d.attempt(ctx, agent, again, 0, d.again) {
			return true
		}
		if d.went {
			return false // it has failed for certain: the next agent
		}
		if !d.wait(ctx, round) {
			return true // the time is up, or the process ends; the record still has it
		}
	}
}

// waitAgain waits for the result of a task an agent accepted in an earlier life.
// The agent may have left the registry: its callback is as good as before.
func (d *delivery) waitAgain(ctx context.Context, task *requests.Task, agent *contract.RegistryEntry) bool {
	if agent == nil {
		agent = &contract.RegistryEntry{ID: task.AgentID}
	}
	w := d.router.waiting.expect(task.ID, task.AgentID, d.job)
	defer d.router.waiting.forget(w)
	w.recorded = true
	out := d.await(ctx, w, agent)
	out.Attempts, out.Latency = task.Attempts, d.router.cfg.Now().Sub(task.SentAt)
	if out.Result == nil && !out.Pending {
		d.router.dispatcher.CancelTask(dispatch.Call{Agent: agent, Caller: d.job.caller, Task: contract.Task{TaskID: task.ID, RequestID: d.job.req.RequestID, TraceID: d.job.req.TraceID}})
	}
	return d.settle(ctx, w, &contract.Task{TaskID: task.ID}, task.AgentID, out)
}

// outcomeOf is what the record says of a task that has ended.
func outcomeOf(task *requests.Task) dispatch.Outcome {
	return dispatch.Outcome{
		Result: task.Result, Err: task.Err, MayHaveExecuted: task.Uncertain, Attempts: task.Attempts, Latency: fromMillis(task.LatencyMS),
	}
}
