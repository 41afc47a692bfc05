package requests

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/caprouter/caprouter/contract"
)

// TestRecord_TakeoverModel runs random schedules of several processes that share one request: they
// crash, stall, are disconnected from the store between a read and its write, and judge each other.
// The membership presumes only processes dead that are dead or disconnected.
func TestRecord_TakeoverModel(t *testing.T) {
	const schedules, steps = 10_000, 40
	takeovers, ended := 0, 0
	for seed := range uint64(schedules) {
		w := newTakeoverWorld(t, seed)
		for range steps {
			w.step()
		}
		takeovers += w.takeovers
		if w.record().State.Terminal() {
			ended++
		}
	}
	if takeovers < schedules/20 || ended < schedules/20 {
		t.Errorf("got %d takeovers and %d ends, want more", takeovers, ended)
	}
}

// sharedProcess is one process. A stalled one does nothing; a disconnected one cannot reach the
// store, but its agents.
type sharedProcess struct {
	owner        string
	dead, cutOff bool
	gone         map[string]bool // processes that it presumes dead
	epoch        int             // of the request, if it owns it
	owns         bool
	write        *pendingWrite
	transmit     *Task // recorded as sent, and not sent yet
	sent         map[string]bool
}

// pendingWrite is a change of a record that was read before.
type pendingWrite struct {
	revision int
	data     []byte
	done     func()
}

type takeoverWorld struct {
	t         *testing.T
	seed      uint64
	rng       *rand.Rand
	data      []byte // of the record
	revision  int
	processes []*sharedProcess
	started   int
	executed  map[string]int // by task: how often its agent got it
	partDone  map[int]int    // by part: how many non-idempotent agents executed it
	ends      int
	takeovers int
}

func newTakeoverWorld(t *testing.T, seed uint64) *takeoverWorld {
	w := &takeoverWorld{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 1)), executed: map[string]int{}, partDone: map[int]int{}}
	for range 3 {
		w.start()
	}
	first := w.processes[0]
	rec := newRecord("r-1")
	rec.Owner, first.owns = first.owner, true
	w.store(rec)
	return w
}

func (w *takeoverWorld) start() {
	w.started++
	w.processes = append(w.processes, &sharedProcess{owner: fmt.Sprint("p", w.started), gone: map[string]bool{}, sent: map[string]bool{}})
}

func (w *takeoverWorld) fatalf(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("schedule %d: %s", w.seed, fmt.Sprintf(format, args...))
}

func (w *takeoverWorld) record() *Record {
	rec, err := decodeRecord("r-1", w.data)
	if err != nil {
		w.fatalf("the record cannot be read: %v", err)
	}
	return rec
}

func (w *takeoverWorld) store(rec *Record) {
	data, err := encodeRecord("r-1", rec)
	if err != nil {
		w.fatalf("the record cannot be written: %v", err)
	}
	w.data = data
	w.revision++
}

func (w *takeoverWorld) step() {
	p := w.processes[w.rng.IntN(len(w.processes))]
	switch n := w.rng.IntN(20); {
	case p.dead:
		if n == 0 && len(w.processes) < 5 {
			w.start()
		}
	case n == 0:
		p.dead = true
	case n == 1:
		p.cutOff = !p.cutOff
	case n < 6:
		w.judge(p)
	case n < 8:
		w.callback()
	case n == 8 && !p.cutOff:
		w.cancel(p)
	default:
		w.proceed(p)
	}
}

// judge updates the process's view of another one.
func (w *takeoverWorld) judge(p *sharedProcess) {
	other := w.processes[w.rng.IntN(len(w.processes))]
	if other != p && !p.cutOff {
		p.gone[other.owner] = other.dead || other.cutOff
	}
}

func (w *takeoverWorld) proceed(p *sharedProcess) {
	switch {
	case p.transmit != nil:
		w.execute(p.transmit)
		p.transmit = nil
	case p.cutOff:
	case p.write != nil:
		write := p.write
		p.write = nil
		if write.revision == w.revision {
			w.data = write.data
			w.revision++
			write.done()
		}
	default:
		w.decide(p)
	}
}

// execute is an agent that gets a task.
func (w *takeoverWorld) execute(task *Task) {
	w.executed[task.ID]++
	if idempotent[task.AgentID] {
		return
	}
	if w.executed[task.ID] > 1 {
		w.fatalf("%s, which is not idempotent, got task %s twice", task.AgentID, task.ID)
	}
	if w.partDone[task.Part]++; w.partDone[task.Part] > 1 {
		w.fatalf("part %d was given to agents that are not idempotent %d times", task.Part, w.partDone[task.Part])
	}
}

// decide reads the record and prepares its next change.
func (w *takeoverWorld) decide(p *sharedProcess) {
	rec := w.record()
	owner := rec.Owner
	var done func()
	var err error
	switch {
	case rec.State.Terminal():
		p.owns = false
		return
	case p.owns && rec.CheckOwner(p.owner, p.epoch) != nil:
		p.owns = false
		return
	case p.owns:
		done, err = w.advance(p, rec)
	case rec.IsAbandoned(func(owner string) bool { return !p.gone[owner] }):
		for _, other := range w.processes {
			if other.owner == owner && (other == p || !p.gone[owner]) {
				w.fatalf("%s takes the request of %s over, which it knows to be live", p.owner, owner)
			}
		}
		err = rec.TakeOver(p.owner, now)
		done = func() { p.owns, p.epoch = true, rec.Epoch; w.takeovers++ }
	default:
		return
	}
	if err != nil {
		w.fatalf("%s: %v", p.owner, err)
	}
	data, err := encodeRecord("r-1", rec)
	if err != nil {
		w.fatalf("%v", err)
	}
	p.write = &pendingWrite{w.revision, data, done}
}

// advance makes the next change of the owner.
func (w *takeoverWorld) advance(p *sharedProcess, rec *Record) (done func(), err error) {
	done = func() {}
	switch rec.State {
	case StateAccepted:
		return done, rec.Plan(decision(), parts(), nil)
	case StatePlanned:
		return done, rec.Start(p.owner, p.epoch)
	}
	open := false
	for part := range rec.Parts {
		task := lastTask(rec, part)
		switch {
		case task == nil:
			next := Task{ID: fmt.Sprintf("t%d-%d", part, w.revision), AgentID: rec.Parts[part].Agents[0], Part: part, SentAt: now}
			next.Idempotent = idempotent[next.AgentID]
			return func() { p.transmit, p.sent[next.ID] = &next, true }, rec.Send(next)
		case task.State == TaskDone:
		case p.sent[task.ID]: // it waits for the agent
			open = true
		case task.Idempotent:
			again := *task
			return func() { p.transmit, p.sent[again.ID] = &again, true }, rec.Resend(task.ID, task.Attempts+1)
		default:
			return done, rec.Finish(task.ID, Outcome{Err: &contract.TaskError{Code: contract.TaskOutcomeUnknown}, Uncertain: true})
		}
	}
	if open {
		return done, nil
	}
	return w.noteEnd, rec.End(contract.StatusCompleted, answer(contract.StatusCompleted), now)
}

func (w *takeoverWorld) noteEnd() {
	if w.ends++; w.ends > 1 {
		w.fatalf("the request ended %d times", w.ends)
	}
}

// callback is an agent that posts its result to any process.
func (w *takeoverWorld) callback() {
	rec := w.record()
	for i := range rec.Tasks {
		task := &rec.Tasks[i]
		if w.executed[task.ID] == 0 || task.State == TaskDone || rec.State.Terminal() {
			continue
		}
		if _, err := rec.Deliver(task.ID, task.AgentID, result("done")); err != nil {
			w.fatalf("deliver: %v", err)
		}
		w.store(rec)
		return
	}
}

// cancel ends the request at a process that need not own it.
func (w *takeoverWorld) cancel(p *sharedProcess) {
	rec := w.record()
	if rec.State.Terminal() || w.rng.IntN(4) > 0 {
		return
	}
	if err := rec.End(contract.StatusCancelled, answer(contract.StatusCancelled), now); err != nil {
		w.fatalf("cancel: %v", err)
	}
	if err := rec.AdoptEnd(p.owner, now); err != nil {
		w.fatalf("cancel: %v", err)
	}
	w.store(rec)
	w.noteEnd()
}
