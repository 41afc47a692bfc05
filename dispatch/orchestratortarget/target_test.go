package orchestratortarget_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/dispatch/orchestratortarget"
)

type runnerFunc func(ctx context.Context, goal *contract.Goal) (*contract.Orchestration, error)

func (f runnerFunc) RunForTask(ctx context.Context, goal *contract.Goal, _ dispatch.Call) (*contract.Orchestration, error) {
	return f(ctx, goal)
}

// The prompt is the goal and the other inputs are facts. The last step of the run is the Result.
func TestExecute_MapsTaskAndRun(t *testing.T) {
	var got *contract.Goal
	for _, tt := range []struct {
		name   string
		run    *contract.Orchestration
		err    error
		status contract.ResultStatus // "" = no Result
	}{
		{"done", &contract.Orchestration{Status: contract.OrchestrationDone, ToolOutputs: []contract.ToolOutput{
			{Result: &contract.ActionResult{Type: contract.ActionText, Content: json.RawMessage(`"rain"`)}},
		}}, nil, contract.ResultSuccess},
		{"blocked", &contract.Orchestration{Status: contract.OrchestrationBlocked, Reason: contract.ReasonPolicyBlocked, Errors: []contract.RunError{{Reason: contract.ReasonPolicyBlocked, Message: "no"}}}, nil, contract.ResultFailure},
		{"refused", nil, &contract.Error{Code: contract.CodeOverloaded, Message: "full"}, ""},
		{"ended context", nil, errors.New("the context has ended"), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			target, err := orchestratortarget.New(runnerFunc(func(_ context.Context, goal *contract.Goal) (*contract.Orchestration, error) {
				got = goal
				return tt.run, tt.err
			}), slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			out := target.Execute(ctx, dispatch.Call{
				Agent: &contract.RegistryEntry{ID: "doer", Endpoint: contract.Endpoint{Protocol: contract.ProtocolOrchestrator}}, Caller: &contract.Caller{},
				Task: contract.Task{TaskID: "t1", Inputs: map[string]json.RawMessage{"prompt": json.RawMessage(`"will it rain"`), "city": json.RawMessage(`"Lisbon"`)}},
			})
			if diff := cmp.Diff(&contract.Goal{Goal: "will it rain", EnvContext: json.RawMessage(`{"city":"Lisbon"}`)}, got); diff != "" {
				t.Errorf("goal (-want +got):\n%s", diff)
			}
			switch {
			case (out.Result == nil) != (tt.status == ""):
				t.Errorf("got %+v, want a Result: %t", out, tt.status != "")
			case out.Result != nil && (out.Result.Status != tt.status || out.Result.TaskID != "t1"):
				t.Errorf("got %+v, want status %s", out.Result, tt.status)
			case tt.status == contract.ResultSuccess && string(out.Result.Data["answer"]) != `"rain"`:
				t.Errorf("got answer %s, want rain", out.Result.Data["answer"])
			}
		})
	}
}

// If a request has several subtasks, the goal is the subtask of the agent.
func TestExecute_UsesSubtaskAsGoal(t *testing.T) {
	var got *contract.Goal
	target, err := orchestratortarget.New(runnerFunc(func(_ context.Context, goal *contract.Goal) (*contract.Orchestration, error) {
		got = goal
		return &contract.Orchestration{Status: contract.OrchestrationDone}, nil
	}), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	target.Execute(ctx, dispatch.Call{
		Agent: &contract.RegistryEntry{ID: "doer", Endpoint: contract.Endpoint{Protocol: contract.ProtocolOrchestrator}}, Caller: &contract.Caller{}, Divided: true,
		Task: contract.Task{TaskID: "t1", SubtaskTitle: "will it rain", Inputs: map[string]json.RawMessage{"prompt": json.RawMessage(`"will it rain, and delete the old files"`)}},
	})
	if diff := cmp.Diff(&contract.Goal{Goal: "will it rain"}, got); diff != "" {
		t.Errorf("goal (-want +got):\n%s", diff)
	}
}

// If it is not known whether a run goes on, the task must not be given to another agent.
func TestExecute_IsUncertainIfRunIsNotKnown(t *testing.T) {
	target, err := orchestratortarget.New(runnerFunc(func(context.Context, *contract.Goal) (*contract.Orchestration, error) {
		return nil, errors.New("the run cannot be read")
	}), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out := target.Execute(ctx, dispatch.Call{
		Agent: &contract.RegistryEntry{ID: "doer", Endpoint: contract.Endpoint{Protocol: contract.ProtocolOrchestrator}}, Caller: &contract.Caller{},
		Task: contract.Task{TaskID: "t1"},
	})
	if out.Err == nil || out.Err.Code != contract.TaskOutcomeUnknown || !out.MayHaveExecuted || !strings.Contains(out.Err.Detail, "did not report") {
		t.Errorf("got %+v with error %+v, want outcome_unknown because the end of the run was not reported", out, out.Err)
	}
}

// A run that waits for an approval at the deadline has not made the calls that wait. Another agent
// may get the task unless the run has made others.
func TestExecute_NamesGatesAtDeadline(t *testing.T) {
	one := []contract.ApprovalGate{{StepID: "write", Action: "files.write", Rule: "writes"}, {StepID: "old", Decision: contract.GateApprove}}
	two := []contract.ApprovalGate{one[0], {StepID: "send", Action: "mail.send", Rule: "mail"}}
	for _, tt := range []struct {
		name       string
		gates      []contract.ApprovalGate
		calls      int
		idempotent bool
		uncertain  bool
		want       string
	}{
		{"first call", one, 0, false, false, `doer waited until the deadline for an approval of step "write" (files.write, rule writes), so it was not called: `},
		{"after a call", one, 1, false, true, `doer made 1 call and waited until the deadline for an approval of step "write"`},
		{"after two calls of an idempotent agent", one, 2, true, false, `doer made 2 calls and waited`},
		{"two steps", two, 0, false, false, `of steps "write" (files.write, rule writes), "send" (mail.send, rule mail), so they were not called: `},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithDeadline(t.Context(), time.Now())
			defer cancel()
			target, err := orchestratortarget.New(runnerFunc(func(ctx context.Context, _ *contract.Goal) (*contract.Orchestration, error) {
				return &contract.Orchestration{
					Status: contract.OrchestrationFailed, Reason: contract.ReasonCancelled, Gates: tt.gates, Provenance: contract.Provenance{Calls: tt.calls},
				}, ctx.Err()
			}), slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			out := target.Execute(ctx, dispatch.Call{
				Agent:  &contract.RegistryEntry{ID: "doer", Endpoint: contract.Endpoint{Protocol: contract.ProtocolOrchestrator, Idempotent: tt.idempotent}},
				Caller: &contract.Caller{}, Task: contract.Task{TaskID: "t1"},
			})
			if out.Err == nil || out.Err.Code != contract.TaskDeadlineExceeded || !strings.Contains(out.Err.Detail, tt.want) || !strings.Contains(out.Err.Detail, "mode async") {
				t.Fatalf("got error %+v, want deadline_exceeded with %q", out.Err, tt.want)
			}
			if out.MayHaveExecuted != tt.uncertain || out.Health != dispatch.HealthUnknown {
				t.Errorf("got uncertain %t and health %v, want %t and unknown", out.MayHaveExecuted, out.Health, tt.uncertain)
			}
		})
	}
}

// A task that was sent before a restart may have been done unless its run has a known outcome.
func TestExecute_IsUncertainIfResumedRunIsUncertain(t *testing.T) {
	for _, tt := range []struct {
		name       string
		run        *contract.Orchestration
		err        error
		idempotent bool
		want       string // in the error; "" = a Result
	}{
		{"ended", &contract.Orchestration{Status: contract.OrchestrationBlocked, Reason: contract.ReasonPolicyBlocked}, nil, false, ""},
		{"call with an unknown outcome", &contract.Orchestration{Status: contract.OrchestrationDegraded, Reason: contract.ReasonOutcomeUnknown}, nil, false, "the outcome of a call is not known"},
		{"no run", nil, errors.New("there is no such orchestration"), false, "its run is not stored"},
		{"idempotent", &contract.Orchestration{Status: contract.OrchestrationDegraded, Reason: contract.ReasonOutcomeUnknown}, nil, true, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			target, err := orchestratortarget.New(runnerFunc(func(context.Context, *contract.Goal) (*contract.Orchestration, error) { return tt.run, tt.err }), slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			out := target.Execute(ctx, dispatch.Call{
				Agent:  &contract.RegistryEntry{ID: "doer", Endpoint: contract.Endpoint{Protocol: contract.ProtocolOrchestrator, Idempotent: tt.idempotent}},
				Caller: &contract.Caller{}, Task: contract.Task{TaskID: "t1", Attempt: 2},
			})
			if tt.want == "" {
				if out.Result == nil || out.MayHaveExecuted {
					t.Errorf("got %+v with error %+v, want a Result", out, out.Err)
				}
				return
			}
			if out.Err == nil || out.Err.Code != contract.TaskOutcomeUnknown || !out.MayHaveExecuted || !strings.Contains(out.Err.Detail, tt.want) {
				t.Errorf("got %+v with error %+v, want outcome_unknown with %q", out, out.Err, tt.want)
			}
		})
	}
}
