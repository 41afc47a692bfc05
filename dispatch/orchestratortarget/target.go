// Package orchestratortarget sends tasks to the orchestrator: the prompt of the task is the
// goal, and its other inputs are facts for the planner.
//
//	planner_agent:
//	  match: { intent: [research], domains: [files] }
//	  endpoint: { protocol: orchestrator }
//	  mcp_capabilities: ["files:read"]     # limits the servers
//
// The id of the task is that of the run, so that a task which was sent before a restart finds
// its run. Without one, only a task of an idempotent agent begins a run again. The router
// pursues goals; this package maps tasks and results.
package orchestratortarget

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/dispatch/attempt"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// Runner pursues goals. It returns the run when it has ended. A *contract.Error means that no
// run has begun. If the context ends while the run only waits for an approval, the run is
// cancelled, and returned with the error of the context. After any other error, one may go on.
// If the call must be resumed, no run is begun, and it is such an error if there is none.
type Runner interface {
	RunForTask(ctx context.Context, goal *contract.Goal, call dispatch.Call) (*contract.Orchestration, error)
}

// Target is a dispatch.Target. It is safe for concurrent use.
type Target struct {
	runner Runner
	log    *slog.Logger
}

var _ dispatch.Target = (*Target)(nil)

// New returns a Target.
func New(runner Runner, logger *slog.Logger) (*Target, error) {
	if runner == nil || logger == nil {
		return nil, errors.New("orchestratortarget: a runner and a logger are required")
	}
	return &Target{runner: runner, log: logger}, nil
}

// Execute pursues the goal of a task and returns the outcome.
func (t *Target) Execute(ctx context.Context, c dispatch.Call) dispatch.Outcome {
	policy := attempt.NewPolicy(ctx, c, time.Now())
	ctx, cancel := policy.WithDeadline(ctx)
	defer cancel()
	var result *contract.Result
	attempts, failure := policy.Run(ctx, func(ctx context.Context, _ int) *attempt.Error {
		run, err := t.runner.RunForTask(ctx, newGoal(&c), c)
		if e, ok := errors.AsType[*contract.Error](err); ok {
			return policy.NotSent(c.Agent.ID+" cannot pursue the goal: "+e.Message, e)
		}
		if err != nil && ctx.Err() != nil {
			if run != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return newNotApproved(&c, run, err)
			}
			return policy.Ended(ctx, true)
		}
		if err != nil && c.MustResume() {
			return newUncertain(&c, "and its run is not stored", err)
		}
		if err != nil {
			return policy.Unanswered("did not report the end of the run", err)
		}
		if c.MustResume() && run.Reason == contract.ReasonOutcomeUnknown {
			return newUncertain(&c, "and the outcome of a call is not known", nil)
		}
		result = newResult(c.Task.TaskID, run)
		return nil
	})
	if failure == nil {
		return dispatch.Outcome{Result: result, Attempts: policy.Previous + attempts, Health: dispatch.HealthGood}
	}
	t.log.Warn("task not done", "agent", c.Agent.ID, "task_id", c.Task.TaskID, "trace_id", c.Task.TraceID, "code", failure.Code, "detail", failure.Detail)
	return policy.Outcome(attempts, failure)
}

// newUncertain returns the failure of a task that was interrupted, and may have been done.
func newUncertain(c *dispatch.Call, reason string, cause error) *attempt.Error {
	return &attempt.Error{
		Code: contract.TaskOutcomeUnknown, Cause: cause, MayHaveExecuted: true,
		Detail: c.Agent.ID + " was sent the task before the router restarted, " + reason + ": it may have done it",
	}
}

// newGoal returns the goal of a task: the prompt or, if other agents do parts of it, the
// title, because a planner would do their parts as well.
func newGoal(c *dispatch.Call) *contract.Goal {
	goal := &contract.Goal{Goal: c.Task.SubtaskTitle}
	facts := map[string]json.RawMessage{}
	for name, value := range c.Task.Inputs {
		if name != contract.FromPrompt {
			facts[name] = value
			continue
		}
		var prompt string
		if !c.Divided && strictjson.Unmarshal(value, &prompt) == nil && prompt != "" && len(prompt) <= contract.MaxGoalBytes {
			goal.Goal = prompt
		}
	}
	if len(facts) > 0 {
		if raw, err := strictjson.Marshal(facts); err == nil {
			goal.EnvContext = raw
		}
	}
	return goal
}

// newResult returns the Result of a task for its run.
func newResult(taskID string, run *contract.Orchestration) *contract.Result {
	data := map[string]json.RawMessage{}
	for name, value := range map[string]any{"orchestration_id": run.OrchestrationID, "status": run.Status, "reason": run.Reason, "tool_outputs": run.ToolOutputs} {
		if raw, err := strictjson.Marshal(value); err == nil {
			data[name] = raw
		}
	}
	result := &contract.Result{TaskID: taskID, Status: contract.ResultSuccess, Data: data}
	if run.Status != contract.OrchestrationDone {
		result.Status = contract.ResultFailure
		for _, e := range run.Errors {
			result.Explanations = append(result.Explanations, fmt.Sprintf("%s: %s", e.Reason, e.Message))
		}
	}
	if answer := lastText(run); answer != "" {
		if raw, err := strictjson.Marshal(answer); err == nil {
			data["answer"] = raw
		}
	}
	return result
}

// lastText returns the text of the last output that is one.
func lastText(run *contract.Orchestration) string {
	for _, out := range slices.Backward(run.ToolOutputs) {
		var text string
		if r := out.Result; r != nil && r.Type == contract.ActionText && strictjson.Unmarshal(r.Content, &text) == nil {
			return text
		}
	}
	return ""
}
