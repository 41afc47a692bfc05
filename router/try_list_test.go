package router_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/router"
)

// The second example of cost_agent names no domain, so that no agent is eligible for it.
// gated_agent requires a scope.
const tryRegistry = `
clients:
  cost_agent:
    match: {intent: [cost_analysis], domains: [azure, aws]}
    examples: {cost_analysis: ["why is the bill so high", "how much did we spend on azure"]}
  gated_agent:
    match: {intent: [run_payroll], domains: [payroll]}
    examples: {run_payroll: ["run the payroll bill of this month"]}
    requires: {scopes: [payroll]}
routing: {implied_domains: false}
`

// A rejection recommends only examples for which the same caller would get an agent, and never the
// rejected text.
func TestRouter_RecommendsOnlyEligibleExamples(t *testing.T) {
	c, err := classifier.New(classifier.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, policy := range []string{"A", "B"} {
		snapshot, err := capabilities.Parse("try.yaml", []byte(tryRegistry+"fallback: {policy: "+policy+"}\n"))
		if err != nil {
			t.Fatal(err)
		}
		d := newDispatcher(t)
		r, err := router.New(router.Config{}, c, d)
		if err != nil {
			t.Fatal(err)
		}
		r.SetView(router.NewView(snapshot, d))
		payroll := []string{"run the payroll bill of this month"}
		azure := []string{"how much did we spend on azure"}
		ana := caller("ana", "route:submit", "agent:*")
		ana.AllAgents = true
		paymaster := caller("bob", "route:submit", "payroll", "agent:gated_agent")
		for _, tt := range []struct {
			prompt string
			caller *contract.Caller
			want   []string
		}{
			{"why is the bill so high", ana, azure},
			{"spend the bill", ana, azure},
			{"the bill", paymaster, payroll},
		} {
			resp, err := r.Handle(t.Context(), &contract.Request{Content: contract.Content{Prompt: tt.prompt}}, tt.caller)
			if err != nil {
				t.Fatal(err)
			}
			if resp.Data.Unsupported == nil {
				t.Fatalf("policy %s, %q: got %s, want a rejection", policy, tt.prompt, resp.Status)
			}
			if diff := cmp.Diff(tt.want, resp.Data.Examples); diff != "" {
				t.Errorf("policy %s, %q for %s (-want +got):\n%s", policy, tt.prompt, tt.caller.Subject, diff)
			}
		}
	}
}
