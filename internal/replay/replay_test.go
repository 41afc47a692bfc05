package replay_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/replay"
)

const (
	reviewer = `
  reviewer:
    match: {intent: [code_review], domains: [python]}
    examples: {code_review: ["review this python code", "check my python module", "look at this python function"]}
    endpoint: {protocol: http, url: "http://127.0.0.1:1/"}`
	biller = `
  biller:
    match: {intent: [pay_bill], domains: [bills]}
    examples: {pay_bill: ["pay the electricity bill", "settle this invoice", "pay my open bills"]}
    endpoint: {protocol: http, url: "http://127.0.0.1:1/"}`
	inForce = "clients:" + reviewer + biller + "\nfallback: {policy: B}\n"
)

func TestRun_ListsRequestsThatGoElsewhere(t *testing.T) {
	r := newRecorder(t, inForce)
	r.route("please review this python code of ana@example.com", newOperator())
	r.route("settle this invoice", newOperator())
	r.route("sing a song about the sea", newOperator())
	checkReport(t, "the registry in force", r.replay(inForce), "replayed 3, same 3, changed 0")

	poet := `
  poet:
    match: {intent: [write_song], domains: [songs]}
    examples: {write_song: ["sing a song", "write a song about the sea", "compose a song"]}
    endpoint: {protocol: http, url: "http://127.0.0.1:1/"}`
	report := r.replay("clients:" + reviewer + poet + "\nfallback: {policy: C}\n")
	checkReport(t, "without biller, with poet", report,
		"settle this invoice: outcome agents: dispatch pay_bill biller -> fallback unknown C",
		"sing a song about the sea: outcome agents intent: fallback unknown B -> dispatch write_song poet",
		"replayed 3, same 1, changed 2")
	why := strings.Join(report.Changes[1].Because, "\n")
	for _, want := range []string{
		"poet: chosen after (score 0.80 = intent 0.50 + domains 0.30), not before: no candidate", "outcome: fallback before, dispatch after",
	} {
		if !strings.Contains(why, want) {
			t.Errorf("got because\n%s\nwant %s", why, want)
		}
	}
	if why := strings.Join(report.Changes[0].Because, "\n"); strings.Contains(why, "does not declare") {
		t.Errorf("got because\n%s\nwant nothing about the labels of a lexical classification", why)
	}
	if at := report.Changes[0].At; at.IsZero() || report.Changes[0].RequestID == "" || report.NextCursor != "" {
		t.Errorf("got %+v, want the time and the id of the request, and no cursor", report)
	}
	// The text is masked in the report as it is in the log.
	report = r.replay("clients:" + biller)
	if got := report.Changes[0].Prompt; got != "please review this python code of [EMAIL_1]" {
		t.Errorf("got prompt %q, want it masked", got)
	}
}

func TestRun_KeepsModelClassification(t *testing.T) {
	r := newRecorder(t, inForce)
	r.model = &contract.Classification{
		Intent: "pay_bill", Domains: []string{"unknown"}, Subtasks: []contract.Subtask{}, Confidence: 0.9, Source: contract.SourceLLM,
	}
	r.route("words that no registry contains", newOperator())
	checkReport(t, "the registry in force", r.replay(inForce), "replayed 1, same 1, changed 0")

	// The candidate implies the domain of its own agent.
	moved := strings.ReplaceAll(strings.ReplaceAll(inForce, "biller:", "payer:"), "domains: [bills]", "domains: [money]")
	checkReport(t, "another agent", r.replay(moved),
		"words that no registry contains: agents: dispatch pay_bill biller -> dispatch pay_bill payer", "replayed 1, same 0, changed 1")

	// The domain that the current registry implied was not proposed by the classifier.
	two := inForce[:len(inForce)-len("\nfallback: {policy: B}\n")] + strings.ReplaceAll(strings.ReplaceAll(biller, "biller:", "payer:"), "[bills]", "[money]")
	checkReport(t, "two agents", r.replay(two),
		"words that no registry contains: outcome agents: dispatch pay_bill biller -> clarify pay_bill ", "replayed 1, same 0, changed 1")

	report := r.replay(strings.ReplaceAll(inForce, "pay_bill", "settle"))
	checkReport(t, "without the intent", report,
		"words that no registry contains: outcome agents: dispatch pay_bill biller -> fallback pay_bill B", "replayed 1, same 0, changed 1")
	if why := strings.Join(report.Changes[0].Because, "\n"); !strings.Contains(why, "does not declare the intent pay_bill") {
		t.Errorf("got because\n%s\nwant that the intent is not declared", why)
	}
}

// TestRun_KeepsFollowUps: the record of a follow-up does not contain the request that it continues.
func TestRun_KeepsFollowUps(t *testing.T) {
	r := newRecorder(t, inForce)
	inSession := func(req *contract.Request) { req.SessionID = "s" }
	r.route("settle this invoice 5512", newOperator(), inSession)
	if got := r.route("and 5513?", newOperator(), inSession).Decision.Classification; got.Reason != classifier.ReasonFollowUp {
		t.Fatalf("got classification %+v, want a follow-up", got)
	}
	checkReport(t, "the registry in force", r.replay(inForce), "replayed 2, same 2, changed 0")
}

func TestRun_UsesRecordedConditions(t *testing.T) {
	second := strings.ReplaceAll(reviewer, "reviewer:", "second:")
	registry := "clients:" + strings.ReplaceAll(reviewer, "endpoint", "priority: 5\n    endpoint") + second
	withKey := func(key string) string { return strings.ReplaceAll(registry, "priority: 5", "priority: 5\n    "+key) }
	const prompt = "review this python code"
	for _, tt := range []struct {
		name     string
		registry string
		record   func(*recorder)
		freed    string // a registry that does not exclude the agent
	}{
		{"agent that the caller may not use", registry, func(r *recorder) { r.route(prompt, newMember("north", "ana", "agent:second")) }, ""},
		{"draining agent", registry, func(r *recorder) {
			r.live["reviewer"] = contract.AgentDraining
			r.load(registry)
			r.route(prompt, newOperator())
		}, ""},
		{"agent that requires a scope", withKey("requires: {scopes: [gold]}"), func(r *recorder) { r.route(prompt, newMember("north", "ana")) }, registry},
		{"agent of another tenant", withKey("requires: {tenants: [south]}"), func(r *recorder) { r.route(prompt, newMember("north", "ana")) }, registry},
		{"agent of the caller's tenant", withKey("requires: {tenants: [north]}"), func(r *recorder) { r.route(prompt, newMember("north", "ana")) }, ""},
		{"agent that requires data", withKey("requires: {data_classes: [phone]}"), func(r *recorder) {
			r.route(prompt+" of ana@example.com", newOperator())
		}, withKey("requires: {data_classes: [email]}")},
		{"agent that does not accept the inputs", withKey("accepts_data_classes: none"), func(r *recorder) {
			r.route(prompt, newOperator(), func(req *contract.Request) {
				req.Content.Inputs = map[string]json.RawMessage{"author": json.RawMessage(`"ana@example.com"`)}
			})
		}, registry},
		{"request for a named agent", registry, func(r *recorder) {
			id := "second"
			r.route(prompt, newOperator(), func(req *contract.Request) { req.AgentID = &id })
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRecorder(t, tt.registry)
			tt.record(r)
			checkReport(t, "the same registry", r.replay(tt.registry), "replayed 1, same 1, changed 0")
			if tt.freed == "" {
				return
			}
			if got := r.replay(tt.freed); got.Changed != 1 || !cmp.Equal(got.Changes[0].After.Agents, []string{"reviewer"}) {
				t.Errorf("got %s for a registry that does not exclude the agent, want reviewer", formatReport(got))
			}
		})
	}
}

// A question to the caller is an outcome, and its answer is replayed with the chosen option.
func TestRun_ReplaysQuestionsAndChoices(t *testing.T) {
	split := strings.ReplaceAll(biller, "biller:", "banker:")
	split = strings.ReplaceAll(split, "domains: [bills]", "domains: [loans]")
	both := "clients:" + biller + split
	r := newRecorder(t, both)
	r.model = &contract.Classification{
		Intent: "pay_bill", Domains: []string{"unknown"}, Subtasks: []contract.Subtask{}, Confidence: 0.9, Source: contract.SourceLLM,
	}
	question := r.route("settle this", newOperator())
	if question.Status != contract.StatusClarify {
		t.Fatalf("got status %s, want a question", question.Status)
	}
	r.route("settle this", newOperator(), func(req *contract.Request) {
		req.Clarification = &contract.ClarificationChoice{RequestID: question.RequestID, OptionID: question.Data.Options[0].ID}
	})
	checkReport(t, "the same registry", r.replay(both), "replayed 2, same 2, changed 0")
	checkReport(t, "without banker", r.replay("clients:"+biller),
		"settle this: outcome agents: clarify pay_bill  -> dispatch pay_bill biller",
		"settle this: agents: dispatch pay_bill banker -> dispatch pay_bill biller",
		"replayed 2, same 0, changed 2")
}

func TestRun_CountsRequestsNotReplayed(t *testing.T) {
	r := newRecorder(t, inForce)
	erased := r.route("review this python code", newOperator())
	if err := r.router.History().Erase(t.Context(), erased.RequestID, newOperator()); err != nil {
		t.Fatal(err)
	}
	r.route("settle this invoice", newOperator())
	r.live = map[string]contract.AgentState{"reviewer": contract.AgentDraining}
	r.load(inForce)
	r.route("review this python code", newOperator())
	checkReport(t, "without the agent that registered itself",
		r.replay("clients:"+reviewer, func(cfg *replay.Config) { cfg.Registered = map[string]bool{"biller": true} }),
		"replayed 0, same 0, changed 0, erased 1, no_agent 1, registered_agent 1")
}

func TestRun_ShowsOnlyDecisionsOfTenant(t *testing.T) {
	r := newRecorder(t, inForce)
	r.route("review this python code", newMember("north", "ana"))
	r.route("settle this invoice", newMember("north", "ana"))
	r.route("review this python code", newMember("south", "ben"))
	without := "clients:" + strings.ReplaceAll(biller, "biller", "payer")
	checkReport(t, "all", r.replay(without),
		"review this python code: outcome agents: dispatch code_review reviewer -> fallback unknown B",
		"settle this invoice: agents: dispatch pay_bill biller -> dispatch pay_bill payer",
		"review this python code: outcome agents: dispatch code_review reviewer -> fallback unknown B",
		"replayed 3, same 0, changed 3")
	readAs := func(reader *contract.Caller) func(*replay.Config) {
		return func(cfg *replay.Config) { cfg.Reader = reader }
	}
	checkReport(t, "south", r.replay(without, readAs(newMember("south", "eve"))),
		"review this python code: outcome agents: dispatch code_review reviewer -> fallback unknown B", "replayed 1, same 0, changed 1")
	// A reader that may use one agent sees only its requests, and no other agent of the candidate.
	checkReport(t, "one agent", r.replay(without, readAs(newMember("north", "eve", "agent:biller"))),
		"settle this invoice: outcome agents: dispatch pay_bill biller -> fallback pay_bill B", "replayed 1, same 0, changed 1")
	checkReport(t, "another tenant", r.replay(without, readAs(newMember("west", "eve"))), "replayed 0, same 0, changed 0")
}

// A candidate registry that guesses a label does not reveal that a model recorded it.
func TestRun_RevealsNoHiddenLabel(t *testing.T) {
	r := newRecorder(t, inForce)
	r.model = &contract.Classification{
		Intent: "code_review", Domains: []string{"python"}, Subtasks: []contract.Subtask{}, Confidence: 0.9, Source: contract.SourceLLM,
	}
	ana := newMember("north", "ana", "route:read", "agent:biller")
	r.route("settle this invoice", ana)
	guess := "clients:" + strings.ReplaceAll(reviewer, "reviewer:", "biller:")
	checkReport(t, "the caller", r.replay(guess, func(cfg *replay.Config) { cfg.Reader = ana }), "replayed 1, same 1, changed 0")
	if got := r.replay(guess); got.Changed != 1 {
		t.Errorf("got %s for the operator, want that the intent is known", formatReport(got))
	}
}
