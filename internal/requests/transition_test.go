package requests

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
)

// terminals lists all states that end a request.
var terminals = []State{"completed", "partial", "failed", "clarification_required", "unsupported", "proposed", "cancelled"}

// events lists every event, in a form that only the state can reject.
var events = []struct {
	event event
	do    func(*Record) error
}{
	{eventPlan, func(r *Record) error { return r.Plan(decision(), parts(), nil) }},
	{eventStart, func(r *Record) error { return r.Start(owner, r.Epoch) }},
	{eventSend, func(r *Record) error { return r.Send(Task{ID: "t2", AgentID: "costs", Part: 1, SentAt: now}) }},
	{eventResend, func(r *Record) error { return r.Resend("t1", 2) }},
	{eventWait, func(r *Record) error { return r.Wait("t1") }},
	{eventFinish, func(r *Record) error { return r.Finish("t1", Outcome{Result: result("x"), Attempts: 1}) }},
	{eventTakeOver, func(r *Record) error { return r.TakeOver("router-2", now) }},
	{eventEnd, func(r *Record) error { return r.End(contract.StatusFailed, answer(contract.StatusFailed), now) }},
	{eventDeliver, func(r *Record) error { _, err := r.Deliver("t1", "quality", result("x")); return err }},
}

// TestTransitions_FollowStateTable tries every event in every state.
func TestTransitions_FollowStateTable(t *testing.T) {
	may := map[State][]event{
		StateAccepted: {eventPlan, eventTakeOver, eventEnd},
		StatePlanned:  {eventStart, eventTakeOver, eventEnd},
		StateRunning:  {eventSend, eventResend, eventWait, eventFinish, eventDeliver, eventTakeOver, eventEnd},
	}
	states := append([]State{StateAccepted, StatePlanned, StateRunning}, terminals...)
	for _, s := range states {
		for _, e := range events {
			t.Run(string(s)+" "+string(e.event), func(t *testing.T) {
				r := inState(t, s)
				before := encodedText(t, r)
				var want error
				switch {
				case slices.Contains(may[s], e.event):
				case s.Terminal():
					want = ErrEnded
				case e.event == eventDeliver:
					want = ErrUnknownTask // the request has no task before it runs
				default:
					want = ErrTransition
				}
				got := e.do(r)
				if !errors.Is(got, want) {
					t.Fatalf("got error %v, want %v", got, want)
				}
				if want != nil {
					checkUnchanged(t, r, before)
				} else if encodedText(t, r) == before {
					t.Error("got no change of the record by the event")
				}
			})
		}
	}
}

func TestState_Terminal(t *testing.T) {
	for _, s := range terminals {
		if !s.Terminal() {
			t.Errorf("%s: got not terminal, want terminal", s)
		}
	}
	for _, s := range []State{"", StateAccepted, StatePlanned, StateRunning, "done"} {
		if s.Terminal() {
			t.Errorf("%q: got terminal, want not terminal", s)
		}
	}
}

func TestTransitions_ChangeState(t *testing.T) {
	r := inState(t, StateAccepted)
	must(t, r.Plan(decision(), parts(), []contract.Omitted{{Subtask: 2, Reason: "no_match"}}))
	if r.State != StatePlanned || r.Decision.DecisionID != "d1" || len(r.Parts) != 2 || len(r.Omitted) != 1 {
		t.Errorf("after Plan: got %s with %d parts, want planned with 2", r.State, len(r.Parts))
	}
	must(t, r.Start(owner, 0))
	if r.State != StateRunning || r.Owner != owner {
		t.Errorf("after Start: got %s of %q, want running of %q", r.State, r.Owner, owner)
	}
	must(t, r.TakeOver("router-2", now))
	if r.State != StateRunning || r.Owner != "router-2" || r.Epoch != 1 || !r.TakenOverAt.Equal(now) {
		t.Errorf("after TakeOver: got %s of %q in epoch %d, want running of router-2 in 1", r.State, r.Owner, r.Epoch)
	}
	must(t, r.End(contract.StatusPartial, answer(contract.StatusPartial), now.In(time.FixedZone("", 3600))))
	if r.State != "partial" || r.EndedAt != now || r.Response == nil {
		t.Errorf("after End: got %s at %s, want partial at %s", r.State, r.EndedAt, now)
	}
}

func TestCheckOwner_RejectsOtherOwnerOrEpoch(t *testing.T) {
	tests := []struct {
		name, owner string
		epoch       int
		want        error
	}{
		{"owner", "router-2", 1, nil},
		{"previous owner", owner, 0, ErrNotOwner},
		{"previous owner in this epoch", owner, 1, ErrNotOwner},
		{"owner with an old epoch", "router-2", 0, ErrNotOwner},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := inState(t, StatePlanned)
			r.Owner = owner
			must(t, r.TakeOver("router-2", now))
			before := encodedText(t, r)
			if got := r.CheckOwner(tt.owner, tt.epoch); !errors.Is(got, tt.want) {
				t.Errorf("CheckOwner: got %v, want %v", got, tt.want)
			}
			if got := r.Start(tt.owner, tt.epoch); !errors.Is(got, tt.want) {
				t.Errorf("Start: got %v, want %v", got, tt.want)
			}
			if tt.want != nil {
				checkUnchanged(t, r, before)
			}
		})
	}
}

func TestSend_ChecksPartAndAgent(t *testing.T) {
	tests := []struct {
		name string
		did  func(*testing.T, *Record) // applied to the task t1 of part 0
		task Task
		want string // part of the error; "" = sent
	}{
		{"other part", nothing, Task{ID: "t2", AgentID: "costs", Part: 1}, ""},
		{"no id", nothing, Task{AgentID: "costs", Part: 1}, "no id"},
		{"same id", nothing, Task{ID: "t1", AgentID: "costs", Part: 1}, "sent before"},
		{"unknown part", nothing, Task{ID: "t2", AgentID: "costs", Part: 2}, "unknown part 2"},
		{"negative part", nothing, Task{ID: "t2", AgentID: "costs", Part: -1}, "unknown part -1"},
		{"agent not chosen", nothing, Task{ID: "t2", AgentID: "quality", Part: 1}, "not chosen"},
		{"while a task is sent", nothing, Task{ID: "t2", AgentID: "second"}, "is open at"},
		{"while a task waits", func(t *testing.T, r *Record) { must(t, r.Wait("t1")) }, Task{ID: "t2", AgentID: "second"}, "is open at"},
		{"after a failure to reach it", did(failed(contract.TaskAgentUnavailable)), Task{ID: "t2", AgentID: "second"}, ""},
		{"after its own failure", did(Outcome{Result: &contract.Result{Status: contract.ResultFailure}}), Task{ID: "t2", AgentID: "second"}, ""},
		{"after a result", did(Outcome{Result: result("x")}), Task{ID: "t2", AgentID: "second"}, "has done this part"},
		{"after a partial result", did(Outcome{Result: &contract.Result{Status: contract.ResultPartial}}), Task{ID: "t2", AgentID: "second"}, "has done this part"},
		{
			"after an unknown outcome", did(Outcome{Err: &contract.TaskError{Code: contract.TaskOutcomeUnknown}, Uncertain: true}),
			Task{ID: "t2", AgentID: "second"},
			"or may have done it",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := inState(t, StateRunning)
			tt.did(t, r)
			tt.task.SentAt = now
			before := encodedText(t, r)
			err := r.Send(tt.task)
			if tt.want == "" {
				must(t, err)
				want := Task{ID: tt.task.ID, AgentID: tt.task.AgentID, Part: tt.task.Part, State: TaskSent, SentAt: now, Attempts: 1}
				if diff := cmp.Diff(want, r.Tasks[len(r.Tasks)-1]); diff != "" {
					t.Errorf("task (-want +got):\n%s", diff)
				}
				return
			}
			if !errors.Is(err, ErrTransition) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want %v with %q", err, ErrTransition, tt.want)
			}
			checkUnchanged(t, r, before)
		})
	}
}

func nothing(*testing.T, *Record) {}

func did(out Outcome) func(*testing.T, *Record) {
	return func(t *testing.T, r *Record) { must(t, r.Finish("t1", out)) }
}

func TestResend_ChecksAttempt(t *testing.T) {
	tests := []struct {
		name    string
		did     func(*testing.T, *Record)
		task    string
		attempt int
		want    error
	}{
		{"next attempt", nothing, "t1", 2, nil},
		{"later attempt", nothing, "t1", 5, nil},
		{"same attempt", nothing, "t1", 1, ErrTransition},
		{"unknown task", nothing, "t9", 2, ErrUnknownTask},
		{"accepted task", func(t *testing.T, r *Record) { must(t, r.Wait("t1")) }, "t1", 2, ErrTransition},
		{"ended task", did(failed(contract.TaskBadResult)), "t1", 2, ErrTransition},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := inState(t, StateRunning)
			tt.did(t, r)
			before := encodedText(t, r)
			if err := r.Resend(tt.task, tt.attempt); !errors.Is(err, tt.want) {
				t.Fatalf("got error %v, want %v", err, tt.want)
			}
			if tt.want != nil {
				checkUnchanged(t, r, before)
			} else if got := r.FindTask("t1").Attempts; got != tt.attempt {
				t.Errorf("got %d attempts, want %d", got, tt.attempt)
			}
		})
	}
}

func TestWait_ChecksState(t *testing.T) {
	r := inState(t, StateRunning)
	must(t, r.Wait("t1"))
	before := encodedText(t, r)
	for task, want := range map[string]error{"t1": ErrTransition, "t9": ErrUnknownTask} {
		if err := r.Wait(task); !errors.Is(err, want) {
			t.Errorf("Wait(%s): got error %v, want %v", task, err, want)
		}
	}
	checkUnchanged(t, r, before)
}

func TestPlan_RequiresDecision(t *testing.T) {
	r := inState(t, StateAccepted)
	before := encodedText(t, r)
	if err := r.Plan(nil, parts(), nil); !errors.Is(err, ErrTransition) {
		t.Errorf("got error %v, want %v", err, ErrTransition)
	}
	checkUnchanged(t, r, before)
}

func TestEnd_RequiresTerminalStatus(t *testing.T) {
	tests := []struct {
		name   string
		status contract.Status
		resp   *contract.Response
	}{
		{"no response", contract.StatusFailed, nil},
		{"accepted", contract.StatusAccepted, answer(contract.StatusAccepted)},
		{"running", contract.StatusRunning, answer(contract.StatusRunning)},
		{"nothing", "", answer("")},
		{"state that is not terminal", "planned", answer("planned")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := inState(t, StateRunning)
			before := encodedText(t, r)
			if err := r.End(tt.status, tt.resp, now); !errors.Is(err, ErrTransition) {
				t.Errorf("got error %v, want %v", err, ErrTransition)
			}
			checkUnchanged(t, r, before)
		})
	}
}
