package orchestrator

import (
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/contract"
)

// Every event leads to the state in the table, and an event without a row changes nothing. A run is
// committed only after its verification, and a terminal state is final.
func TestAdvance_FollowsTable(t *testing.T) {
	table := map[State]map[Event]State{}
	var events []Event
	for _, row := range transitions() {
		if table[row.from] == nil {
			table[row.from] = map[Event]State{}
		}
		if to, twice := table[row.from][row.event]; twice {
			t.Fatalf("%s has two rows for %s: %s and %s", row.from, row.event, to, row.to)
		}
		table[row.from][row.event] = row.to
		events = append(events, row.event)
	}
	rapid.Check(t, func(t *rapid.T) {
		rec := &Record{State: StateInit}
		verified := false
		for range 60 {
			event, from := rapid.SampledFrom(events).Draw(t, "event"), rec.State
			err := rec.Advance(event, contract.RunEvent{}, time.Unix(0, 0))
			to, ok := table[from][event]
			switch {
			case ok && (err != nil || rec.State != to):
				t.Fatalf("%s in %s: got %s and error %v, want %s", event, from, rec.State, err, to)
			case !ok && (err == nil || rec.State != from):
				t.Fatalf("%s in %s: got %s and error %v, want an error and no change", event, from, rec.State, err)
			case ok && rec.Events[len(rec.Events)-1].State != string(to):
				t.Fatalf("got state %s in the audit trail, want %s", rec.Events[len(rec.Events)-1].State, to)
			}
			verified = verified || ok && event == EventVerifyOK
			if rec.State == StateCommit && !verified {
				t.Fatal("got the run committed without a verification")
			}
		}
		if rec.State.Terminal() != !rec.EndedAt.IsZero() {
			t.Errorf("got state %s, ended at %s", rec.State, rec.EndedAt)
		}
	})
}

// Every state except INIT has an incoming transition, and every state except the terminal ones an
// outgoing one.
func TestTransitions_CoverEveryState(t *testing.T) {
	reached, left := map[State]bool{StateInit: true}, map[State]bool{}
	for _, row := range transitions() {
		if row.from != row.to {
			reached[row.to], left[row.from] = true, true
		}
		if row.from.Terminal() {
			t.Errorf("the terminal state %s is left by %s", row.from, row.event)
		}
	}
	for state := range reached {
		if !state.Terminal() && !left[state] {
			t.Errorf("got no transition from state %s", state)
		}
	}
	if len(reached) != 13 {
		t.Errorf("got %d states, want 13", len(reached))
	}
}

// The document contains the diagram of the table.
func TestDiagram_IsInDocument(t *testing.T) {
	doc, err := os.ReadFile("../docs/orchestrator.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := "```mermaid\n" + Diagram() + "```\n"; !strings.Contains(string(doc), want) {
		t.Errorf("docs/orchestrator.md: got no diagram of the table, want:\n%s", want)
	}
}
