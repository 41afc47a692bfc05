package requests

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
)

func TestSnapshot_BeforeEnd(t *testing.T) {
	tests := []struct {
		name  string
		state State
		want  contract.Response
	}{
		{"accepted", StateAccepted, contract.Response{Status: contract.StatusAccepted, Tasks: []contract.TaskReport{}}},
		{"planned", StatePlanned, contract.Response{Status: contract.StatusAccepted, Decision: decision(), Tasks: []contract.TaskReport{}}},
		{"running", StateRunning, contract.Response{
			Status: contract.StatusRunning, Decision: decision(), Data: contract.ResponseData{Mode: contract.DataDispatch},
			Tasks: []contract.TaskReport{{TaskID: "t1", AgentID: "quality", SubtaskTitle: "Review", Status: contract.TaskRunning, Attempts: 1}},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := inState(t, tt.state)
			tt.want.RequestID, tt.want.TraceID = r.ID, r.TraceID
			if diff := cmp.Diff(&tt.want, r.Snapshot()); diff != "" {
				t.Errorf("snapshot (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSnapshot_IsResponseAfterEnd(t *testing.T) {
	r := inState(t, "completed")
	if got := r.Snapshot(); got != r.Response {
		t.Errorf("got %+v, want the stored response", got)
	}
}

func TestReports_ListTasks(t *testing.T) {
	r := inState(t, StateRunning)
	must(t, r.Send(Task{ID: "t2", AgentID: "costs", Part: 1, SentAt: now}))
	own := &contract.Result{Status: contract.ResultFailure, Explanations: []string{"no such file"}}
	must(t, r.Finish("t1", Outcome{Result: own, Attempts: 2, LatencyMS: 3}))
	must(t, r.Send(Task{ID: "t3", AgentID: "second", Part: 0, SentAt: now}))
	must(t, r.Finish("t2", failed(contract.TaskWasCancelled)))

	want := []contract.TaskReport{
		{
			TaskID: "t3", AgentID: "second", SubtaskTitle: "Review", Status: contract.TaskRunning, Attempts: 1,
			FailedOver: []contract.FailedAttempt{{
				TaskID: "t1", AgentID: "quality", Status: contract.TaskFailure, Attempts: 2, LatencyMS: 3, Explanations: []string{"no such file"},
			}},
		},
		{
			TaskID: "t2", AgentID: "costs", SubtaskTitle: "Count", Status: contract.TaskCancelled, Attempts: 1,
			Error: &contract.TaskError{Code: contract.TaskWasCancelled, Detail: "broke off"},
		},
	}
	if diff := cmp.Diff(want, r.Reports()); diff != "" {
		t.Errorf("reports (-want +got):\n%s", diff)
	}
}

func TestReports_Status(t *testing.T) {
	tests := []struct {
		name string
		did  func(*testing.T, *Record)
		want contract.TaskStatus
	}{
		{"sent", nothing, contract.TaskRunning},
		{"waiting", func(t *testing.T, r *Record) { must(t, r.Wait("t1")) }, contract.TaskRunning},
		{"done", did(Outcome{Result: result("x")}), contract.TaskSuccess},
		{"partial", did(Outcome{Result: &contract.Result{Status: contract.ResultPartial}}), contract.TaskPartial},
		{"failed, reported by the agent", did(Outcome{Result: &contract.Result{Status: contract.ResultFailure}}), contract.TaskFailure},
		{"failed", did(failed(contract.TaskBadResult)), contract.TaskFailed},
		{"outcome unknown", did(failed(contract.TaskOutcomeUnknown)), contract.TaskFailed},
		{"cancelled", did(failed(contract.TaskWasCancelled)), contract.TaskCancelled},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := inState(t, StateRunning)
			tt.did(t, r)
			if got := r.Reports()[0].Status; got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
