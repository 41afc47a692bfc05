package requests

import (
	"slices"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// check verifies the invariants.
func (w *modelWorld) check(t *rapid.T) {
	r := w.read(t)
	if w.ends > 1 {
		t.Fatalf("got %d ends of the request, want 1", w.ends)
	}
	if r.State.Terminal() {
		data, err := strictjson.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if w.final == "" {
			w.final = string(data)
		}
		if diff := cmp.Diff(w.final, string(data)); diff != "" {
			t.Fatalf("got the record changed after the end (-then +now):\n%s", diff)
		}
	} else if w.final != "" {
		t.Fatalf("got state %s after the end", r.State)
	}
	for id, says := range w.accepted {
		task := r.FindTask(id)
		if task == nil || task.ResultHash == "" || r.Response == nil && (task.Result == nil || task.Result.Text() != says) {
			t.Fatalf("result of task %s was accepted: got %+v in the record", id, task)
		}
		if r.Response != nil && !shows(r.Response, id) {
			t.Fatalf("result of task %s was accepted: got no result in the response", id)
		}
	}
	w.checkWork(t, len(r.Parts))
}

// checkWork compares the executed tasks with the permitted ones.
func (w *modelWorld) checkWork(t *rapid.T, parts int) {
	for part := range parts {
		var did []string
		for id, k := range w.tasks {
			if k.part != part || k.done == 0 {
				continue
			}
			if k.done > 1 && !idempotent[k.agent] {
				t.Fatalf("%s, which is not idempotent, executed task %s %d times", k.agent, id, k.done)
			}
			if !k.fails {
				did = append(did, id)
			}
		}
		if len(did) > 1 {
			t.Fatalf("got part %d executed by the tasks %v, want one", part, did)
		}
	}
}

func shows(resp *contract.Response, task string) bool {
	for _, report := range resp.Tasks {
		if report.TaskID == task && report.Status != contract.TaskRunning {
			return true
		}
		for _, try := range report.FailedOver {
			if try.TaskID == task {
				return true
			}
		}
	}
	return false
}

func lastTask(r *Record, part int) *Task {
	for i := len(r.Tasks) - 1; i >= 0; i-- {
		if r.Tasks[i].Part == part {
			return &r.Tasks[i]
		}
	}
	return nil
}

func untried(r *Record, part int) []string {
	return slices.DeleteFunc(slices.Clone(r.Parts[part].Agents), func(agent string) bool {
		return slices.ContainsFunc(r.Tasks, func(t Task) bool { return t.Part == part && t.AgentID == agent })
	})
}
