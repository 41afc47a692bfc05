package planner_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/llm/gemini"
	"github.com/caprouter/caprouter/internal/llm/genai"
	"github.com/caprouter/caprouter/internal/llm/openai"
	"github.com/caprouter/caprouter/internal/testkit/fakellm"
	"github.com/caprouter/caprouter/orchestrator"
	"github.com/caprouter/caprouter/orchestrator/planner"
)

const operatorKey = "operator-key-7Hs2Kd9Qm4"

func open(cfg llm.Config) (llm.Provider, error) {
	switch cfg.Provider {
	case "gemini":
		return gemini.New(cfg)
	case "genai":
		return genai.New(cfg)
	case "openai":
		return openai.New(cfg)
	}
	return nil, fmt.Errorf("no provider %q", cfg.Provider)
}

func newModels(t *testing.T, cfg planner.ModelsConfig) *planner.Models {
	t.Helper()
	cfg.Open, cfg.Mask = open, newMask(t)
	cfg.Settings.APIKey, cfg.Settings.KeyEnv = llm.NewSecret(operatorKey), "PLANNER_KEY"
	m, err := planner.NewModels(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// The operator's key is sent to the operator's endpoint, and never to one that a caller chooses,
// even if both are equal.
func TestModels_SendsOperatorKeyOnlyToOperatorEndpoint(t *testing.T) {
	for kind, protocol := range map[string]fakellm.Protocol{"gemini": fakellm.Gemini, "genai": fakellm.Gemini, "openai": fakellm.OpenAI} {
		t.Run(kind, func(t *testing.T) {
			script := fakellm.Always(fakellm.Text(goodPlan))
			operator := fakellm.Start(t, fakellm.Config{Protocol: protocol, Script: script, NoKey: true})
			other := fakellm.Start(t, fakellm.Config{Protocol: protocol, Script: script, NoKey: true})
			var labels []planner.ModelRef
			m := newModels(t, planner.ModelsConfig{
				Planner: planner.ModelRef{Kind: kind, Endpoint: operator.URL, Model: operator.Model}, EndpointsAllowed: []string{operator.URL, other.URL + "/"},
				Observe: func(ref planner.ModelRef, call llm.Call) {
					if call.Purpose == contract.PurposePlan && call.Outcome == contract.OutcomeOK {
						labels = append(labels, ref)
					}
				},
			})
			for _, c := range []struct {
				constraints contract.GoalConstraints
				server      *fakellm.Server
				withKey     bool
			}{
				{contract.GoalConstraints{}, operator, true},
				{contract.GoalConstraints{PlannerKind: kind, PlannerModel: operator.Model}, operator, true},
				{contract.GoalConstraints{PlannerKind: kind, PlannerEndpoint: other.URL, PlannerModel: other.Model}, other, false},
				{contract.GoalConstraints{PlannerEndpoint: operator.URL, PlannerModel: operator.Model}, operator, false},
			} {
				p, err := m.Planner(&c.constraints)
				if err != nil {
					t.Fatal(err)
				}
				before := len(c.server.Requests())
				if _, err := p.Plan(t.Context(), &orchestrator.PlanRequest{Goal: "g", Tools: tools("weather.query"), MaxSteps: 3}); err != nil {
					t.Fatal(err)
				}
				got := c.server.Requests()
				if len(got) != before+1 {
					t.Fatalf("got %d requests at the server, want one", len(got)-before)
				}
				last := got[len(got)-1]
				whole := fmt.Sprint(last.Header, last.URL, string(last.Body))
				if strings.Contains(whole, operatorKey) != c.withKey {
					t.Errorf("%+v: got the operator's key sent: %v, want %v", c.constraints, !c.withKey, c.withKey)
				}
			}
			if len(labels) != 4 || labels[2].Endpoint != other.URL || labels[0].Kind != kind {
				t.Errorf("got %+v observed, want the model of each call", labels)
			}
		})
	}
}

// An endpoint that is not on the list is rejected before a request is sent.
func TestModels_RejectsInvalidReferences(t *testing.T) {
	server := fakellm.Start(t, fakellm.Config{Protocol: fakellm.Gemini, NoKey: true})
	for _, tc := range []struct {
		name        string
		operator    planner.ModelRef
		constraints contract.GoalConstraints
		want        string
	}{
		{"endpoint not on the list", planner.ModelRef{Kind: "gemini"}, contract.GoalConstraints{PlannerEndpoint: server.URL}, "endpoints_allowed"},
		{"another path", planner.ModelRef{Kind: "gemini"}, contract.GoalConstraints{PlannerEndpoint: "https://allowed.example/v2"}, "endpoints_allowed"},
		{"another port", planner.ModelRef{Kind: "gemini"}, contract.GoalConstraints{PlannerEndpoint: "https://allowed.example:444/v1"}, "endpoints_allowed"},
		{"a user", planner.ModelRef{Kind: "gemini"}, contract.GoalConstraints{PlannerEndpoint: "https://allowed.example@evil.example/v1"}, "endpoints_allowed"},
		{"a suffix", planner.ModelRef{Kind: "gemini"}, contract.GoalConstraints{PlannerEndpoint: "https://allowed.example.evil.example/v1"}, "endpoints_allowed"},
		{"no planner", planner.ModelRef{}, contract.GoalConstraints{}, "constraints.plan (--plan)"},
		{"another kind without an endpoint", planner.ModelRef{Kind: "gemini"}, contract.GoalConstraints{PlannerKind: "openai"}, "constraints.planner_endpoint"},
		{"path as the model", planner.ModelRef{Kind: "gemini"}, contract.GoalConstraints{PlannerModel: "../../x"}, "cannot be used"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := newModels(t, planner.ModelsConfig{Planner: tc.operator, EndpointsAllowed: []string{"https://allowed.example/v1/"}})
			_, err := m.Planner(&tc.constraints)
			e, ok := errors.AsType[*orchestrator.PlanError](err)
			if !ok || e.Reason != contract.ReasonPlannerNotConfigured || !strings.Contains(e.Message, tc.want) {
				t.Errorf("got %v, want %s with %q", err, contract.ReasonPlannerNotConfigured, tc.want)
			}
		})
	}
	if n := len(server.Requests()); n != 0 {
		t.Errorf("got %d requests, want none", n)
	}
}

func TestModels_StaticAndDeterministic(t *testing.T) {
	m := newModels(t, planner.ModelsConfig{Planner: planner.ModelRef{Kind: "gemini"}})
	for name, c := range map[string]contract.GoalConstraints{
		"kind": {PlannerKind: contract.PlannerStatic}, "plan": {Plan: []byte(goodPlan)},
	} {
		if p, err := m.Planner(&c); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if _, ok := p.(orchestrator.Static); !ok {
			t.Errorf("%s: got a %T, want the static planner", name, p)
		}
	}
	if v, err := m.Verifier(&contract.GoalConstraints{}); err != nil {
		t.Error(err)
	} else if _, ok := v.(orchestrator.Deterministic); !ok {
		t.Errorf("got a %T, want the deterministic verifier", v)
	}
	if _, err := planner.NewModels(planner.ModelsConfig{Open: open, Mask: newMask(t), EndpointsAllowed: []string{"allowed.example"}}); err == nil {
		t.Error("got no error for an allowed endpoint without a scheme, want one")
	}
}

// All clients share one token budget.
func TestModels_SharedTokenBudget(t *testing.T) {
	server := fakellm.Start(t, fakellm.Config{Protocol: fakellm.OpenAI, Script: fakellm.Always(fakellm.Text(goodPlan)), NoKey: true})
	m := newModels(t, planner.ModelsConfig{
		Planner: planner.ModelRef{Kind: "openai", Endpoint: server.URL, Model: server.Model}, EndpointsAllowed: []string{server.URL},
		Client: llm.ClientConfig{Budget: &oneCall{}},
	})
	var reasons []string
	for _, c := range []contract.GoalConstraints{{}, {PlannerEndpoint: server.URL, PlannerModel: server.Model}} {
		p, err := m.Planner(&c)
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Plan(t.Context(), &orchestrator.PlanRequest{Goal: "g", Tools: tools("weather.query"), MaxSteps: 3})
		reasons = append(reasons, fmt.Sprint(err))
	}
	if reasons[0] != "<nil>" || !strings.Contains(reasons[1], llm.ReasonBudget) {
		t.Errorf("got %q, want a plan and %s", reasons, llm.ReasonBudget)
	}
}

// oneCall is a budget for one call.
type oneCall struct{ spent bool }

func (b *oneCall) Reserve(int) (adjust func(int), ok bool) {
	if b.spent {
		return nil, false
	}
	b.spent = true
	return func(int) {}, true
}
