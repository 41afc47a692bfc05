package requests

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/store"
)

// TestStore_MatchesModel lets processes that die at any point, agents that answer late, twice
// or never, callers who cancel and a store whose confirmations get lost do what
// they like to one request. What must hold is told by a world that sees what really
// happened: which agent did which work, and which result was taken.
func TestStore_MatchesModel(t *testing.T) {
	bucket := openBucket(t)
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		w := newWorld(t, bucket, fmt.Sprint("r-", n))
		t.Repeat(map[string]func(*rapid.T){
			"":         w.check,
			"drive":    w.drive,
			"give out": w.giveOut,
			"reply":    w.reply,
			"callback": w.callback,
			"die":      w.die,
			"zombie":   w.zombie,
			"cancel":   w.cancel,
		})
	})
}

// idempotent says which of the agents take a task twice for once.
var idempotent = map[string]bool{"quality": false, "second": true, "costs": true}

// process is one that drives the request, or believes it does.
type process struct {
	owner  string
	epoch  int
	out    []string // tasks it gave out and has no outcome of
	unsaid []string // tasks it could not put on record, and did not give out
}

// work is what an agent did about a task.
type work struct {
	agent string
	part  int
	done  int    // how often
	says  string // its result; "" = none yet
	fails bool   // its result is its own failure
}

type world struct {
	id     string
	plain  *Store // without mishaps
	faulty *Store
	nested bool // inside somebody else's change

	alive   process
	dead    []process
	tasks   map[string]*work
	taken   map[string]string // by task: the result the agent was told is taken
	ends    int               // ends that were confirmed
	final   string            // the record as it was when the end was first seen
	counter int
}

func newWorld(t *rapid.T, b *store.Bucket, id string) *world {
	w := &world{id: id, plain: NewStore(b), tasks: map[string]*work{}, taken: map[string]string{}, alive: process{owner: "p0"}}
	w.faulty = withFaults(b,
		func(string) error { // somebody else comes first
			if !w.nested && rapid.IntRange(0, 3).Draw(t, "interrupted") == 0 {
				w.nested = true
				defer func() { w.nested = false }()
				rapid.SampledFrom([]func(*rapid.T){w.callback, w.cancel, w.zombie, w.die}).Draw(t, "by")(t)
			}
			return nil
		},
		func(string) error { // the write happens, but its confirmation is lost
			if rapid.IntRange(0, 15).Draw(t, "confirmed") == 1 {
				return store.ErrUnavailable
			}
			return nil
		})
	r := accepted(id)
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

// as changes the request as a process does that believes to drive it.
func (w *world) as(t *rapid.T, p process, fn func(*Record) error) (*Record, error) {
	return w.faulty.Update(t.Context(), w.id, func(r *Record) error {
		if err := r.CheckOwner(p.owner, p.epoch); err != nil {
			return err
		}
		return fn(r)
	})
}

func (w *world) read(t *rapid.T) *Record {
	r, err := w.plain.Get(t.Context(), w.id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// drive does the next step of the request's life.
func (w *world) drive(t *rapid.T) {
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

// settleParts ends the request when every part has been tried to its end.
func (w *world) settleParts(r *Record) error {
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

func (w *world) noteEnd(t *rapid.T, err error) {
	if err == nil && w.read(t).State.Terminal() {
		w.ends++
	}
}

// giveOut sends a task of a part to any of its agents, whatever the record says of
// that, and what the process before this one left behind: again where that does no
// harm, else as nobody knows.
func (w *world) giveOut(t *rapid.T) {
	r := w.read(t)
	if r.State != StateRunning || r.Epoch != w.alive.epoch {
		return
	}
	part := rapid.IntRange(0, len(r.Parts)-1).Draw(t, "part")
	last := lastTask(r, part)
	if last != nil && last.State == TaskSent && !slices.Contains(w.alive.out, last.ID) {
		w.recover(t, last)
		return
	}
	w.send(t, part, rapid.SampledFrom(r.Parts[part].Agents).Draw(t, "agent"))
}

func (w *world) send(t *rapid.T, part int, agent string) {
	w.counter++
	id := fmt.Sprint("t", w.counter)
	_, err := w.as(t, w.alive, func(r *Record) error { return r.Send(Task{ID: id, AgentID: agent, Part: part, SentAt: now}) })
	if err != nil {
		w.alive.unsaid = append(w.alive.unsaid, id) // perhaps it is on record; it is not given out
		return
	}
	w.tasks[id] = &work{agent: agent, part: part}
	w.alive.out = append(w.alive.out, id)
	w.reach(t, id)
}

// reach is the network: the agent does the work, or never hears of it.
func (w *world) reach(t *rapid.T, id string) {
	if rapid.Bool().Draw(t, "reached") {
		k := w.tasks[id]
		k.done++
		k.says, k.fails = "did "+id, rapid.IntRange(0, 3).Draw(t, "own failure") == 0
	}
}

func (w *world) recover(t *rapid.T, task *Task) {
	switch {
	case slices.Contains(w.alive.unsaid, task.ID):
		_, _ = w.as(t, w.alive, func(r *Record) error { return r.Finish(task.ID, failed(contract.TaskAgentUnavailable)) })
	case idempotent[task.AgentID]:
		_, err := w.as(t, w.alive, func(r *Record) error { return r.Resend(task.ID, task.Attempts+1) })
		if err != nil {
			return
		}
		if w.tasks[task.ID] == nil { // on record by a process that died before it gave the task out
			w.tasks[task.ID] = &work{agent: task.AgentID, part: task.Part}
		}
		w.alive.out = append(w.alive.out, task.ID)
		w.reach(t, task.ID)
	default:
		_, _ = w.as(t, w.alive, func(r *Record) error {
			return r.Finish(task.ID, Outcome{Err: &contract.TaskError{Code: contract.TaskOutcomeUnknown}, Uncertain: true})
		})
	}
}

// reply is what the process hears on the connection of a task it gave out.
func (w *world) reply(t *rapid.T) {
	if len(w.alive.out) == 0 {
		return
	}
	id := rapid.SampledFrom(w.alive.out).Draw(t, "task")
	k := w.tasks[id]
	if k.says != "" && rapid.Bool().Draw(t, "later") {
		_, _ = w.as(t, w.alive, func(r *Record) error { return r.Wait(id) })
		return
	}
	out := failed(contract.TaskAgentUnavailable)
	if k.says != "" { // it did the work: either it says so, or the connection broke
		out = Outcome{Result: k.result()}
		if rapid.Bool().Draw(t, "broke") {
			out = Outcome{Err: &contract.TaskError{Code: contract.TaskOutcomeUnknown}, Uncertain: true}
		}
	}
	_, err := w.as(t, w.alive, func(r *Record) error { return r.Finish(id, out) })
	if err == nil && out.Result != nil {
		w.taken[id] = k.says
	}
	w.alive.out = slices.DeleteFunc(w.alive.out, func(other string) bool { return other == id && !errors.Is(err, store.ErrUnavailable) })
}

func (k *work) result() *contract.Result {
	res := result(k.says)
	if k.fails {
		res.Status = contract.ResultFailure
	}
	return res
}

// callback is an agent that reports: what it did, what it did not, what others did.
func (w *world) callback(t *rapid.T) {
	if len(w.tasks) == 0 {
		return
	}
	id := fmt.Sprint("t", rapid.IntRange(1, w.counter+1).Draw(t, "task"))
	k := w.tasks[id]
	if k == nil {
		k = &work{agent: "quality", says: "never asked"}
	}
	agent, res := k.agent, k.result()
	honest := k.says != ""
	switch rapid.IntRange(0, 7).Draw(t, "lie") {
	case 0:
		agent, honest = "stranger", false
	case 1:
		res, honest = result("something else"), false
	}
	if !honest && agent == k.agent && w.taken[id] == "" {
		return // a first result is the agent's word, whatever it is
	}
	var fresh bool
	_, err := w.faulty.Update(t.Context(), w.id, func(r *Record) (err error) {
		fresh, err = r.Deliver(id, agent, res)
		return err
	})
	switch {
	case err == nil && !honest:
		t.Fatalf("a result of task %s that is not its own was taken", id)
	case err == nil && fresh && w.taken[id] != "":
		t.Fatalf("the result of task %s is fresh, and was before", id)
	case err == nil:
		w.taken[id] = k.says
	}
}

// die is the end of a process, at this very point; another one takes over.
func (w *world) die(t *rapid.T) {
	w.dead = append(w.dead, w.alive)
	next := process{owner: fmt.Sprint("p", len(w.dead))}
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

// zombie is a process that was thought dead, and goes on.
func (w *world) zombie(t *rapid.T) {
	if len(w.dead) == 0 || w.read(t).State.Terminal() {
		return
	}
	p := rapid.SampledFrom(w.dead).Draw(t, "zombie")
	for _, e := range events {
		if _, err := w.as(t, p, e.do); !errors.Is(err, ErrNotOwner) && !w.read(t).State.Terminal() {
			t.Fatalf("%s by a process that was taken over: got error %v, want %v", e.event, err, ErrNotOwner)
		}
	}
}

func (w *world) cancel(t *rapid.T) {
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
