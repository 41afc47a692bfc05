package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/matcher"
	"github.com/caprouter/caprouter/router/plan"
)

const registry = `clients:
  first:  {match: {intent: [pay], domains: [bills]}, endpoint: {protocol: http, url: "http://127.0.0.1:1/"}, priority: 1}
  second: {match: {intent: [pay], domains: [bills]}, endpoint: {protocol: http, url: "http://127.0.0.1:1/"}}
  third:  {match: {intent: [count], domains: [words]}, endpoint: {protocol: http, url: "http://127.0.0.1:1/"}}
routing: {topk: 1}
`

func newInput(t *testing.T, c contract.Classification) *plan.Input {
	t.Helper()
	return newInputOf(t, registry, c)
}

func newInputOf(t *testing.T, registry string, c contract.Classification) *plan.Input {
	t.Helper()
	snapshot, err := capabilities.Parse("registry.yaml", []byte(registry))
	if err != nil {
		t.Fatal(err)
	}
	c.Confidence, c.Source = 1, contract.SourceLLM
	return &plan.Input{
		Catalogue: snapshot.Catalogue,
		Index:     matcher.Build(snapshot.Catalogue.Agents, matcher.DefaultWeights(), snapshot.Catalogue.Routing.ThresholdHundredths()),
		Caller:    &contract.Caller{AllAgents: true}, Prompt: "pay my bills\nplease", Classification: c, DecisionID: "d1",
	}
}

func TestNew_OrdersChosenAgentBeforeStandbys(t *testing.T) {
	p := plan.New(newInput(t, contract.Classification{Intent: "pay", Domains: []string{"bills"}}))
	if len(p.Parts) != 1 || p.Parts[0].Title != "pay my bills" || p.Parts[0].Subtask != plan.WholeRequest {
		t.Fatalf("got parts %+v, want one for the whole request", p.Parts)
	}
	if diff := cmp.Diff([]string{"first", "second"}, p.Parts[0].Agents); diff != "" {
		t.Errorf("agents (-want +got):\n%s", diff)
	}
}

func TestNew_RecordsTheOnlyAgentAllowed(t *testing.T) {
	in := newInput(t, contract.Classification{Intent: "pay", Domains: []string{"bills"}})
	in.OnlyAgent = "second"
	if d := plan.New(in).Decision; d.OnlyAgent != "second" || !cmp.Equal(d.Chosen, []string{"second"}) {
		t.Errorf("got only agent %q and chosen agents %v, want second", d.OnlyAgent, d.Chosen)
	}
}

func TestNew_OmitsSubtaskBeyondTopK(t *testing.T) {
	p := plan.New(newInput(t, contract.Classification{Intent: "pay", Domains: []string{"bills"}, Subtasks: []contract.Subtask{
		{Title: "pay"}, {Title: "count", Intent: "count", Domains: []string{"words"}},
	}}))
	if len(p.Parts) != 1 || len(p.Omitted) != 1 || p.Omitted[0].Subtask != 1 || p.Omitted[0].Reason != "topk_reached" {
		t.Errorf("got parts %+v, omitted %+v, want the second subtask omitted", p.Parts, p.Omitted)
	}
}

func TestRestore_ReturnsStoredParts(t *testing.T) {
	p := plan.New(newInput(t, contract.Classification{Intent: "pay", Domains: []string{"bills"}}))
	restored := plan.Restore(&requests.Record{Decision: &p.Decision, Parts: p.StoredParts()})
	if diff := cmp.Diff(p.StoredParts(), restored.StoredParts()); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
}

// Recheck uses the current registry, caller and text.
func TestRecheck_AppliesAllGates(t *testing.T) {
	const registry = "clients:\n  first: { match: { intent: [pay], domains: [bills] }, %s }\n"
	c := contract.Classification{Intent: "pay", Domains: []string{"bills"}}
	part := &plan.New(newInput(t, c)).Parts[0]
	for _, tt := range []struct {
		name, registry string
		change         func(*plan.Input)
		want           string
	}{
		{"unchanged", fmt.Sprintf(registry, "priority: 3"), nil, ""},
		{"another intent", "clients:\n  first: { match: { intent: [count], domains: [words] } }\n", nil, "declares neither"},
		{"one domain only", "clients:\n  first: { match: { intent: [count], domains: [bills] } }\n", nil, "is below the threshold"},
		{"a scope", fmt.Sprintf(registry, "requires: { scopes: [vip] }"), nil, "vip"},
		{"a tenant", fmt.Sprintf(registry, "requires: { tenants: [acme] }"), nil, "tenant"},
		{"data class", fmt.Sprintf(registry, "requires: { data_classes: [email] }"), nil, "email"},
		{"entitlement", fmt.Sprintf(registry, "priority: 3"), func(in *plan.Input) { in.Caller = &contract.Caller{} }, "needs scope agent:first"},
		{"confidence", fmt.Sprintf(registry, "priority: 3") + "routing: { min_confidence: 1 }\n", nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := newInputOf(t, tt.registry, c)
			if tt.change != nil {
				tt.change(in)
			}
			got := plan.Recheck(in, part, "first")
			if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestAggregate_IsPartialIfOnePartFails(t *testing.T) {
	p := &plan.Plan{}
	resp := p.Response(&contract.Request{RequestID: "r1"})
	p.Aggregate(resp, []plan.Outcome{
		{Report: contract.TaskReport{AgentID: "first", Status: contract.TaskSuccess}, Result: &contract.Result{Status: contract.ResultSuccess}},
		{Report: contract.TaskReport{AgentID: "second", Status: contract.TaskFailed}},
	})
	if resp.Status != contract.StatusPartial || len(resp.Tasks) != 2 || len(resp.Data.Results) != 1 {
		t.Errorf("got %s with %d tasks and %d results, want partial, 2 and 1", resp.Status, len(resp.Tasks), len(resp.Data.Results))
	}
}

// Several agents declare the intent, each for its own domains.
const apart = `clients:
  first:  {match: {intent: [pay], domains: [bills, rent]}, endpoint: {protocol: http, url: "http://127.0.0.1:1/"}}
  second: {match: {intent: [pay], domains: [taxes]}, endpoint: {protocol: http, url: "http://127.0.0.1:1/"}}
  third:  {match: {intent: [count], domains: [words]}, endpoint: {protocol: http, url: "http://127.0.0.1:1/"}}
`

func TestNew_AsksForDomain(t *testing.T) {
	pay := contract.Classification{Intent: "pay", Domains: []string{contract.Unknown}, Confidence: 0.9}
	with := func(change func(*contract.Classification)) contract.Classification {
		c := pay
		change(&c)
		return c
	}
	asked := "pay (bills), pay (taxes), pay (rent)"
	tests := []struct {
		name, registry string
		c              contract.Classification
		scopes         []string
		options        string
		reason         string
	}{
		{"no domain", apart, pay, nil, asked, "ambiguous"},
		{"a domain of another agent", apart, with(func(c *contract.Classification) { c.Domains = []string{"words"} }), nil, asked, "ambiguous"},
		{"a subtask with the same intent", apart, with(func(c *contract.Classification) {
			c.Subtasks = []contract.Subtask{{Title: "pay", Intent: "pay"}}
		}), nil, asked, "ambiguous"},
		{"domain of one agent", apart, with(func(c *contract.Classification) { c.Domains = []string{"rent"} }), nil, "", ""},
		{"low confidence", apart, with(func(c *contract.Classification) { c.Confidence = 0.3 }), nil, "", "no_match"},
		{"an unknown intent", apart, with(func(c *contract.Classification) { c.Intent = contract.Unknown }), nil, "", "no_match"},
		{"caller with one agent", apart, pay, []string{"agent:second"}, "", "no_match"},
		{"implied domains disabled", apart + "routing: {implied_domains: false}\n", pay, nil, "", "no_match"},
		{"intent alone reaches the threshold", apart + "routing: {confidence_threshold: 0.5}\n", pay, nil, "", ""},
		{"domain below the threshold", apart + "routing: {confidence_threshold: 0.9}\n", pay, nil, "", "no_match"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := newInputOf(t, tt.registry, tt.c)
			in.Classification.Confidence = tt.c.Confidence
			if tt.scopes != nil {
				in.Caller = &contract.Caller{Scopes: tt.scopes}
			}
			p := plan.New(in)
			var labels []string
			for _, o := range p.Options {
				labels = append(labels, o.Label)
			}
			if got := strings.Join(labels, ", "); got != tt.options || p.Reason != tt.reason {
				t.Errorf("got options %q, reason %q, want %q and %q", got, p.Reason, tt.options, tt.reason)
			}
		})
	}
}

// An option that only disabled agents serve is not offered if others remain to choose from.
func TestNew_OffersNoDisabledAgents(t *testing.T) {
	const registry = apart + `  fourth: {match: {intent: [pay], domains: [fees]}, endpoint: {protocol: http, url: "http://127.0.0.1:1/"}}
`
	pay := contract.Classification{Intent: "pay", Domains: []string{contract.Unknown}}
	for _, tt := range []struct{ disabled, want string }{
		{"", "1 pay (bills), 2 pay (fees), 3 pay (taxes), 4 pay (rent)"},
		{"fourth", "1 pay (bills), 2 pay (taxes), 3 pay (rent)"},
		{"third", "1 pay (bills), 2 pay (fees), 3 pay (taxes), 4 pay (rent)"},
		{"first fourth", "1 pay (bills), 2 pay (fees), 3 pay (taxes), 4 pay (rent)"}, // one would remain
	} {
		in := newInputOf(t, registry, pay)
		for _, a := range in.Index.Agents() {
			state := &matcher.LiveState{}
			if strings.Contains(tt.disabled, a.ID) {
				state.SetState(contract.AgentDisabled)
			}
			in.Live = append(in.Live, state)
		}
		var labels []string
		for _, o := range plan.New(in).Options {
			labels = append(labels, o.ID+" "+o.Label)
		}
		if got := strings.Join(labels, ", "); got != tt.want {
			t.Errorf("disabled %q: got %s, want %s", tt.disabled, got, tt.want)
		}
	}
}

// A domain that an intent implies is not part of the request: the options of other intents do not
// contain it.
func TestNew_OptionsHaveOwnImpliedDomains(t *testing.T) {
	named := contract.DomainOrigin{Domain: "rent", Origin: contract.DomainNamed}
	implied := contract.DomainOrigin{Domain: "words", Origin: contract.DomainImplied}
	tests := []struct {
		name    string
		domains []string
		origins []contract.DomainOrigin
		options string
	}{
		{"implied", []string{"words"}, []contract.DomainOrigin{implied}, "count (words), bill (prices)"},
		{"named and implied", []string{"rent", "words"}, []contract.DomainOrigin{named, implied}, "count (rent, words), bill (rent, prices)"},
		{"named", []string{"words"}, []contract.DomainOrigin{{Domain: "words", Origin: contract.DomainNamed}}, "count (words), bill (words, prices)"},
	}
	registry := apart + "  fourth: {match: {intent: [bill], domains: [prices]}, endpoint: {protocol: http, url: \"http://127.0.0.1:1/\"}}\n"
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := contract.Classification{
				Intent: "count", Domains: tt.domains, DomainOrigins: tt.origins,
				Alternatives: []contract.IntentScore{{Intent: "bill", Confidence: 0.35}},
			}
			in := newInputOf(t, registry, c)
			in.Classification.Confidence, in.Classification.Source = 0.4, contract.SourceLexical
			var labels []string
			for _, o := range plan.New(in).Options {
				labels = append(labels, o.Label)
			}
			if got := strings.Join(labels, ", "); got != tt.options {
				t.Errorf("got options %q, want %q", got, tt.options)
			}
		})
	}
}

func TestNew_OmitsPartWithoutDomain(t *testing.T) {
	p := plan.New(newInputOf(t, apart, contract.Classification{Intent: "count", Domains: []string{"words"}, Subtasks: []contract.Subtask{
		{Title: "count", Intent: "count"}, {Title: "pay", Intent: "pay"},
	}}))
	if len(p.Parts) != 1 || len(p.Omitted) != 1 || p.Omitted[0].Reason != "ambiguous" || p.Options != nil {
		t.Errorf("got parts %+v, omitted %+v, options %+v, want the second part omitted as ambiguous", p.Parts, p.Omitted, p.Options)
	}
}

func TestNew_TiesUncertainIntentsOfOneAgent(t *testing.T) {
	const registry = `clients:
  first:  {match: {intent: [pay, bill], domains: [money]}, endpoint: {protocol: http, url: "http://127.0.0.1:1/"}}
  second: {match: {intent: [count], domains: [words]}, endpoint: {protocol: http, url: "http://127.0.0.1:1/"}}
`
	tests := []struct {
		name         string
		alternatives []contract.IntentScore
		confidence   float64 // of the part, 0 if it is rejected
	}{
		{"sum above the threshold", []contract.IntentScore{{Intent: "bill", Confidence: 0.2}}, 0.6},
		{"sum below the threshold", []contract.IntentScore{{Intent: "bill", Confidence: 0.09}}, 0},
		{"unlikely alternative", []contract.IntentScore{{Intent: "count", Confidence: 0.1}, {Intent: "bill", Confidence: 0.07}}, 0},
		{"alternative of another agent", []contract.IntentScore{{Intent: "count", Confidence: 0.2}}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := newInputOf(t, registry, contract.Classification{Intent: "pay", Domains: []string{"money"}, Alternatives: tt.alternatives})
			in.Classification.Confidence, in.Classification.Source = 0.4, contract.SourceLexical
			p := plan.New(in)
			got := 0.0
			if len(p.Parts) == 1 {
				got = p.Parts[0].Confidence
			}
			if clf := &p.Decision.Classification; clf.TiedConfidence != tt.confidence {
				t.Errorf("got the sum %v of tied confidences, want %v", clf.TiedConfidence, tt.confidence)
			}
			if got != tt.confidence || p.Decision.Classification.Tied != (tt.confidence > 0) {
				t.Errorf("got confidence %v, tied %v, want %v", got, p.Decision.Classification.Tied, tt.confidence)
			}
		})
	}
}
