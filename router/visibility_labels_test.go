package router_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/router"
)

const lostRegistry = `
clients:
  billing_agent: {match: {intent: [cost_analysis, payroll_run], domains: [azure, databricks]}}
  secret_agent:  {match: {intent: [open_vault], domains: [vault]}}
  greeter_agent: {match: {intent: [greet], domains: ["*"]}}
  python_agent:  {match: {intent: [code_review], domains: [python]}}
  snake_agent:   {match: {intent: [feed_snake], domains: [python]}}
`

// routeProposal routes the prompt with the proposed classification and returns the response for the
// caller, without the fields that differ for each request.
func routeProposal(t *testing.T, policy, prompt string, c *contract.Caller, proposed *contract.Classification) (answer, proposal string) {
	t.Helper()
	snapshot, err := capabilities.Parse("lost.yaml", []byte(lostRegistry+"fallback: {policy: "+policy+"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	d := newDispatcher(t)
	var classify router.Classifier
	if proposed != nil {
		classify = &scriptedClassifier{*proposed}
	} else if classify, err = classifier.New(classifier.Config{}); err != nil {
		t.Fatal(err)
	}
	r, err := router.New(router.Config{}, classify, d)
	if err != nil {
		t.Fatal(err)
	}
	r.SetView(router.NewView(snapshot, d))
	ask := func() *contract.Request {
		return &contract.Request{Content: contract.Content{Prompt: prompt}, Options: contract.Options{DryRun: true}}
	}
	clf, err := r.Classify(t.Context(), ask(), c)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := r.Handle(t.Context(), ask(), c)
	if err != nil {
		t.Fatal(err)
	}
	clf.LatencyMS, resp.Decision.Classification.LatencyMS = 0, 0
	resp.RequestID, resp.TraceID, resp.Decision.DecisionID, resp.Decision.TimingsMS = "", "", "", nil
	if p := resp.Data.Proposal; p != nil {
		proposal = p.SuggestedYAML
		p.SuggestedYAML, p.Requirements, p.Risks = "", nil, nil // derived from the prompt
	}
	if u := resp.Data.Unsupported; u != nil {
		u.Examples = nil // the nearest examples of agents that the caller may use
	}
	data, err := json.MarshalIndent(map[string]any{"classify": clf, "route": resp}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data), proposal
}

// A caller that guesses a hidden label gets the same response as for a meaningless prompt.
func TestRouter_TreatsGuessedLabelLikeUnknownWord(t *testing.T) {
	callers := map[string]*contract.Caller{
		"no agent":                    caller("ana", "route:submit"),
		"an agent without the labels": caller("ana", "route:submit", "agent:python_agent"),
		"every domain":                caller("ana", "route:submit", "agent:greeter_agent"),
		"several":                     caller("ana", "route:submit", "agent:greeter_agent", "agent:python_agent"),
	}
	for name, c := range callers {
		for _, policy := range []string{"A", "B", "C"} {
			want, _ := routeProposal(t, policy, "zxqv plugh", c, nil)
			for _, prompt := range []string{
				"cost analysis", "cost analysis of azure", "open vault", "payroll run for databricks and azure",
				"open vault. Then cost analysis of azure.", "azure", "vault",
			} {
				got, proposal := routeProposal(t, policy, prompt, c, nil)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s, policy %s, %q (-nonsense +guessed):\n%s", name, policy, prompt, diff)
				}
				if strings.Contains(proposal, "billing_agent") {
					t.Errorf("%s, %q: got a suggestion that names a hidden agent:\n%s", name, prompt, proposal)
				}
			}
		}
	}
}

// If a model returns hidden labels, the response is that for an unknown intent.
func TestRouter_TreatsHiddenLabelOfModelLikeUnknown(t *testing.T) {
	proposed := func(intent string, domains []string, confidence float64, subtasks ...contract.Subtask) *contract.Classification {
		return &contract.Classification{Intent: intent, Domains: domains, Subtasks: append([]contract.Subtask{}, subtasks...), Confidence: confidence, Source: contract.SourceLLM}
	}
	hidden := contract.Subtask{Title: "see the bill", Intent: "cost_analysis", Domains: []string{"azure"}}
	vault := contract.Subtask{Title: "open it", Intent: "open_vault", Domains: []string{"vault"}}
	c := caller("ana", "route:submit", "agent:greeter_agent", "agent:python_agent")
	for _, policy := range []string{"A", "B", "C"} {
		want, _ := routeProposal(t, policy, "zxqv plugh", c, proposed(contract.Unknown, []string{}, 0.1))
		for name, clf := range map[string]*contract.Classification{
			"intent":               proposed("cost_analysis", []string{"azure"}, 0.9),
			"intent with subtasks": proposed("cost_analysis", []string{"azure", "vault"}, 0.9, hidden, vault),
			"subtasks only":        proposed(contract.Unknown, []string{"azure", "vault"}, 0.7, hidden, vault),
			"domains only":         proposed(contract.Unknown, []string{"azure"}, 0.7),
			"low confidence":       proposed("open_vault", []string{"vault"}, 0.2),
			"unknown label":        proposed("sing", []string{"opera"}, 1),
			"implied domain":       proposed("feed_snake", []string{"azure"}, 0.9), // python, which is visible
		} {
			got, _ := routeProposal(t, policy, "zxqv plugh", c, clf)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("policy %s, %s (-unknown +hidden):\n%s", policy, name, diff)
			}
		}
		// A visible domain and its near misses remain.
		want, _ = routeProposal(t, policy, "zxqv plugh", c, proposed(contract.Unknown, []string{"python"}, 0))
		got, _ := routeProposal(t, policy, "zxqv plugh", c, proposed("cost_analysis", []string{"python", "azure"}, 0.9))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("policy %s, with a visible domain (-unknown +hidden):\n%s", policy, diff)
		}
		if !strings.Contains(got, `"confidence 0.00 is below`) || !strings.Contains(got, "python_agent") {
			t.Errorf("policy %s: got %s, want the near miss of the domain", policy, got)
		}
	}
}

// If a label is visible, the rest of the classification remains.
func TestRouter_KeepsVisiblePartOfClassification(t *testing.T) {
	c := caller("ana", "route:submit", "agent:python_agent")
	got, _ := routeProposal(t, "B", "zxqv plugh", c, &contract.Classification{
		Intent: "cost_analysis", Domains: []string{"azure"}, Confidence: 0.9, Source: contract.SourceLLM, Subtasks: []contract.Subtask{
			{Title: "see the bill", Intent: "cost_analysis", Domains: []string{"azure"}},
			{Title: "review it", Intent: "code_review", Domains: []string{"python"}},
		},
	})
	for _, want := range []string{`"part 1"`, `"code review (python)"`, `"confidence": 0.9`, `"python_agent"`} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want it to contain %s", got, want)
		}
	}
}

// The response, the stored request, events and the decision log contain the same. An administrator
// sees everything.
func TestRouter_ConcealsDecisionEverywhere(t *testing.T) {
	h := newHarness(t)
	h.classifier.proposal = contract.Classification{
		Intent: "pay", Domains: []string{"bills"}, Confidence: 0.3, Source: contract.SourceLLM, Subtasks: []contract.Subtask{
			{Title: "pay them", Intent: "pay", Domains: []string{"bills"}}, {Title: "sing", Intent: "sing"},
		},
	}
	c := caller("bob", "route:submit", "agent:counter")
	check := func(where string, d *contract.Decision, omitted []contract.Omitted) {
		t.Helper()
		clf := d.Classification
		if clf.Intent != contract.Unknown || len(clf.Domains)+len(clf.Subtasks)+len(omitted) > 0 || clf.Confidence != 0 {
			t.Errorf("%s: got %+v, omitted %+v, want a concealed decision", where, clf, omitted)
		}
	}
	resp, err := h.Stream(t.Context(), newRequest(), c, func(ev *contract.Event) {
		if ev.Decision != nil {
			check("an event", ev.Decision, nil)
		}
	})
	h.must(err)
	check("the answer", resp.Decision, resp.Omitted)
	again, err := h.Request(t.Context(), resp.RequestID, c)
	h.must(err)
	check("the request", again.Decision, again.Omitted)
	page, err := h.Decisions(t.Context(), contract.DecisionQuery{}, c)
	h.must(err)
	check("the log", page.Decisions[0].Decision, page.Decisions[0].Omitted)
	admin := &contract.Caller{Subject: "root", Scopes: []string{"admin"}}
	for _, tt := range []struct {
		name        string
		query       contract.DecisionQuery
		caller, all int // number of decisions for the caller and for an administrator
	}{
		{"hidden intent", contract.DecisionQuery{Intent: "pay"}, 0, 1},
		{"unknown", contract.DecisionQuery{Intent: contract.Unknown}, 1, 0},
		{"below the stored confidence", contract.DecisionQuery{Below: 0.3}, 1, 0},
	} {
		for c, want := range map[*contract.Caller]int{c: tt.caller, admin: tt.all} {
			page, err := h.Decisions(t.Context(), tt.query, c)
			if err != nil || len(page.Decisions) != want {
				t.Errorf("decisions by %s: %s got %+v, %v, want %d", tt.name, c.Subject, page, err, want)
			}
		}
	}
	whole, err := h.Request(t.Context(), resp.RequestID, admin)
	if err != nil || len(whole.Decision.Classification.Subtasks) != 2 || len(whole.Omitted) != 2 || whole.Decision.Classification.Confidence != 0.3 {
		t.Errorf("administrator: got %+v, %v, want the stored response", whole, err)
	}
}
