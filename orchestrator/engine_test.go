package orchestrator_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/orchestrator"
	"github.com/caprouter/caprouter/orchestrator/policy"
)

// eventsOf returns the names of the events of the record, with their steps.
func eventsOf(rec *orchestrator.Record) []string {
	var list []string
	for _, ev := range rec.Events {
		list = append(list, strings.TrimSpace(ev.Event+" "+ev.StepID))
	}
	return list
}

// A run that waits for an approval has no owner, so a process without a name would own all of these
// runs.
func TestNew_RequiresOwner(t *testing.T) {
	cfg := newHarness(t, newRecord(oneRead), nil).config
	cfg.Owner = ""
	if _, err := orchestrator.New(cfg); err == nil || !strings.Contains(err.Error(), "owner") {
		t.Errorf("got error %v, want one about the missing owner", err)
	}
}

const readThenWrite = `{"steps":[
	{"id":"a","action":"files.read","arguments":{"path":"x"},"success_criteria":[{"contains":"hello"}]},
	{"id":"b","action":"files.write","arguments":{"text":"got ${steps.a.output}","n":1},"success_criteria":[{"jsonpath":"$.ok","equals":true}]}]}`

func TestRun_ReachesDone(t *testing.T) {
	var inputs []string
	r := newHarness(t, newRecord(readThenWrite), func(_ context.Context, call *orchestrator.Call) (*contract.ActionResult, error) {
		inputs = append(inputs, call.Action+" "+string(call.Input))
		if call.StepID == "a" {
			return textResult("hello"), nil
		}
		return textResult(`{"ok":true}`), nil
	})
	rec := r.run(t)
	if rec.Status() != contract.OrchestrationDone || rec.Reason != "" {
		t.Errorf("got status %s (%s), want DONE: %+v", rec.Status(), rec.Reason, rec.Errors)
	}
	want := []string{
		"goal_accepted", "servers_listed", "auth_ok", "tool_schema_loaded", "plan_ready",
		"policy_allow a", "call_started a", "call_ok a", "calls_ended", "next_steps",
		"policy_allow b", "call_started b", "call_ok b", "calls_ended", "steps_done", "verify_ok", "committed",
	}
	if diff := cmp.Diff(want, eventsOf(rec)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{`files.read {"path":"x"}`, `files.write {"n":1,"text":"got hello"}`}, inputs); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"policy_allow a", "policy_allow b"}, r.audit.events); diff != "" {
		t.Errorf("audit log (-want +got):\n%s", diff)
	}
}

const (
	oneRead  = `{"steps":[{"id":"a","action":"files.read","arguments":{"path":"x"},"success_criteria":[{"contains":"hello"}]}]}`
	oneWrite = `{"steps":[{"id":"a","action":"files.write","arguments":{},"success_criteria":[{"contains":"hello"}]}]}`
)

func failure(code string) *contract.ActionError {
	return &contract.ActionError{Code: code, Message: "it failed", Severity: contract.SeveritySevere}
}

func TestRun_EndsWithReason(t *testing.T) {
	type answer = func(n int) (*contract.ActionResult, error)
	failWith := func(code string) answer {
		return func(int) (*contract.ActionResult, error) { return nil, failure(code) }
	}
	tests := []struct {
		name   string
		change func(r *harness, rec *orchestrator.Record)
		plan   string
		answer answer
		status contract.OrchestrationStatus
		reason contract.RunReason
		calls  int
	}{
		{name: "no servers", plan: oneRead, change: func(_ *harness, rec *orchestrator.Record) { rec.Goal.AvailableServers = []string{"other"} }, status: contract.OrchestrationDegraded, reason: contract.ReasonNoServers},
		{name: "no scope", plan: oneRead, change: func(_ *harness, rec *orchestrator.Record) { rec.Caller.AllScopes = false }, status: contract.OrchestrationBlocked, reason: contract.ReasonNotAuthorized},
		{name: "no plan", plan: ``, status: contract.OrchestrationDegraded, reason: contract.ReasonPlannerNotConfigured},
		{name: "extra key", plan: `{"steps":[],"more":1}`, status: contract.OrchestrationDegraded, reason: contract.ReasonPlanInvalid},
		{name: "unknown tool", plan: `{"steps":[{"id":"a","action":"files.delete","success_criteria":[{"contains":"x"}]}]}`, status: contract.OrchestrationDegraded, reason: contract.ReasonPlanInvalid},
		{name: "no criteria", plan: `{"steps":[{"id":"a","action":"files.read","arguments":{"path":"x"}}]}`, status: contract.OrchestrationDegraded, reason: contract.ReasonPlanInvalid},
		{name: "arguments", plan: `{"steps":[{"id":"a","action":"files.read","arguments":{"path":1},"success_criteria":[{"contains":"x"}]}]}`, status: contract.OrchestrationDegraded, reason: contract.ReasonSchemaInvalid},
		{name: "constraint", plan: oneRead, change: func(r *harness, rec *orchestrator.Record) {
			r.config.Enforcer = defaultPolicy()
			rec.Goal.Constraints.Deny = []string{"files.*"}
		}, status: contract.OrchestrationBlocked, reason: contract.ReasonPolicyBlocked},
		{name: "policy", plan: oneRead, change: func(r *harness, _ *orchestrator.Record) { r.config.Enforcer = judgeFunc(denyAll) }, status: contract.OrchestrationBlocked, reason: contract.ReasonPolicyBlocked},
		{name: "unattended gate", plan: oneRead, change: func(r *harness, _ *orchestrator.Record) {
			r.config.Enforcer, r.config.BlockGates = judgeFunc(gateAll), true
		}, status: contract.OrchestrationBlocked, reason: contract.ReasonGateUnattended},
		{name: "retries", plan: oneRead, answer: failWith(contract.ActionTimeout), status: contract.OrchestrationDegraded, reason: contract.ReasonRetryBudget, calls: 3},
		{name: "not repeatable", plan: oneWrite, answer: failWith(contract.ActionFailed), status: contract.OrchestrationDegraded, reason: contract.ReasonCallFailed, calls: 1},
		{name: "outcome unknown", plan: oneWrite, answer: failWith(contract.ActionOutcomeUnknown), status: contract.OrchestrationDegraded, reason: contract.ReasonOutcomeUnknown, calls: 1},
		{name: "bad result", plan: oneRead, answer: failWith(contract.ActionBadResult), status: contract.OrchestrationDegraded, reason: contract.ReasonSchemaInvalid, calls: 1},
		{name: "criteria", plan: oneRead, answer: func(int) (*contract.ActionResult, error) { return textResult("bye"), nil }, status: contract.OrchestrationFailed, reason: contract.ReasonVerificationFailed, calls: 1},
		{name: "repeated", plan: oneRead, answer: func(n int) (*contract.ActionResult, error) {
			if n < 3 {
				return nil, failure(contract.ActionUnavailable)
			}
			return textResult("hello"), nil
		}, status: contract.OrchestrationDone, calls: 3},
		{name: "plan only", plan: oneRead, change: func(_ *harness, rec *orchestrator.Record) { rec.Goal.Constraints.PlanOnly = true }, status: contract.OrchestrationDone},
	}
	for _, tt := range tests {
		t.Run(tt.name, inBubble(func(t *testing.T) {
			calls := 0
			rec := newRecord(tt.plan)
			r := newHarness(t, rec, func(context.Context, *orchestrator.Call) (*contract.ActionResult, error) {
				calls++
				return tt.answer(calls)
			})
			if tt.change != nil {
				tt.change(r, rec)
				r.store.data = r.store.encode(rec)
			}
			got := r.run(t)
			if got.Status() != tt.status || got.Reason != tt.reason || calls != tt.calls {
				t.Errorf("got %s (%s) after %d calls, want %s (%s) after %d: %+v", got.Status(), got.Reason, calls, tt.status, tt.reason, tt.calls, got.Errors)
			}
			if committed := slices.Contains(eventsOf(got), "committed"); committed != slices.Contains(eventsOf(got), "verify_ok") {
				t.Errorf("got committed %t without the verification: %v", committed, eventsOf(got))
			}
		}))
	}
}

// inBubble returns the test in a synctest bubble, so that its waits take no time.
func inBubble(test func(*testing.T)) func(*testing.T) {
	return func(t *testing.T) { synctest.Test(t, test) }
}

func defaultPolicy() *policy.Policy {
	p, err := policy.Default()
	if err != nil {
		panic(err)
	}
	return p
}
