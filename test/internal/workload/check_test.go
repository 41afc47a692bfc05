package workload

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
)

const (
	sound = "a" // a request without violations
	bad   = "b" // the request that a case modifies
)

// responseWith returns a terminal response with the results.
func responseWith(id string, marks ...string) *contract.Response {
	resp := &contract.Response{RequestID: id, Status: contract.StatusCompleted}
	for _, mark := range marks {
		resp.Data.Results = append(resp.Data.Results, contract.AgentResult{Data: map[string]json.RawMessage{markMember: encodeJSON(mark)}})
	}
	return resp
}

// changedTo returns the violation of a response that was completed first.
func changedTo(status contract.Status) string {
	changed := responseWith(bad)
	changed.Status = status
	return fmt.Sprintf("%s: %s, then %s", bad, encodeJSON(responseWith(bad)), encodeJSON(changed))
}

// see records the response, like a caller.
func (l *Ledger) see(resp *contract.Response) {
	l.recordResponse(resp.RequestID, resp, encodeJSON(resp))
}

// correctLedger returns a ledger without violations. It contains a request with an
// asynchronous result and a refused second one, one that an idempotent agent executed
// twice, and one that moved to a standby after a failure.
func correctLedger() *Ledger {
	l := NewLedger()
	at := subtask{sound, "travel_booking"}
	l.recordAccepted(sound)
	l.recordKey("key", sound)
	l.recordKey("key", sound)
	l.recordExecution(execution{subtask: at, task: "t1", agent: AsyncAgent, mark: "m1"})
	l.recordCallback(callback{subtask: at, task: "t1", mark: "rival", status: http.StatusConflict})
	l.recordCallback(callback{subtask: at, task: "t1", mark: "m1", status: http.StatusOK})
	l.recordCallback(callback{subtask: at, task: "t1", mark: "m1", status: http.StatusOK})
	review := subtask{sound, "code_review"}
	l.recordExecution(execution{subtask: review, task: "t2", agent: PlainAgent, mark: "m2", idempotent: true})
	l.recordExecution(execution{subtask: review, task: "t2", agent: PlainAgent, mark: "m3", idempotent: true})
	cost := subtask{sound, "cost_analysis"}
	l.recordExecution(execution{subtask: cost, task: "t3", agent: OnceAgent, mark: "m4", failed: true})
	l.recordExecution(execution{subtask: cost, task: "t4", agent: OnceStandby, mark: "m5"})
	l.recordResponse(sound, &contract.Response{RequestID: sound, Status: contract.StatusRunning}, []byte("running"))
	for range 3 {
		l.see(responseWith(sound, "m1", "m3", "m5"))
	}
	l.recordStream(sound, 7, 1, contract.StatusCompleted)
	l.recordCancelled(sound, contract.StatusCompleted)
	return l
}

func TestChecks_PassCorrectLedger(t *testing.T) {
	if diff := cmp.Diff(map[string][]string{}, Violations(correctLedger().RunChecks())); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}

// A kill may prevent the record of a response that its caller has received, but only if the
// router may answer before it records.
func TestChecks_AcceptInterruptedResponseAfterEarlyAnswer(t *testing.T) {
	for _, early := range []bool{true, false} {
		l := NewLedger()
		l.recordAccepted(bad)
		l.see(responseWith(bad))
		if early {
			l.recordAnsweredFirst(bad)
		}
		l.see(&contract.Response{RequestID: bad, Status: contract.StatusFailed, Tasks: []contract.TaskReport{
			{TaskID: bad, AgentID: "plain", Error: &contract.TaskError{Code: contract.TaskOutcomeUnknown}},
		}})
		l.recordStream(bad, 1, 1, contract.StatusFailed)
		if found := len(Violations(l.RunChecks())) > 0; found == early {
			t.Errorf("answered before the record %v: got a violation %v, want %v", early, found, !early)
		}
	}
}

func TestChecks_ReportViolations(t *testing.T) {
	at := subtask{bad, "travel_booking"}
	resultOf := func(l *Ledger, marks ...string) { // a correct request with the id bad
		l.recordAccepted(bad)
		l.see(responseWith(bad, marks...))
	}
	endUnknown := func(l *Ledger, task, agent string) {
		resp := responseWith(bad)
		resp.Tasks = []contract.TaskReport{{TaskID: task, AgentID: agent, Error: &contract.TaskError{Code: contract.TaskOutcomeUnknown}}}
		l.recordAccepted(bad)
		l.see(resp)
	}
	tests := []struct {
		name  string
		plant func(l *Ledger)
		want  string // of the check
		names []string
	}{
		{"no end", func(l *Ledger) { l.recordAccepted(bad) }, "without an end", []string{"b: accepted"}},
		{"running is no end", func(l *Ledger) {
			l.recordAccepted(bad)
			l.recordResponse(bad, &contract.Response{RequestID: bad, Status: contract.StatusRunning}, []byte("{}"))
		}, "without an end", []string{"b: accepted"}},
		{"unknown for a moment, then there", func(l *Ledger) {
			l.recordAccepted(bad)
			l.recordNotFound(bad)
			l.see(responseWith(bad))
		}, "without an end", []string{"b: accepted, 404"}},
		{"another terminal answer", func(l *Ledger) {
			resultOf(l)
			resp := responseWith(bad)
			resp.Status = contract.StatusFailed
			l.see(resp)
		}, "response changed", []string{changedTo(contract.StatusFailed)}},
		{"running again", func(l *Ledger) {
			resultOf(l)
			resp := responseWith(bad)
			resp.Status = contract.StatusRunning
			l.see(resp)
		}, "response changed", []string{changedTo(contract.StatusRunning)}},
		{"two finals on a stream", func(l *Ledger) {
			resultOf(l)
			l.recordStream(bad, 9, 2, contract.StatusCompleted)
			l.recordStream(bad, 9, 0, "")
		}, "two final events", []string{bad}},
		{"final event contradicts the answer", func(l *Ledger) {
			resultOf(l)
			l.recordStream(bad, 9, 1, contract.StatusFailed)
		}, "two final events", []string{bad}},
		{"two results of one task accepted", func(l *Ledger) {
			resultOf(l, "x", "y")
			l.recordCallback(callback{subtask: at, task: "t", mark: "x", status: http.StatusOK})
			l.recordCallback(callback{subtask: at, task: "t", mark: "y", status: http.StatusOK})
		}, "two results of one subtask", []string{bad}},
		{"results of two tasks of one part accepted", func(l *Ledger) {
			resultOf(l, "x", "y")
			l.recordCallback(callback{subtask: at, task: "t", mark: "x", status: http.StatusOK})
			l.recordCallback(callback{subtask: at, task: "u", mark: "y", status: http.StatusOK})
		}, "two results of one subtask", []string{bad}},
		{"same agent got the work twice", func(l *Ledger) {
			resultOf(l)
			l.recordExecution(execution{subtask: at, task: "t", agent: AsyncAgent, mark: "x"})
			l.recordExecution(execution{subtask: at, task: "u", agent: AsyncAgent, mark: "y"})
		}, "was repeated", []string{bad}},
		{"same agent, after its failure", func(l *Ledger) {
			resultOf(l)
			l.recordExecution(execution{subtask: at, task: "t", agent: OnceAgent, mark: "x", failed: true})
			l.recordExecution(execution{subtask: at, task: "t", agent: OnceAgent, mark: "y"})
		}, "was repeated", []string{bad}},
		{"standby without a failure of the first agent", func(l *Ledger) {
			resultOf(l)
			l.recordExecution(execution{subtask: at, task: "t", agent: OnceAgent, mark: "x"})
			l.recordExecution(execution{subtask: at, task: "u", agent: OnceStandby, mark: "y"})
		}, "was repeated", []string{bad}},
		{"accepted result missing in the answer", func(l *Ledger) {
			resultOf(l)
			l.recordCallback(callback{subtask: at, task: "t", mark: "x", status: http.StatusOK})
		}, "missing in the response", []string{bad}},
		{"accepted result of a request without a 202", func(l *Ledger) {
			l.recordCallback(callback{subtask: at, task: "t", mark: "x", status: http.StatusOK})
		}, "without an end", []string{"b: accepted"}},
		{"no end, though an agent was at work", func(l *Ledger) {
			l.recordAccepted(bad)
			l.recordKey("k", bad)
			l.recordExecution(execution{subtask: at, task: "t", agent: AsyncAgent, mark: "x"})
		}, "without an end", []string{"b: accepted, k, sent to later_agent"}},
		{"result of no agent", func(l *Ledger) { resultOf(l, "x") }, "no agent sent", []string{bad}},
		{"result of another request", func(l *Ledger) { resultOf(l, "m1") }, "no agent sent", []string{bad}},
		{"one key, two requests", func(l *Ledger) { l.recordKey("key", bad) }, "Idempotency-Key", []string{"key: [a b]"}},
		{"rejected callback", func(l *Ledger) {
			l.recordCallback(callback{subtask: at, task: "t", mark: "x", status: http.StatusUnauthorized})
		}, "refused without reason", []string{"b: task t was answered 401"}},
		{"callback for an unknown task", func(l *Ledger) {
			l.recordCallback(callback{subtask: at, task: "t", mark: "x", status: http.StatusNotFound})
		}, "refused without reason", []string{"b: task t was answered 404"}},
		{"unknown outcome of an idempotent agent", func(l *Ledger) { endUnknown(l, "t", PlainAgent) }, "that is idempotent", []string{bad}},
		{"cancelled, then completed", func(l *Ledger) {
			resultOf(l)
			l.recordCancelled(bad, contract.StatusCancelled)
		}, "ended otherwise", []string{bad}},
		{"turn without the previous turn", func(l *Ledger) { l.recordTurn(bad, false) }, "turn before", []string{bad}},
		{"unexpected answer", func(l *Ledger) { l.RecordUnexpected(bad, "500") }, "unexpected answer", []string{"b: 500"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := correctLedger()
			tt.plant(l)
			found := false
			for what, names := range Violations(l.RunChecks()) {
				if !strings.Contains(what, tt.want) {
					t.Errorf("got also %q: %v", what, names)
					continue
				}
				found = true
				if diff := cmp.Diff(tt.names, names); diff != "" {
					t.Errorf("violations (-want +got):\n%s", diff)
				}
			}
			if !found {
				t.Errorf("got no violations, want %q", tt.want)
			}
		})
	}
}

func TestChecks_EachHasTestedViolation(t *testing.T) {
	l := correctLedger()
	at := subtask{bad, "travel_booking"}
	l.recordAccepted("never")
	l.recordAccepted(bad)
	l.see(responseWith(bad, "of nobody"))
	l.see(responseWith(bad, "of nobody", "again"))
	l.recordStream(bad, 1, 2, contract.StatusCompleted)
	for _, mark := range []string{"x", "y"} {
		l.recordCallback(callback{subtask: at, task: "t", mark: mark, status: http.StatusOK})
		l.recordExecution(execution{subtask: at, task: "t", agent: AsyncAgent, mark: mark})
	}
	l.recordCallback(callback{subtask: at, task: "t", mark: "z", status: http.StatusBadRequest})
	l.recordKey("key", bad)
	l.RecordUnexpected("", "odd")
	l.recordTurn(bad, true)
	l.recordTurn(bad, false)
	l.recordCancelled(bad, contract.StatusCancelled)
	l.requests[bad].answer.Tasks = []contract.TaskReport{{FailedOver: []contract.FailedAttempt{{TaskID: "t", AgentID: SpareAgent, Error: &contract.TaskError{Code: contract.TaskOutcomeUnknown}}}}}
	for _, f := range l.RunChecks() {
		if len(f.Violations) == 0 {
			t.Errorf("%s: got no violation, want one", f.Name)
		}
		if slices.Contains(f.Violations, sound) {
			t.Errorf("%s: got the correct request %s among the violations", f.Name, sound)
		}
	}
}

func TestChecks_AcceptCorrectLedger(t *testing.T) {
	for name, add := range map[string]func(l *Ledger){
		"unknown outcomes of an agent that is not idempotent, and of an interrupted request": func(l *Ledger) {
			l.requests[sound].answer.Tasks = []contract.TaskReport{
				{TaskID: "t1", AgentID: AsyncAgent, Error: &contract.TaskError{Code: contract.TaskOutcomeUnknown}},
				{TaskID: sound, AgentID: PlainAgent, Error: &contract.TaskError{Code: contract.TaskOutcomeUnknown}},
			}
		},
		"answer deleted from a full store": func(l *Ledger) {
			l.Trims = true
			l.recordNotFound(sound)
			l.recordExpired("key")
		},
	} {
		l := correctLedger()
		add(l)
		if diff := cmp.Diff(map[string][]string{}, Violations(l.RunChecks())); diff != "" {
			t.Errorf("%s: violations (-want +got):\n%s", name, diff)
		}
	}
}

func TestLedger_SelectsRequests(t *testing.T) {
	l := correctLedger()
	l.recordAccepted("open")
	l.recordAccepted("open")
	l.recordStream("open", 12, 0, "")
	l.recordStream("unknown", 5, 1, contract.StatusCompleted)
	for _, tt := range []struct {
		name      string
		got, want []string
	}{
		{"open", l.OpenRequests(), []string{"open"}},
		{"all", l.AllRequests(), []string{sound, "open"}},
		{"unheard", l.WithoutFinalEvent(), []string{"open"}},
	} {
		if diff := cmp.Diff(tt.want, tt.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	if got := l.lastEventID("open"); got != 12 {
		t.Errorf("last event: got %d, want 12", got)
	}
	if got := l.lastEventID("unknown"); got != 0 {
		t.Errorf("last event of an unknown request: got %d, want 0", got)
	}
}
