package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/caprouter/caprouter/contract"
)

func TestTally(t *testing.T) {
	for _, tt := range []struct {
		counts map[string]int
		want   string
	}{
		{nil, "none"},
		{map[string]int{"a": 1}, "1 a"},
		{map[string]int{"b": 2, "a": 2, "c": 30}, "30 c, 2 a, 2 b"},
	} {
		if got := tally(tt.counts); got != tt.want {
			t.Errorf("tally(%v): got %q, want %q", tt.counts, got, tt.want)
		}
	}
}

func TestReportNamesWhatIsWrong(t *testing.T) {
	names := make([]string, mostNamed+5)
	for i := range names {
		names[i] = "request-" + strings.Repeat("x", i)
	}
	r := &report{title: "title", findings: []finding{{what: "nothing"}, {what: "something", wrong: names}}}
	r.add("a figure", "%d of %d", 1, 2)
	var out bytes.Buffer
	r.print(&out)
	for _, want := range []string{"title", "a figure", "1 of 2", "nothing", "something", names[mostNamed-1] + "\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report does not hold %q:\n%s", want, out.String())
		}
	}
	if got, want := r.wrong(), len(names); got != want {
		t.Errorf("wrong: got %d, want %d", got, want)
	}
	if got := strings.Count(out.String(), "request-"); got != mostNamed {
		t.Errorf("%d are named, want %d", got, mostNamed)
	}
}

func TestFiguresCountTheLedger(t *testing.T) {
	l := keptPromises()
	l.posted(202)
	l.posted(0)
	l.promised(bad, 2)
	resp := answerWith(bad)
	resp.Status = contract.StatusFailed
	unknown := &contract.TaskError{Code: contract.TaskOutcomeUnknown}
	resp.Tasks = []contract.TaskReport{{Error: unknown}, {Error: unknown}, {}}
	l.see(resp)
	r := &report{}
	l.figures(r)
	got := map[string]string{}
	for _, f := range r.figures {
		got[f.what] = f.value
	}
	for what, want := range map[string]string{
		"requests promised":                 "2",
		"answers to POST":                   "1 202, 1 cut off",
		"ended":                             "1 completed, 1 failed",
		"ended with a task outcome_unknown": "1",
		"errors of tasks":                   "2 outcome_unknown",
		"ends told by a stream of events":   "1",
		"callbacks answered":                "2 OK, 1 Conflict",
		"executions":                        "2 plain_agent, 1 later_agent, 1 once_agent, 1 once_standby",
	} {
		if got[what] != want {
			t.Errorf("%s: got %q, want %q", what, got[what], want)
		}
	}
}

func TestInMillis(t *testing.T) {
	if got := inMillis(1499 * time.Microsecond); got != "1" {
		t.Errorf("got %q, want 1", got)
	}
}
