package requests

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/store"
)

// TestStore_MatchesModel runs random operations on one request: processes that are killed at any
// time, agents that answer late, twice or not at all, callers that cancel, and a store that loses
// confirmations. The model records the actual events, that is, which agent did which work and which
// result was accepted, and checks the invariants.
func TestStore_MatchesModel(t *testing.T) {
	bucket := openBucket(t)
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		w := newWorld(t, bucket, fmt.Sprint("r-", n))
		t.Repeat(map[string]func(*rapid.T){
			"":         w.check,
			"drive":    w.drive,
			"give out": w.sendTask,
			"reply":    w.reply,
			"callback": w.callback,
			"die":      w.killProcess,
			"zombie":   w.zombie,
			"cancel":   w.cancel,
		})
	})
}

// idempotent contains the agents that execute a repeated task once.
var idempotent = map[string]bool{"quality": false, "second": true, "costs": true}

// modelProcess is a process that owns the request, or assumes that it does.
type modelProcess struct {
	owner      string
	epoch      int
	sent       []string // sent tasks without an outcome
	unrecorded []string // tasks that could not be recorded and were not sent
}

// agentWork is the work of an agent on one task.
type agentWork struct {
	agent  string
	part   int
	done   int    // number of executions
	output string // its result; "" = no result yet
	fails  bool   // its result is a failure
}

type modelWorld struct {
	id     string
	plain  *Store // without faults
	faulty *Store
	nested bool // during another change

	alive    modelProcess
	dead     []modelProcess
	tasks    map[string]*agentWork
	accepted map[string]string // by task: the result that was acknowledged to the agent
	ends     int               // confirmed ends
	final    string            // the record when the end was first seen
	counter  int
}

func newWorld(t *rapid.T, b *store.Bucket, id string) *modelWorld {
	w := &modelWorld{id: id, plain: NewStore(b, quota.Unlimited()), tasks: map[string]*agentWork{}, accepted: map[string]string{}, alive: modelProcess{owner: "p0"}}
	w.faulty = withFaults(b,
		func(string) error { // another writer is first
			if !w.nested && rapid.IntRange(0, 3).Draw(t, "interrupted") == 0 {
				w.nested = true
				defer func() { w.nested = false }()
				rapid.SampledFrom([]func(*rapid.T){w.callback, w.cancel, w.zombie, w.killProcess}).Draw(t, "by")(t)
			}
			return nil
		},
		func(string) error { // the write succeeds, but its confirmation is lost
			if rapid.IntRange(0, 15).Draw(t, "confirmed") == 1 {
				return store.ErrUnavailable
			}
			return nil
		})
	r := newRecord(id)
	r.Owner = w.alive.owner
	err := w.plain.Create(t.Context(), r)
	if err == nil && rapid.IntRange(0, 3).Draw(t, "running") > 0 {
		_, err = w.plain.Update(t.Context(), id, func(r *Record) error {
			return errors.Join(r.Plan(decision(), parts(), nil), r.Start(r.Owner, 0))
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// as changes the request like a process that assumes to own it.
func (w *modelWorld) as(t *rapid.T, p modelProcess, fn func(*Record) error) (*Record, error) {
	return w.faulty.Update(t.Context(), w.id, func(r *Record) error {
		if err := r.CheckOwner(p.owner, p.epoch); err != nil {
			return err
		}
		return fn(r)
	})
}

func (w *modelWorld) read(t *rapid.T) *Record {
	r, err := w.plain.Get(t.Context(), w.id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// drive executes the next step of the request.
func (w *modelWorld) drive(t *rapid.T) {
	p := w.alive
	_, err := w.as(t, p, func(r *Record) error {
		switch r.State {
		case StateAccepted:
			return r.Plan(decision(), parts(), nil)
		case StatePlanned:
			return r.Start(p.owner, p.epoch)
		}
		return w.settleParts(r)
	})
	w.noteEnd(t, err)
}

// settleParts ends the request if every part has ended.
func (w *modelWorld) settleParts(r *Record) error {
	for part := range r.Parts {
		last := lastTask(r, part)
		if last == nil || last.State != TaskDone || !last.hasDelivered() && !last.Uncertain && len(untried(r, part)) > 0 {
			return errNotYet
		}
	}
	resp := answer(contract.StatusCompleted)
	resp.Tasks = r.Reports()
	return r.End(contract.StatusCompleted, resp, now)
}

var errNotYet = errors.New("not yet")

func (w *modelWorld) noteEnd(t *rapid.T, err error) {
	if err == nil && w.read(t).State.Terminal() {
		w.ends++
	}
}

// sendTask sends a task of a part to any of its agents, for any state of the record, and handles
// the tasks of the previous process: it resends a task if its agent is idempotent, and otherwise
// records an unknown outcome.
func (w *modelWorld) sendTask(t *rapid.T) {
	r := w.read(t)
	if r.State != StateRunning || r.Epoch != w.alive.epoch {
		return
	}
	part := rapid.IntRange(0, len(r.Parts)-1).Draw(t, "part")
	last := lastTask(r, part)
	if last != nil && last.State == TaskSent && !slices.Contains(w.alive.sent, last.ID) {
		w.recover(t, last)
		return
	}
	w.send(t, part, rapid.SampledFrom(r.Parts[part].Agents).Draw(t, "agent"))
}

func (w *modelWorld) send(t *rapid.T, part int, agent string) {
	w.counter++
	id := fmt.Sprint("t", w.counter)
	_, err := w.as(t, w.alive, func(r *Record) error { return r.Send(Task{ID: id, AgentID: agent, Part: part, SentAt: now}) })
	if err != nil {
		w.alive.unrecorded = append(w.alive.unrecorded, id) // it may be recorded; it is not sent
		return
	}
	w.tasks[id] = &agentWork{agent: agent, part: part}
	w.alive.sent = append(w.alive.sent, id)
	w.deliverToAgent(t, id)
}

// deliverToAgent simulates the network: the agent does the work, or does not receive it.
func (w *modelWorld) deliverToAgent(t *rapid.T, id string) {
	if rapid.Bool().Draw(t, "reached") {
		k := w.tasks[id]
		k.done++
		k.output, k.fails = "did "+id, rapid.IntRange(0, 3).Draw(t, "own failure") == 0
	}
}

func (w *modelWorld) recover(t *rapid.T, task *Task) {
	switch {
	case slices.Contains(w.alive.unrecorded, task.ID):
		_, _ = w.as(t, w.alive, func(r *Record) error { return r.Finish(task.ID, failed(contract.TaskAgentUnavailable)) })
	case idempotent[task.AgentID]:
		_, err := w.as(t, w.alive, func(r *Record) error { return r.Resend(task.ID, task.Attempts+1) })
		if err != nil {
			return
		}
		if w.tasks[task.ID] == nil { // recorded by a process that was killed before it sent the task
			w.tasks[task.ID] = &agentWork{agent: task.AgentID, part: task.Part}
		}
		w.alive.sent = append(w.alive.sent, task.ID)
		w.deliverToAgent(t, task.ID)
	default:
		_, _ = w.as(t, w.alive, func(r *Record) error {
			return r.Finish(task.ID, Outcome{Err: &contract.TaskError{Code: contract.TaskOutcomeUnknown}, Uncertain: true})
		})
	}
}

// reply is the response on the connection of a task that the process sent.
func (w *modelWorld) reply(t *rapid.T) {
	if len(w.alive.sent) == 0 {
		return
	}
	id := rapid.SampledFrom(w.alive.sent).Draw(t, "task")
	k := w.tasks[id]
	if k.output != "" && rapid.Bool().Draw(t, "later") {
		_, _ = w.as(t, w.alive, func(r *Record) error { return r.Wait(id) })
		return
	}
	out := failed(contract.TaskAgentUnavailable)
	if k.output != "" { // the agent did the work: its result arrives, or the connection breaks
		out = Outcome{Result: k.result()}
		if rapid.Bool().Draw(t, "broke") {
			out = Outcome{Err: &contract.TaskError{Code: contract.TaskOutcomeUnknown}, Uncertain: true}
		}
	}
	_, err := w.as(t, w.alive, func(r *Record) error { return r.Finish(id, out) })
	if err == nil && out.Result != nil {
		w.accepted[id] = k.output
	}
	w.alive.sent = slices.DeleteFunc(w.alive.sent, func(other string) bool { return other == id && !errors.Is(err, store.ErrUnavailable) })
}

func (k *agentWork) result() *contract.Result {
	res := result(k.output)
	if k.fails {
		res.Status = contract.ResultFailure
	}
	return res
}

// callback is an agent that posts a result: its own, that of another task, or a forged one.
func (w *modelWorld) callback(t *rapid.T) {
	if len(w.tasks) == 0 {
		return
	}
	id := fmt.Sprint("t", rapid.IntRange(1, w.counter+1).Draw(t, "task"))
	k := w.tasks[id]
	if k == nil {
		k = &agentWork{agent: "quality", output: "never asked"}
	}
	agent, res := k.agent, k.result()
	honest := k.output != ""
	switch rapid.IntRange(0, 7).Draw(t, "lie") {
	case 0:
		agent, honest = "stranger", false
	case 1:
		res, honest = result("something else"), false
	}
	if !honest && agent == k.agent && w.accepted[id] == "" {
		return // the first result is final
	}
	var fresh bool
	_, err := w.faulty.Update(t.Context(), w.id, func(r *Record) (err error) {
		fresh, err = r.Deliver(id, agent, res)
		return err
	})
	switch {
	case err == nil && !honest:
		t.Fatalf("got the result of another task accepted for task %s", id)
	case err == nil && fresh && w.accepted[id] != "":
		t.Fatalf("got the result of task %s new twice", id)
	case err == nil:
		w.accepted[id] = k.output
	}
}

// killProcess ends a process at this point; another one resumes the request.
func (w *modelWorld) killProcess(t *rapid.T) {
	w.dead = append(w.dead, w.alive)
	next := modelProcess{owner: fmt.Sprint("p", len(w.dead))}
	r, err := w.plain.Update(t.Context(), w.id, func(r *Record) error { return r.TakeOver(next.owner, now) })
	switch {
	case errors.Is(err, ErrEnded):
		next.epoch = r.Epoch
	case err != nil:
		t.Fatal(err)
	default:
		next.epoch = r.Epoch
	}
	w.alive = next
}

// zombie is a process that continues after it was replaced.
func (w *modelWorld) zombie(t *rapid.T) {
	if len(w.dead) == 0 || w.read(t).State.Terminal() {
		return
	}
	p := rapid.SampledFrom(w.dead).Draw(t, "zombie")
	for _, e := range events {
		if _, err := w.as(t, p, e.do); !errors.Is(err, ErrNotOwner) && !w.read(t).State.Terminal() {
			t.Fatalf("%s by a replaced process: got error %v, want %v", e.event, err, ErrNotOwner)
		}
	}
}

func (w *modelWorld) cancel(t *rapid.T) {
	if rapid.IntRange(0, 9).Draw(t, "really") != 0 {
		return
	}
	_, err := w.plain.Update(t.Context(), w.id, func(r *Record) error {
		resp := answer(contract.StatusCancelled)
		resp.Tasks = r.Reports()
		return r.End(contract.StatusCancelled, resp, now)
	})
	if err == nil {
		w.ends++
	}
}
