package requests

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

const (
	testID = "0197a000-0000-7000-8000-000000000001"
	owner  = "router-1"
)

// now is the time of all events in these tests.
var now = time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)

// newRecord returns a new record.
func newRecord(id string) *Record {
	return &Record{
		ID: id, TraceID: "4bf92f3577b34da6a3ce929d0e0e4736",
		Caller: contract.Caller{Subject: "ana", Tenant: "acme", Scopes: []string{"route:submit"}},
		Request: contract.Request{
			RequestID: id, TraceID: "4bf92f3577b34da6a3ce929d0e0e4736",
			Content: contract.Content{Prompt: "Revise este código", Inputs: map[string]json.RawMessage{"repo": json.RawMessage(`"app"`)}},
			Options: contract.Options{Mode: contract.ModeAsync},
		},
		CreatedAt: now, Deadline: now.Add(10 * time.Minute), State: StateAccepted,
	}
}

// decision and parts are the routing decision: part 0 has a standby agent.
func decision() *contract.Decision {
	return &contract.Decision{
		DecisionID: "d1",
		Classification: contract.Classification{
			Intent: "code_review", Domains: []string{"python"}, Confidence: 0.9, Source: contract.SourceLexical,
			Subtasks: []contract.Subtask{{Title: "Review"}, {Title: "Count"}},
		},
		Candidates: []contract.Candidate{{AgentID: "quality", Score: 0.8, Eligible: true, Role: contract.RoleChosen}},
		Chosen:     []string{"quality", "costs"}, Standby: []string{"second"}, RegistryVersion: "sha256:1",
	}
}

func parts() []Part {
	return []Part{
		{Subtask: 0, Title: "Review", Intent: "code_review", Domains: []string{"python"}, Agents: []string{"quality", "second"}},
		{Subtask: 1, Title: "Count", Intent: "cost_analysis", Domains: []string{"azure"}, Agents: []string{"costs"}},
	}
}

// inState returns a record that reached the state by the fewest transitions; a running one has the
// task "t1" of part 0, sent.
func inState(t *testing.T, s State) *Record {
	t.Helper()
	r := newRecord(testID)
	if s == StateAccepted {
		return r
	}
	must(t, r.Plan(decision(), parts(), nil))
	if s == StatePlanned {
		return r
	}
	must(t, r.Start(owner, 0))
	must(t, r.Send(Task{ID: "t1", AgentID: "quality", Part: 0, SentAt: now}))
	if s == StateRunning {
		return r
	}
	must(t, r.End(contract.Status(s), answer(contract.Status(s)), now))
	return r
}

func answer(s contract.Status) *contract.Response {
	return &contract.Response{RequestID: testID, Status: s, Tasks: []contract.TaskReport{}, Omitted: []contract.Omitted{}}
}

func result(text string) *contract.Result {
	data, err := strictjson.Marshal(text)
	if err != nil {
		panic(err)
	}
	return &contract.Result{Status: contract.ResultSuccess, Data: map[string]json.RawMessage{"answer": data}}
}

func failed(code contract.TaskCode) Outcome {
	return Outcome{Err: &contract.TaskError{Code: code, Detail: "broke off"}, Attempts: 1}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// encodedText returns the record as it is stored.
func encodedText(t *testing.T, r *Record) string {
	t.Helper()
	data, err := strictjson.Marshal(r)
	must(t, err)
	return string(data)
}

// checkUnchanged fails if the record differs from before.
func checkUnchanged(t *testing.T, r *Record, before string) {
	t.Helper()
	if diff := cmp.Diff(before, encodedText(t, r)); diff != "" {
		t.Errorf("got the record changed by a rejected event (-want +got):\n%s", diff)
	}
}
