package orchestrator_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/orchestrator"
	"github.com/caprouter/caprouter/orchestrator/policy"
)

func denyAll(*policy.Call) policy.Verdict {
	return policy.Verdict{Effect: policy.Deny, Rule: "test", Reason: "no"}
}

func gateAll(*policy.Call) policy.Verdict {
	return policy.Verdict{Effect: policy.Gate, Rule: "test", Reason: "ask"}
}

// A gate suspends the run; another process continues it after the decision.
func TestRun_WaitsForApproval(t *testing.T) {
	for decision, want := range map[string]contract.RunReason{contract.GateApprove: "", contract.GateDeny: contract.ReasonGateDenied} {
		t.Run(decision, func(t *testing.T) {
			calls := 0
			r := newHarness(t, newRecord(oneRead), func(context.Context, *orchestrator.Call) (*contract.ActionResult, error) {
				calls++
				return textResult("hello"), nil
			})
			r.config.Enforcer = judgeFunc(gateAll)
			rec := r.run(t)
			if rec.Status() != contract.OrchestrationWaiting || calls != 0 || rec.Owner != "" {
				t.Fatalf("got %s after %d calls, owner %q, want a waiting run", rec.Status(), calls, rec.Owner)
			}
			if rec.NeedsWork(r.store.Get().Gates[0].ExpiresAt.Add(-1)) || !rec.NeedsWork(rec.Gates[0].ExpiresAt) {
				t.Error("got a waiting run due before its gate expires, want it due then")
			}
			_, err := r.store.Update(t.Context(), "run-1", func(rec *orchestrator.Record) error {
				rec.OpenGate("a").DecidedBy = "bob"
				rec.OpenGate("a").Decision = decision
				return rec.TakeOver(testOwner, rec.CreatedAt)
			})
			if err != nil {
				t.Fatal(err)
			}
			got := r.run(t)
			if got.Reason != want || !got.State.Terminal() || (calls == 1) != (want == "") {
				t.Errorf("got %s (%s) after %d calls, want reason %q", got.Status(), got.Reason, calls, want)
			}
			for _, ev := range got.Events {
				if ev.Event == string(orchestrator.EventPolicyAllow) && (ev.By != "bob" || ev.Detail != "approved by bob" || ev.Rule != "test") {
					t.Errorf("got %+v, want an event with the person who approved", ev)
				}
			}
		})
	}
}

type auditFunc func(ev contract.RunEvent) error

func (f auditFunc) RecordRunEvent(_ context.Context, _ *orchestrator.Record, ev contract.RunEvent) error {
	return f(ev)
}

// A call is not made if its approval cannot be recorded in the audit log, and the run ends.
func TestRun_EndsIfApprovalIsNotRecorded(t *testing.T) {
	r := newHarness(t, newRecord(oneRead), func(context.Context, *orchestrator.Call) (*contract.ActionResult, error) {
		t.Error("got a call, want none")
		return textResult("hello"), nil
	})
	r.config.Enforcer = judgeFunc(gateAll)
	r.config.Auditor = auditFunc(func(ev contract.RunEvent) error {
		if ev.Event == string(orchestrator.EventGateApproved) {
			return errors.New("the disk is full")
		}
		return nil
	})
	r.run(t)
	_, err := r.store.Update(t.Context(), "run-1", func(rec *orchestrator.Record) error {
		rec.OpenGate("a").Decision = contract.GateApprove
		return rec.TakeOver(testOwner, rec.CreatedAt)
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.run(t); got.Reason != contract.ReasonAuditUnavailable || !got.State.Terminal() {
		t.Errorf("got %s (%s), want the reason %s", got.Status(), got.Reason, contract.ReasonAuditUnavailable)
	}
}

// gateFirst requires an approval for step a only.
func gateFirst(call *policy.Call) policy.Verdict {
	if strings.Contains(string(call.Arguments), "gated") {
		return gateAll(call)
	}
	return allowAll(call)
}

const gatedAndRead = `{"steps":[
	{"id":"a","action":"files.read","arguments":{"path":"gated"},"success_criteria":[{"contains":"hello"}]},
	{"id":"b","action":"files.read","arguments":{"path":"x"}}]}`

// The gates of a replaced plan do not receive the decisions for the gates of the new one.
func TestRun_ClosesGatesOfReplacedPlan(t *testing.T) {
	calls := 0
	rec := newRecord("")
	rec.Planner.Kind = contract.PlannerGemini
	r := newHarness(t, rec, func(context.Context, *orchestrator.Call) (*contract.ActionResult, error) {
		if calls++; calls == 1 {
			return nil, failure(contract.ActionBadResult)
		}
		return textResult("hello"), nil
	})
	r.config.Enforcer = judgeFunc(gateFirst)
	r.config.Models = staticModels{planner: plannerFunc(func(*orchestrator.PlanRequest) (*contract.Plan, error) {
		plan, _ := orchestrator.ParsePlan([]byte(gatedAndRead))
		return plan, nil
	})}
	waiting := r.run(t)
	if waiting.Status() != contract.OrchestrationWaiting || len(waiting.Gates) != 2 || waiting.Gates[0].Decision != contract.GateExpired {
		t.Fatalf("got %s with gates %+v, want the gate of the first plan closed, and one waiting", waiting.Status(), waiting.Gates)
	}
	_, err := r.store.Update(t.Context(), "run-1", func(rec *orchestrator.Record) error {
		rec.OpenGate("a").Decision = contract.GateApprove
		return rec.TakeOver(testOwner, rec.CreatedAt)
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.run(t); got.Status() != contract.OrchestrationDone {
		t.Errorf("got %s (%s), want DONE: %+v", got.Status(), got.Reason, got.Errors)
	}
}

// If a run is cancelled, or its process stops, while a gate is open, it does not wait for an
// approval: it ends, or another process makes the other calls.
func TestRun_EndsWithOpenGate(t *testing.T) {
	for _, cause := range []error{orchestrator.ErrCancelled, context.Canceled} {
		r := newHarness(t, newRecord(gatedAndRead), nil)
		r.config.Enforcer = judgeFunc(gateFirst)
		o, err := orchestrator.New(r.config)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		r.store.onWrite = func(rec *orchestrator.Record) {
			if rec.Events[len(rec.Events)-1].Event == string(orchestrator.EventGateOpened) {
				cancel(cause)
			}
		}
		rec, _ := o.Run(ctx, r.store.Get())
		if cancelled := errors.Is(cause, orchestrator.ErrCancelled); rec.Status() == contract.OrchestrationWaiting || (rec.Reason == contract.ReasonCancelled) != cancelled {
			t.Errorf("%v: got %s (%s), owner %q", cause, rec.Status(), rec.Reason, rec.Owner)
		}
	}
}
