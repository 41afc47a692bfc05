package rest

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/httpserver"
)

// fakeLeases has at most one task.
type fakeLeases struct {
	task   *contract.LeasedTask // nil = no task
	state  contract.LeaseState  // of renewed leases; "" = no lease
	got    contract.LeaseRequest
	agents []string
}

func (f *fakeLeases) Lease(_ context.Context, agentID string, req *contract.LeaseRequest, _ <-chan struct{}) (contract.LeasedTask, bool, error) {
	f.got, f.agents = *req, append(f.agents, agentID)
	if f.task == nil {
		return contract.LeasedTask{}, false, nil
	}
	return *f.task, true, nil
}

func (f *fakeLeases) Renew(_ context.Context, grant contract.TaskGrant) (contract.TaskLease, error) {
	if f.state == "" {
		return contract.TaskLease{}, &contract.Error{Code: contract.CodeNotFound, Message: "no lease"}
	}
	return contract.TaskLease{TaskID: grant.TaskID, State: f.state}, nil
}

// pullFleet permits every agent to pull.
type pullFleet struct{ emptyFleet }

func (pullFleet) CheckPull(context.Context, string, string, *contract.Caller) error { return nil }

func TestHandlePull_ReturnsTask(t *testing.T) {
	core := &fakeBackend{fleet: pullFleet{}}
	srv := startServer(t, httpserver.Config{}, core)
	if got := srv.post(t, "/api/v1/agents/word_counter/lease", ""); got.StatusCode != http.StatusNoContent || len(got.body) != 0 {
		t.Errorf("without a task: got %d %s, want 204", got.StatusCode, got.body)
	}
	core.leases.task = &contract.LeasedTask{
		Task:  contract.Task{TaskID: testTask, RequestID: testRequest, TraceID: strings.Repeat("a", 32), Domains: []string{"text"}, Inputs: map[string]json.RawMessage{}, Attempt: 1},
		Lease: contract.TaskLease{TaskID: testTask, State: contract.LeaseHeld}, Token: "t",
	}
	got := srv.post(t, "/api/v1/agents/word_counter/lease", `{"instance":"i","wait_s":30,"lease_ttl_s":60}`)
	if got.StatusCode != http.StatusOK || !strings.Contains(string(got.body), testTask) {
		t.Errorf("got %d %s, want the task", got.StatusCode, got.body)
	}
	if diff := cmp.Diff(contract.LeaseRequest{Instance: "i", WaitS: maxPullWaitS, LeaseTTLS: 60}, core.leases.got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	for body, pointer := range map[string]string{
		`{"wait_s":31}`: "/wait_s", `{"wait_s":-1}`: "/wait_s", `{"lease_ttl_s":1}`: "/lease_ttl_s", `{"lease_ttl_s":3601}`: "/lease_ttl_s", `{"wait":1}`: "/wait",
	} {
		got := srv.post(t, "/api/v1/agents/word_counter/lease", body)
		if diff := cmp.Diff([]string{pointer}, pointers(problemOf(t, got))); diff != "" || got.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%s: got %d %s", body, got.StatusCode, got.body)
		}
	}
	if got := srv.post(t, "/api/v1/agents/No-Agent/lease", ""); got.StatusCode != http.StatusNotFound {
		t.Errorf("invalid agent id: got %d, want 404", got.StatusCode)
	}
}

// Progress of a pulled task renews the lease; both responses contain a cancellation.
func TestHandleTaskHeartbeat_ReturnsLease(t *testing.T) {
	reports := 0
	core := &fakeBackend{
		lease:  1,
		leases: fakeLeases{state: contract.LeaseHeld},
		later:  fakeLater{progress: func(contract.TaskGrant, *contract.Progress) error { reports++; return nil }},
	}
	srv := startServer(t, httpserver.Config{}, core)
	for _, state := range []contract.LeaseState{contract.LeaseHeld, contract.LeaseCancelled} {
		core.leases.state = state
		for path, body := range map[string]string{"heartbeat": "", "progress": `{"message":"half"}`} {
			got := srv.post(t, "/api/v1/tasks/"+testTask+"/"+path, body, "Authorization", "Bearer "+testToken)
			if want := `{"task_id":"` + testTask + `","state":"` + string(state) + `"}`; got.StatusCode != http.StatusOK || string(got.body) != want {
				t.Errorf("%s: got %d %s, want %s", path, got.StatusCode, got.body, want)
			}
		}
	}
	if reports != 1 {
		t.Errorf("got %d reports of progress at the router, want the one of the task that is not cancelled", reports)
	}
	core.leases.state = ""
	if got := srv.post(t, "/api/v1/tasks/"+testTask+"/heartbeat", "", "Authorization", "Bearer "+testToken); got.StatusCode != http.StatusNotFound {
		t.Errorf("task that was not pulled: got %d, want 404", got.StatusCode)
	}
}
