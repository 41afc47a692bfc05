package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/caprouter/caprouter/contract"
)

func TestReport_ListsViolations(t *testing.T) {
	names := make([]string, maxListed+5)
	for i := range names {
		names[i] = "request-" + strings.Repeat("x", i)
	}
	r := &report{title: "title", checks: []checkResult{{name: "nothing"}, {name: "something", violations: names}}}
	r.addFigure("a figure", "%d of %d", 1, 2)
	var out bytes.Buffer
	r.printTo(&out)
	for _, want := range []string{"title", "a figure", "1 of 2", "nothing", "something", names[maxListed-1] + "\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got no %q in the report:\n%s", want, out.String())
		}
	}
	if got, want := r.countViolations(), len(names); got != want {
		t.Errorf("countViolations: got %d, want %d", got, want)
	}
	if got := strings.Count(out.String(), "request-"); got != maxListed {
		t.Errorf("got %d violations listed, want %d", got, maxListed)
	}
}

func TestAddFigures_CountsLedger(t *testing.T) {
	l := correctLedger()
	l.recordPost(202)
	l.recordPost(0)
	l.recordAccepted(bad, 2)
	resp := responseWith(bad)
	resp.Status = contract.StatusFailed
	unknown := &contract.TaskError{Code: contract.TaskOutcomeUnknown}
	resp.Tasks = []contract.TaskReport{{Error: unknown}, {Error: unknown}, {}}
	l.see(resp)
	r := &report{}
	l.addFigures(r)
	got := map[string]string{}
	for _, f := range r.figures {
		got[f.name] = f.value
	}
	for what, want := range map[string]string{
		"requests accepted":                 "2",
		"answers to POST":                   "1 202, 1 no answer",
		"ended":                             "1 completed, 1 failed",
		"ended with a task outcome_unknown": "1",
		"errors of tasks":                   "2 outcome_unknown",
		"final events seen":                 "1",
		"callbacks answered":                "2 OK, 1 Conflict",
		"executions":                        "2 plain_agent, 1 later_agent, 1 once_agent, 1 once_standby",
	} {
		if got[what] != want {
			t.Errorf("%s: got %q, want %q", what, got[what], want)
		}
	}
}

func TestFormatMillis(t *testing.T) {
	if got := formatMillis(1499 * time.Microsecond); got != "1" {
		t.Errorf("got %q, want 1", got)
	}
}
