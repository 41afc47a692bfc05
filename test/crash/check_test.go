package main

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
)

const (
	sound = "a" // a request everything is right with
	bad   = "b" // the one something is done to
)

// answerWith is a terminal answer that holds results with the marks.
func answerWith(id string, marks ...string) *contract.Response {
	resp := &contract.Response{RequestID: id, Status: contract.StatusCompleted}
	for _, mark := range marks {
		resp.Data.Results = append(resp.Data.Results, contract.AgentResult{Data: map[string]json.RawMessage{markName: encode(mark)}})
	}
	return resp
}

// see books the answer as a caller who asked does.
func (l *ledger) see(resp *contract.Response) { l.saw(resp.RequestID, resp, encode(resp)) }

// keptPromises is a ledger with nothing wrong in it: a request that was done
// later, with the first callback refused as a rival, one that was done twice by an
// agent that allows it, and one that went to a standby after a failure.
func keptPromises() *ledger {
	l := newLedger()
	at := part{sound, "travel_booking"}
	l.promised(sound, 1)
	l.stands("key", sound)
	l.stands("key", sound)
	l.began(execution{part: at, task: "t1", agent: laterAgent, mark: "m1"})
	l.told(callback{part: at, task: "t1", mark: "rival", status: http.StatusConflict})
	l.told(callback{part: at, task: "t1", mark: "m1", status: http.StatusOK})
	l.told(callback{part: at, task: "t1", mark: "m1", status: http.StatusOK})
	review := part{sound, "code_review"}
	l.began(execution{part: review, task: "t2", agent: plainAgent, mark: "m2", repeatable: true})
	l.began(execution{part: review, task: "t2", agent: plainAgent, mark: "m3", repeatable: true})
	cost := part{sound, "cost_analysis"}
	l.began(execution{part: cost, task: "t3", agent: onceAgent, mark: "m4", failed: true})
	l.began(execution{part: cost, task: "t4", agent: onceStandby, mark: "m5"})
	l.saw(sound, &contract.Response{RequestID: sound, Status: contract.StatusRunning}, []byte("running"))
	for range 3 {
		l.see(answerWith(sound, "m1", "m3", "m5"))
	}
	l.streamed(sound, 7, 1, contract.StatusCompleted)
	return l
}

// wrongs lists what check found, by check.
func wrongs(l *ledger) map[string][]string {
	found := map[string][]string{}
	for _, f := range l.check() {
		if len(f.wrong) > 0 {
			found[f.what] = f.wrong
		}
	}
	return found
}

func TestCheckFindsNothingInKeptPromises(t *testing.T) {
	if diff := cmp.Diff(map[string][]string{}, wrongs(keptPromises())); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

func TestCheckNamesEveryBrokenPromise(t *testing.T) {
	at := part{bad, "travel_booking"}
	kept := func(l *ledger, marks ...string) { // bad is in order so far
		l.promised(bad, 1)
		l.see(answerWith(bad, marks...))
	}
	tests := []struct {
		name  string
		plant func(l *ledger)
		want  string // of the check
		names []string
	}{
		{"no end", func(l *ledger) { l.promised(bad, 1) }, "without an end", []string{"b: promised in cycle 1, 1 posts"}},
		{"running is no end", func(l *ledger) {
			l.promised(bad, 1)
			l.saw(bad, &contract.Response{RequestID: bad, Status: contract.StatusRunning}, []byte("{}"))
		}, "without an end", []string{"b: promised in cycle 1, 1 posts"}},
		{"unknown for a moment, then there", func(l *ledger) {
			l.promised(bad, 1)
			l.gone(bad)
			l.see(answerWith(bad))
		}, "without an end", []string{"b: promised in cycle 1, 1 posts, 404"}},
		{"another terminal answer", func(l *ledger) {
			kept(l)
			resp := answerWith(bad)
			resp.Status = contract.StatusFailed
			l.see(resp)
		}, "that changed", []string{"b: completed, then failed"}},
		{"running again", func(l *ledger) {
			kept(l)
			l.see(&contract.Response{RequestID: bad, Status: contract.StatusRunning})
		}, "that changed", []string{"b: completed, then running"}},
		{"two finals on a stream", func(l *ledger) {
			kept(l)
			l.streamed(bad, 9, 2, contract.StatusCompleted)
			l.streamed(bad, 9, 0, "")
		}, "two final events", []string{bad}},
		{"a final that the answer contradicts", func(l *ledger) {
			kept(l)
			l.streamed(bad, 9, 1, contract.StatusFailed)
		}, "two final events", []string{bad}},
		{"two results of one task accepted", func(l *ledger) {
			kept(l, "x", "y")
			l.told(callback{part: at, task: "t", mark: "x", status: http.StatusOK})
			l.told(callback{part: at, task: "t", mark: "y", status: http.StatusOK})
		}, "two results", []string{bad}},
		{"results of two tasks of one part accepted", func(l *ledger) {
			kept(l, "x", "y")
			l.told(callback{part: at, task: "t", mark: "x", status: http.StatusOK})
			l.told(callback{part: at, task: "u", mark: "y", status: http.StatusOK})
		}, "two results", []string{bad}},
		{"the same agent was given the work twice", func(l *ledger) {
			kept(l)
			l.began(execution{part: at, task: "t", agent: laterAgent, mark: "x"})
			l.began(execution{part: at, task: "u", agent: laterAgent, mark: "y"})
		}, "done twice", []string{bad}},
		{"the same agent, which had failed", func(l *ledger) {
			kept(l)
			l.began(execution{part: at, task: "t", agent: onceAgent, mark: "x", failed: true})
			l.began(execution{part: at, task: "t", agent: onceAgent, mark: "y"})
		}, "done twice", []string{bad}},
		{"a standby though the first did not fail", func(l *ledger) {
			kept(l)
			l.began(execution{part: at, task: "t", agent: onceAgent, mark: "x"})
			l.began(execution{part: at, task: "u", agent: onceStandby, mark: "y"})
		}, "done twice", []string{bad}},
		{"an accepted result is not in the answer", func(l *ledger) {
			kept(l)
			l.told(callback{part: at, task: "t", mark: "x", status: http.StatusOK})
		}, "not in the answer", []string{bad}},
		{"an accepted result of a request nobody was promised", func(l *ledger) {
			l.told(callback{part: at, task: "t", mark: "x", status: http.StatusOK})
		}, "without an end", []string{"b: promised in cycle 0, 0 posts"}},
		{"no end, though an agent was at work", func(l *ledger) {
			l.promised(bad, 1)
			l.stands("k", bad)
			l.began(execution{part: at, task: "t", agent: laterAgent, mark: "x"})
		}, "without an end", []string{"b: promised in cycle 1, 1 posts, k, given to later_agent"}},
		{"a result of nobody", func(l *ledger) { kept(l, "x") }, "no agent gave", []string{bad}},
		{"a result of another request", func(l *ledger) { kept(l, "m1") }, "no agent gave", []string{bad}},
		{"a key with two requests", func(l *ledger) { l.stands("key", bad) }, "Idempotency-Key", []string{"key: [a b]"}},
		{"a callback that is refused", func(l *ledger) {
			l.told(callback{part: at, task: "t", mark: "x", status: http.StatusUnauthorized})
		}, "refused without need", []string{"b: task t was answered 401"}},
		{"a callback to an unknown task", func(l *ledger) {
			l.told(callback{part: at, task: "t", mark: "x", status: http.StatusNotFound})
		}, "refused without need", []string{"b: task t was answered 404"}},
		{"an odd answer", func(l *ledger) { l.wonder(bad, "500") }, "nobody expects", []string{"b: 500"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := keptPromises()
			tt.plant(l)
			found := false
			for what, names := range wrongs(l) {
				if !strings.Contains(what, tt.want) {
					t.Errorf("also found %q: %v", what, names)
					continue
				}
				found = true
				if diff := cmp.Diff(tt.names, names); diff != "" {
					t.Errorf("named (-want +got):\n%s", diff)
				}
			}
			if !found {
				t.Errorf("got nothing, want a finding about %q", tt.want)
			}
		})
	}
}

// Every check can fail: none is satisfied by whatever comes.
func TestEveryCheckIsPlantedOnce(t *testing.T) {
	l := keptPromises()
	at := part{bad, "travel_booking"}
	l.promised("never", 1)
	l.promised(bad, 1)
	l.see(answerWith(bad, "of nobody"))
	l.see(answerWith(bad, "of nobody", "again"))
	l.streamed(bad, 1, 2, contract.StatusCompleted)
	for _, mark := range []string{"x", "y"} {
		l.told(callback{part: at, task: "t", mark: mark, status: http.StatusOK})
		l.began(execution{part: at, task: "t", agent: laterAgent, mark: mark})
	}
	l.told(callback{part: at, task: "t", mark: "z", status: http.StatusBadRequest})
	l.stands("key", bad)
	l.wonder("", "odd")
	for _, f := range l.check() {
		if len(f.wrong) == 0 {
			t.Errorf("%s: nothing found", f.what)
		}
		if slices.Contains(f.wrong, sound) {
			t.Errorf("%s: names request %s, which is in order", f.what, sound)
		}
	}
}

func TestLedgerKnowsWhatIsOpen(t *testing.T) {
	l := keptPromises()
	l.promised("open", 3)
	l.promised("open", 4)
	l.streamed("open", 12, 0, "")
	l.streamed("unknown", 5, 1, contract.StatusCompleted)
	for _, tt := range []struct {
		name      string
		got, want []string
	}{
		{"open", l.open(), []string{"open"}},
		{"all", l.all(), []string{sound, "open"}},
		{"unheard", l.unheard(), []string{"open"}},
	} {
		if diff := cmp.Diff(tt.want, tt.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	if got := l.lastEvent("open"); got != 12 {
		t.Errorf("last event: got %d, want 12", got)
	}
	if got := l.lastEvent("unknown"); got != 0 {
		t.Errorf("last event of an unknown request: got %d, want 0", got)
	}
}
