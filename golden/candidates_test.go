package golden

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
)

const candidatesRegistry = `# our agents
clients:
  billing_agent:
    match: { intent: [cost_analysis], domains: [billing] }
  orders_agent:
    match: { intent: [cancel_order, track_order], domains: [orders] }
`

// decided is a decision on the text by a model, in the order of the calls.
func decided(n int, text, intent, agent string, change ...func(*contract.DecisionEntry)) contract.DecisionEntry {
	e := contract.DecisionEntry{
		At: time.Unix(int64(n), 0), RequestID: fmt.Sprintf("request-%d", n), Status: contract.StatusCompleted, Prompt: text,
		Decision: &contract.Decision{
			Classification: contract.Classification{Intent: intent, Confidence: 0.9, Source: contract.SourceLLM}, Chosen: []string{agent},
		},
	}
	for _, f := range change {
		f(&e)
	}
	return e
}

func withFeedback(verdict contract.Verdict, agents ...string) func(*contract.DecisionEntry) {
	return func(e *contract.DecisionEntry) {
		e.Feedback = append(e.Feedback, contract.Feedback{
			Verdict: verdict, ExpectedAgents: agents, At: e.At.Add(time.Duration(len(e.Feedback)+1) * time.Second),
		})
	}
}

func expectsNone(e *contract.DecisionEntry) {
	withFeedback(contract.VerdictMisroute)(e)
	e.Feedback[len(e.Feedback)-1].ExpectedNone = true
}

func expectsIntent(intent string) func(*contract.DecisionEntry) {
	return func(e *contract.DecisionEntry) { e.Feedback[len(e.Feedback)-1].ExpectedIntent = intent }
}

func TestLabelDecisions(t *testing.T) {
	registry, err := capabilities.Parse("r.yaml", []byte(candidatesRegistry))
	if err != nil {
		t.Fatal(err)
	}
	billing := func(n int, text string, change ...func(*contract.DecisionEntry)) contract.DecisionEntry {
		return decided(n, text, "cost_analysis", "billing_agent", change...)
	}
	tests := []struct {
		name    string
		entries []contract.DecisionEntry
		want    []string // "text agent intent origin"
		left    string   // reason
	}{
		{"model", []contract.DecisionEntry{billing(1, " how much \n")}, []string{"how much billing_agent cost_analysis model"}, ""},
		{"cached", []contract.DecisionEntry{billing(1, "how much", func(e *contract.DecisionEntry) { e.Decision.Classification.Source = contract.SourceCache })}, []string{"how much billing_agent cost_analysis model"}, ""},
		{"unsure model", []contract.DecisionEntry{billing(1, "how much", func(e *contract.DecisionEntry) { e.Decision.Classification.Confidence = 0.79 })}, nil, ""},
		{"lexical", []contract.DecisionEntry{billing(1, "how much", func(e *contract.DecisionEntry) { e.Decision.Classification.Source = contract.SourceLexical })}, nil, ""},
		{"failed", []contract.DecisionEntry{billing(1, "how much", func(e *contract.DecisionEntry) { e.Status = contract.StatusFailed })}, nil, ""},
		{"agent named by the request", []contract.DecisionEntry{billing(1, "how much", func(e *contract.DecisionEntry) { e.Decision.OnlyAgent = "billing_agent" })}, nil, ""},
		{"two subtasks", []contract.DecisionEntry{billing(1, "how much", func(e *contract.DecisionEntry) { e.Decision.Classification.Subtasks = make([]contract.Subtask, 2) })}, nil, ""},
		{"erased", []contract.DecisionEntry{billing(1, "", func(e *contract.DecisionEntry) { e.Decision, e.Erased = nil, true })}, nil, ""},
		{"misroute of a model", []contract.DecisionEntry{decided(1, "how much", "track_order", "orders_agent", withFeedback(contract.VerdictMisroute, "billing_agent"))}, []string{"how much billing_agent cost_analysis feedback"}, ""},
		{"misroute without an agent", []contract.DecisionEntry{billing(1, "how much", withFeedback(contract.VerdictMisroute))}, nil, ""},
		{"no agent is right", []contract.DecisionEntry{billing(1, "how much", expectsNone)}, []string{"how much   feedback"}, ""},
		{"no agent is right, after a model", []contract.DecisionEntry{billing(1, "how much"), billing(2, "how much", expectsNone)}, []string{"how much   feedback"}, ""},
		{"last feedback counts", []contract.DecisionEntry{billing(1, "how much", withFeedback(contract.VerdictMisroute, "orders_agent"), withFeedback(contract.VerdictCorrect))}, []string{"how much billing_agent cost_analysis feedback"}, ""},
		{"feedback before a later model", []contract.DecisionEntry{
			decided(2, "how much", "track_order", "orders_agent"), billing(1, "how much", withFeedback(contract.VerdictCorrect)),
		}, []string{"how much billing_agent cost_analysis feedback"}, ""},
		{"later model", []contract.DecisionEntry{
			decided(2, "how much", "track_order", "orders_agent"), billing(1, "how much"),
		}, []string{"how much orders_agent track_order model"}, ""},
		{"masked", []contract.DecisionEntry{billing(1, "the bill of [EMAIL_1]")}, nil, LeftMasked},
		{"several agents", []contract.DecisionEntry{billing(1, "both", withFeedback(contract.VerdictMisroute, "billing_agent", "orders_agent"))}, nil, LeftSeveral},
		{"agent that left", []contract.DecisionEntry{decided(1, "sing", "sing", "singer")}, nil, LeftUndeclared},
		{"intent that left", []contract.DecisionEntry{billing(1, "how much", func(e *contract.DecisionEntry) { e.Decision.Classification.Intent = "forecast" })}, nil, LeftUndeclared},
		{"agent with several intents, one of which was near", []contract.DecisionEntry{decided(1, "where is it", "cost_analysis", "billing_agent", withFeedback(contract.VerdictMisroute, "orders_agent"), func(e *contract.DecisionEntry) {
			e.Decision.Classification.Alternatives = []contract.IntentScore{{Intent: "other", Confidence: 0.4}, {Intent: "track_order", Confidence: 0.3}, {Intent: "cancel_order", Confidence: 0.2}}
		})}, []string{"where is it orders_agent track_order feedback"}, ""},
		{"agent with several intents, one of which is expected", []contract.DecisionEntry{billing(1, "where is it", withFeedback(contract.VerdictMisroute, "orders_agent"), expectsIntent("track_order"))}, []string{"where is it orders_agent track_order feedback"}, ""},
		{"expected intent, instead of that of the reading", []contract.DecisionEntry{decided(1, "stop it", "track_order", "orders_agent", withFeedback(contract.VerdictMisroute, "orders_agent"), expectsIntent("cancel_order"))}, []string{"stop it orders_agent cancel_order feedback"}, ""},
		{"expected intent that left", []contract.DecisionEntry{billing(1, "where is it", withFeedback(contract.VerdictMisroute, "orders_agent"), expectsIntent("find_order"))}, nil, LeftUndeclared},
		{"agent with several intents", []contract.DecisionEntry{billing(1, "where is it", withFeedback(contract.VerdictMisroute, "orders_agent"))}, nil, LeftIntent},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			texts, left := LabelDecisions(registry, tt.entries)
			var got []string
			for _, l := range texts {
				got = append(got, strings.Join([]string{l.Text, l.Agent, l.Intent, string(l.Origin)}, " "))
			}
			want := map[string]int{}
			if tt.left != "" {
				want[tt.left] = 1
			}
			if diff := cmp.Diff(tt.want, got) + cmp.Diff(want, left); diff != "" {
				t.Errorf("texts or reasons (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFindCandidates(t *testing.T) {
	registry, err := capabilities.Parse("r.yaml", []byte(candidatesRegistry))
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("very long ", 250)
	entries := []contract.DecisionEntry{
		decided(1, "please cancel my order", "cancel_order", "orders_agent"), // is routed right
		decided(2, "how much money did we burn in march", "cost_analysis", "billing_agent"),
		decided(3, "how much money did we burn in may", "cost_analysis", "billing_agent"), // is routed right with the one before
		decided(4, "has the parcel left the warehouse", "track_order", "orders_agent"),
		decided(5, long, "track_order", "orders_agent"),
		decided(6, "ring the courier about the crate", "track_order", "orders_agent"),
	}
	cfg := Config{Registry: registry}
	find := func(limit int) *CandidateReport {
		t.Helper()
		r, err := FindCandidates(t.Context(), cfg, "r.yaml", []byte(candidatesRegistry), entries, limit)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	texts := func(r *CandidateReport) (got []string) {
		for _, c := range r.Candidates {
			got = append(got, c.Text)
		}
		return got
	}
	r := find(10)
	want := []string{"how much money did we burn in march", "has the parcel left the warehouse", "ring the courier about the crate"}
	if diff := cmp.Diff(want, texts(r)); diff != "" {
		t.Errorf("candidates (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(RightCount{Texts: 6, Before: 1, After: 5}, r.All) + cmp.Diff(RightCount{Texts: 3, Before: 1, After: 2}, r.Others) +
		cmp.Diff(map[string]int{LeftInvalid: 1}, r.LeftOut); diff != "" || r.More || r.NoGain != 0 {
		t.Errorf("got more %v, without gain %d; counts (-want +got):\n%s", r.More, r.NoGain, diff)
	}
	if c := &r.Candidates[0]; c.Agent != "billing_agent" || c.Intent != "cost_analysis" || len(c.Without.Agents) != 0 || c.RequestID != "request-2" {
		t.Errorf("got the candidate %+v", c)
	}
	taught, err := capabilities.Parse("r.yaml", r.File)
	if err != nil || !strings.HasPrefix(string(r.File), "# our agents\n") || len(taught.Entry("orders_agent").Examples["track_order"]) != 2 {
		t.Errorf("got the file %s, %v, want the candidates as examples", r.File, err)
	}

	r = find(1)
	if diff := cmp.Diff(want[:1], texts(r)); diff != "" || !r.More {
		t.Errorf("got more %v (-want +got):\n%s", r.More, diff)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := FindCandidates(ctx, cfg, "r.yaml", []byte(candidatesRegistry), entries, 10); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v after the cancellation, want its error", err)
	}
}

// A text that as an example takes as many requests from other agents as it adds is no
// candidate.
func TestFindCandidates_LeavesOutContradictions(t *testing.T) {
	const file = "clients:\n  a: { match: { intent: [pay_bill], domains: [x] } }\n  b: { match: { intent: [sing_song], domains: [y] } }\n"
	registry, err := capabilities.Parse("r.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	entries := []contract.DecisionEntry{
		decided(1, "pay the bill", "pay_bill", "a"),
		decided(2, "pay a bill", "pay_bill", "a"),
		decided(3, "pay bill", "sing_song", "b"), // a mistake
	}
	r, err := FindCandidates(t.Context(), Config{Registry: registry}, "r.yaml", []byte(file), entries, 10)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Candidates) != 0 || r.NoGain != 1 || r.All != (RightCount{Texts: 3, Before: 2, After: 2}) {
		t.Errorf("got %+v, without gain %d, %+v; want no candidate", r.Candidates, r.NoGain, r.All)
	}
}

// A text that no agent should get is no candidate, and guards against examples that would send it
// to one.
func TestFindCandidates_KeepsTextsFromAgents(t *testing.T) {
	const file = "clients:\n  a: { match: { intent: [pay_bill], domains: [x] } }\n"
	registry, err := capabilities.Parse("r.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	entries := []contract.DecisionEntry{
		decided(1, "sing me a merry tune", "pay_bill", "a", expectsNone),
		decided(2, "sing me a merry song", "pay_bill", "a"), // a mistake
	}
	find := func(entries []contract.DecisionEntry) *CandidateReport {
		t.Helper()
		r, err := FindCandidates(t.Context(), Config{Registry: registry}, "r.yaml", []byte(file), entries, 10)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := find(entries[1:]); len(r.Candidates) != 1 {
		t.Fatalf("got %+v, want the song as a candidate without the feedback", r.Candidates)
	}
	r := find(entries)
	if len(r.Candidates) != 0 || r.NoGain != 1 || r.LeftOut[LeftNone] != 1 || r.All != (RightCount{Texts: 1}) {
		t.Errorf("got %+v, without gain %d, left out %v, %+v; want no candidate", r.Candidates, r.NoGain, r.LeftOut, r.All)
	}
}
