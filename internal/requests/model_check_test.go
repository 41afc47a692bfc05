package requests

import (
	"slices"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// check holds what must be true at any time.
func (w *world) check(t *rapid.T) {
	r := w.read(t)
	if w.ends > 1 {
		t.Fatalf("the request ended %d times", w.ends)
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
			t.Fatalf("something happened after the end (-then +now):\n%s", diff)
		}
	} else if w.final != "" {
		t.Fatalf("the request is %s, and had ended", r.State)
	}
	for id, says := range w.taken {
		task := r.findTask(id)
		if task == nil || task.Result == nil || task.Result.Text() != says {
			t.Fatalf("the result of task %s was taken, and the record has %+v", id, task)
		}
		if r.Response != nil && !shows(r.Response, id) {
			t.Fatalf("the result of task %s was taken, and the answer does not show it", id)
		}
	}
	w.checkWork(t, len(r.Parts))
}

// checkWork holds what was done against what may be done.
func (w *world) checkWork(t *rapid.T, parts int) {
	for part := range parts {
		var did []string
		for id, k := range w.tasks {
			if k.part != part || k.done == 0 {
				continue
			}
			if k.done > 1 && !idempotent[k.agent] {
				t.Fatalf("%s, which is not idempotent, was given task %s %d times", k.agent, id, k.done)
			}
			if !k.fails {
				did = append(did, id)
			}
		}
		if len(did) > 1 {
			t.Fatalf("part %d was done by the tasks %v", part, did)
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
