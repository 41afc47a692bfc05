package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/fakellm"
)

// A task whose run waits for an approval at its deadline was not done, and the error names the
// step and what to do.
func TestOrchestrations_TaskIsNotApprovedInTime(t *testing.T) {
	model := startModel(t, config.ProviderGemini, operatorsKey)
	s := newDoerServer(t, model)
	ana := s.of("ana", doerScopes)
	for _, tt := range []struct {
		name, steps string
		calls       int64
		want        []string
	}{
		{"first step", stepOf("a", "ask", `{}`, ""), 0, []string{"so it was not called"}},
		{"later step", stepOf("b", "add", `{"n":1}`, "") + "," + stepOf("a", "ask", `{}`, `,"depends_on":["b"]`), 1, []string{"so it was not called", "made 1 call"}},
	} {
		for _, mode := range []string{"sync", "async"} {
			t.Run(tt.name+"/"+mode, func(t *testing.T) {
				model.setReplies(fakellm.Text(`{"steps":[` + tt.steps + `]}`))
				before := s.calls.Load()
				resp := s.routeTask(t, ana, "count the numbers", mode, 1500)
				task := &resp.Tasks[0]
				if task.Error == nil || task.Error.Code != contract.TaskDeadlineExceeded {
					t.Fatalf("got %+v with error %+v, want deadline_exceeded", task, task.Error)
				}
				for _, text := range append(tt.want, `step "a"`, "counter.ask", "ask_a_person", "approval", "async", "timeout_ms", "/api/v1/orchestrations") {
					if !strings.Contains(task.Error.Detail, text) {
						t.Errorf("got %q, want it to contain %q", task.Error.Detail, text)
					}
				}
				_, run := s.send(t, "GET", "/api/v1/orchestrations/"+task.TaskID, ana, "")
				if run.Reason != contract.ReasonCancelled || s.calls.Load()-before != tt.calls {
					t.Errorf("got the run %s (%s) after %d calls, want it cancelled after %d", run.Status, run.Reason, s.calls.Load()-before, tt.calls)
				}
			})
		}
	}
}

// While a task waits for an approval, the events of its request contain the gate. After the
// approval the task continues.
func TestOrchestrations_ApproveWhileTaskWaits(t *testing.T) {
	model := startModel(t, config.ProviderGemini, operatorsKey)
	s := newDoerServer(t, model)
	ana, bob := s.of("ana", doerScopes), s.of("bob", "orchestrate:approve")
	for decision, want := range map[string]contract.Status{"approve": contract.StatusCompleted, "deny": contract.StatusFailed} {
		t.Run(decision, func(t *testing.T) {
			model.setReplies(fakellm.Text(`{"steps":[` + stepOf("a", "ask", `{}`, "") + `]}`))
			got := s.do(call{method: "POST", path: "/api/v1/route", token: ana, body: `{"content":{"prompt":"count the numbers"},"options":{"mode":"async","timeout_ms":120000}}`})
			var resp contract.Response
			if err := json.Unmarshal(got.body, &resp); err != nil || got.status != http.StatusAccepted {
				t.Fatalf("got %d %s", got.status, got.body)
			}
			path := "/api/v1/requests/" + resp.RequestID
			testkit.Eventually(t, "the run waits", func() bool {
				got := s.do(call{method: "GET", path: path, token: ana})
				if json.Unmarshal(got.body, &resp) != nil || len(resp.Tasks) == 0 {
					return false
				}
				_, run := s.send(t, "GET", "/api/v1/orchestrations/"+resp.Tasks[0].TaskID, ana, "")
				return run.Status == contract.OrchestrationWaiting
			})
			id := resp.Tasks[0].TaskID
			status, _ := s.send(t, "POST", "/api/v1/orchestrations/"+id+"/approve", bob, fmt.Sprintf(`{"step":"a","decision":%q}`, decision))
			if status != http.StatusOK {
				t.Fatalf("got %d, want the decision accepted", status)
			}
			events := testkit.ReadSSE(t, string(s.do(call{method: "GET", path: path + "/events", token: ana}).body))
			var progress, last contract.Event
			for _, ev := range events {
				if ev.Name == string(contract.EventTaskProgress) {
					if err := json.Unmarshal([]byte(ev.Data), &progress); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := json.Unmarshal([]byte(events[len(events)-1].Data), &last); err != nil || last.Response == nil || last.Response.Status != want {
				t.Errorf("got the end %+v, error %v, want %s", last.Response, err, want)
			}
			var gate contract.ApprovalGate
			if p := progress.Progress; p == nil || json.Unmarshal(p.Data["gate"], &gate) != nil || string(p.Data["orchestration_id"]) != fmt.Sprintf("%q", id) {
				t.Fatalf("got progress %+v, want the gate of the run %s", p, id)
			}
			if gate.StepID != "a" || gate.Action != "counter.ask" || gate.Rule != "ask_a_person" || !strings.Contains(progress.Progress.Message, "approval") || progress.Task.TaskID != id {
				t.Errorf("got gate %+v of task %+v with %q, want the call that waits for an approval", gate, progress.Task, progress.Progress.Message)
			}
		})
	}
}

// A task that waits for an approval continues after a restart: it finds its run.
func TestOrchestrations_TaskWaitsAcrossRestart(t *testing.T) {
	t.Parallel()
	for name, entry := range map[string]string{
		"not idempotent": doerEntry,
		"idempotent":     strings.Replace(doerEntry, "protocol: orchestrator", "protocol: orchestrator, idempotent: true", 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testTaskWaitsAcrossRestart(t, entry)
		})
	}
}

func testTaskWaitsAcrossRestart(t *testing.T, entry string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	model := startModel(t, config.ProviderGemini, operatorsKey)
	var resp contract.Response
	run := func(name string, work func(t *testing.T, s *runServer)) {
		t.Run(name, func(t *testing.T) {
			work(t, newDoerServer(t, model, func(c *config.Config) {
				c.DataDir, c.Registry.File = dir, writeFile(t, "capabilities.yaml", entry)
			}))
		})
	}
	state := func(s *runServer) {
		got := s.do(call{method: "GET", path: "/api/v1/requests/" + resp.RequestID, token: s.of("ana", doerScopes)})
		if err := json.Unmarshal(got.body, &resp); err != nil {
			t.Errorf("got %d %s", got.status, got.body)
		}
	}
	waits := func(t *testing.T, s *runServer) bool {
		state(s)
		if len(resp.Tasks) == 0 {
			return false
		}
		_, run := s.send(t, "GET", "/api/v1/orchestrations/"+resp.Tasks[0].TaskID, s.of("ana", doerScopes), "")
		return run.Status == contract.OrchestrationWaiting
	}
	run("before", func(t *testing.T, s *runServer) {
		model.setReplies(fakellm.Text(`{"steps":[` + stepOf("a", "ask", `{}`, "") + `]}`))
		got := s.do(call{method: "POST", path: "/api/v1/route", token: s.of("ana", doerScopes), body: `{"content":{"prompt":"count the numbers"},"options":{"mode":"async","timeout_ms":120000}}`})
		if err := json.Unmarshal(got.body, &resp); err != nil || got.status != http.StatusAccepted {
			t.Fatalf("got %d %s", got.status, got.body)
		}
		testkit.Eventually(t, "the run waits", func() bool { return waits(t, s) })
	})
	run("after", func(t *testing.T, s *runServer) {
		if !waits(t, s) || resp.Status != contract.StatusRunning {
			t.Fatalf("got the request %s with tasks %+v, want it running", resp.Status, resp.Tasks)
		}
		path := "/api/v1/orchestrations/" + resp.Tasks[0].TaskID + "/approve"
		if status, _ := s.send(t, "POST", path, s.of("bob", "orchestrate:approve"), `{"step":"a","decision":"approve"}`); status != http.StatusOK {
			t.Fatalf("got %d, want the approval accepted", status)
		}
		testkit.Eventually(t, "the request has ended", func() bool { state(s); return resp.Status.Terminal() })
		if resp.Status != contract.StatusCompleted || s.calls.Load() != 1 {
			t.Errorf("got %s after %d calls, want completed after 1: %+v", resp.Status, s.calls.Load(), resp.Tasks)
		}
	})
}
