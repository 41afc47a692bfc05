package orchestrator_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/orchestrator"
)

func TestRun_CountsStepsOfPlan(t *testing.T) {
	const readOnly = `{"steps":[{"id":"a","action":"files.read","arguments":{"path":"x"},"success_criteria":[{"contains":"hello"}]}]}`
	for plan, want := range map[string]string{readThenWrite: "2 steps", readOnly: "1 step"} {
		r := newHarness(t, newRecord(plan), func(context.Context, *orchestrator.Call) (*contract.ActionResult, error) {
			return textResult("hello"), nil
		})
		var details []string
		for _, ev := range r.run(t).Events {
			if ev.Event == "plan_ready" {
				details = append(details, ev.Detail)
			}
		}
		if diff := cmp.Diff([]string{want}, details); diff != "" {
			t.Errorf("details of plan_ready (-want +got):\n%s", diff)
		}
	}
}

// The mistake of a step names its tool, and the server that the caller's own goal leaves out. A
// task of an agent has no goal of the caller.
func TestRun_NamesToolThatIsNotThere(t *testing.T) {
	for _, tt := range []struct {
		name, action string
		available    []string
		agent        string
		detail       string
	}{
		{"unknown tool", "files.rename_all", nil, "", `there is no tool "files.rename_all", or it may not be called`},
		{"near tool", "files.raed", nil, "", `there is no tool "files.raed", or it may not be called; did you mean files.read?`},
		{"server left out", "mail.send", []string{"files"}, "", `the server of "mail.send" is not in available_servers (--server)`},
		{"unknown server left out", "secret.send", []string{"files"}, "", `the server of "secret.send" is not in available_servers (--server)`},
		{"task of an agent", "mail.send", []string{"files"}, "doer", `there is no tool "mail.send", or it may not be called`},
	} {
		t.Run(tt.name, inBubble(func(t *testing.T) {
			rec := newRecord(`{"steps":[{"id":"a","action":"` + tt.action + `","success_criteria":[{"contains":"x"}]}]}`)
			rec.Goal.AvailableServers, rec.Agent = tt.available, tt.agent
			r := newHarness(t, rec, func(context.Context, *orchestrator.Call) (*contract.ActionResult, error) {
				return textResult("hello"), nil
			})
			want := []contract.RunError{{
				Reason: contract.ReasonPlanInvalid, Message: "the plan does not match the tools",
				Details: []contract.ErrorDetail{{Pointer: "/steps/0/action", Detail: tt.detail}},
			}}
			if diff := cmp.Diff(want, r.run(t).Errors); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		}))
	}
}

// A model planner gets the failure, and makes another plan within the budget.
func TestRun_ReplansWithinBudget(t *testing.T) {
	plans := 0
	rec := newRecord("")
	rec.Planner.Kind = contract.PlannerGemini
	r := newHarness(t, rec, func(context.Context, *orchestrator.Call) (*contract.ActionResult, error) {
		return textResult("bye"), nil
	})
	r.config.Models = staticModels{planner: plannerFunc(func(req *orchestrator.PlanRequest) (*contract.Plan, error) {
		plans++
		if plans > 1 && (len(req.Problems) != plans-1 || len(req.Outputs) != plans-1) {
			t.Errorf("plan %d: got %d problems and %d outputs", plans, len(req.Problems), len(req.Outputs))
		}
		plan, mistakes := orchestrator.ParsePlan([]byte(oneRead))
		if len(mistakes) > 0 {
			t.Error(mistakes)
		}
		return plan, nil
	})}
	got := r.run(t)
	if plans != 3 || got.Reason != contract.ReasonVerificationFailed {
		t.Errorf("got %d plans and reason %q, want 3 and %s", plans, got.Reason, contract.ReasonVerificationFailed)
	}
}

// A rejected plan counts for the budget.
func TestRun_CountsRejectedPlans(t *testing.T) {
	plans := 0
	rec := newRecord("")
	rec.Planner.Kind = contract.PlannerGemini
	r := newHarness(t, rec, nil)
	r.config.Models = staticModels{planner: plannerFunc(func(*orchestrator.PlanRequest) (*contract.Plan, error) {
		plans++
		return nil, &orchestrator.PlanError{Reason: contract.ReasonPlanInvalid, Message: "no plan"}
	})}
	got := r.run(t)
	if plans != 3 || got.Reason != contract.ReasonPlanInvalid || got.Status() != contract.OrchestrationDegraded {
		t.Errorf("got %d plans and %s (%s), want 3 and DEGRADED (plan_invalid)", plans, got.Status(), got.Reason)
	}
}

// The planner gets the tools that the constraints permit.
func TestRun_PlansWithPermittedTools(t *testing.T) {
	for _, tc := range []struct {
		name        string
		allow, deny []string
		want        []string
	}{
		{name: "no constraints", want: []string{"files.read", "files.write", "mail.send"}},
		{name: "allowed server", allow: []string{"files.*"}, want: []string{"files.read", "files.write"}},
		{name: "allowed tool of any server", allow: []string{"*.send"}, want: []string{"mail.send"}},
		{name: "denied by a pattern in the middle", deny: []string{"f*.write"}, want: []string{"files.read", "mail.send"}},
		{name: "denied name", allow: []string{"*"}, deny: []string{"mail.send"}, want: []string{"files.read", "files.write"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rec := newRecord(oneRead)
			rec.Goal.Constraints.Allow, rec.Goal.Constraints.Deny, rec.Goal.Constraints.PlanOnly = tc.allow, tc.deny, true
			r := newHarness(t, rec, nil)
			var got []string
			r.config.Models = staticModels{planner: plannerFunc(func(req *orchestrator.PlanRequest) (*contract.Plan, error) {
				for _, tool := range req.Tools {
					got = append(got, tool.Action())
				}
				return orchestrator.Static{Raw: rec.Goal.Constraints.Plan}.Plan(t.Context(), req)
			})}
			r.run(t)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("tools (-want +got):\n%s", diff)
			}
		})
	}
}
