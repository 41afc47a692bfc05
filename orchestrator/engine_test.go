package orchestrator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// Servers without their credential are not named as connected.
func TestRun_NamesConnectedServersOnly(t *testing.T) {
	for needsAuth, suggestion := range map[string]string{
		"mail":       "connected are files",
		"files mail": "declare servers in the registry file of MCP servers, and check their status: caprouter mcp list",
	} {
		t.Run(needsAuth, inBubble(func(t *testing.T) {
			rec := newRecord(oneRead)
			rec.Goal.AvailableServers = []string{"database"}
			r := newHarness(t, rec, nil)
			registry := registryOf(t, testRegistry)
			for i := range registry {
				registry[i].NeedsAuth = slices.Contains(strings.Fields(needsAuth), registry[i].Name)
			}
			r.config.Registry = registry
			if got := r.run(t).Errors; len(got) != 1 || got[0].Suggestion != suggestion {
				t.Errorf("got %+v, want the suggestion %q", got, suggestion)
			}
		}))
	}
}

// A misspelt name in available_servers is reported as such, because servers are there.
func TestRun_SuggestsServerForUnknownOne(t *testing.T) {
	for wanted, suggestion := range map[string]string{
		"flies":    "did you mean files?",
		"database": "connected are files, mail",
	} {
		t.Run(wanted, inBubble(func(t *testing.T) {
			rec := newRecord(oneRead)
			rec.Goal.AvailableServers = []string{wanted}
			r := newHarness(t, rec, func(context.Context, *orchestrator.Call) (*contract.ActionResult, error) {
				return textResult("hello"), nil
			})
			want := []contract.RunError{{
				Reason: contract.ReasonNoServers, Message: "no server of available_servers is connected: " + wanted, Suggestion: suggestion,
			}}
			if diff := cmp.Diff(want, r.run(t).Errors); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		}))
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

// An interrupted call is repeated only if the tool is repeatable.
func TestRun_ResumesInterruptedCall(t *testing.T) {
	for plan, want := range map[string]contract.RunReason{oneRead: "", oneWrite: contract.ReasonOutcomeUnknown} {
		calls := 0
		r := newHarness(t, newRecord(plan), nil)
		crashed := fmt.Errorf("the process ends here")
		r.config.Invoker = invokeFunc(func(context.Context, *orchestrator.Call) (*contract.ActionResult, error) {
			calls++
			if calls == 1 {
				panic(crashed)
			}
			return textResult("hello"), nil
		})
		func() {
			defer func() { _ = recover() }()
			r.run(t)
		}()
		_, err := r.store.Update(t.Context(), "run-1", func(rec *orchestrator.Record) error { return rec.TakeOver(testOwner, rec.CreatedAt) })
		if err != nil {
			t.Fatal(err)
		}
		got := r.run(t)
		if got.Reason != want || !got.State.Terminal() || (calls == 2) != (want == "") {
			t.Errorf("got %s (%s) after %d calls, want reason %q", got.Status(), got.Reason, calls, want)
		}
	}
}

// A call that was certainly not made is repeated by the next process if this one stops before, for
// any tool.
func TestRun_ResumesRetry(t *testing.T) {
	calls := 0
	var o *orchestrator.Orchestrator
	r := newHarness(t, newRecord(oneWrite), func(context.Context, *orchestrator.Call) (*contract.ActionResult, error) {
		if calls++; calls == 1 {
			o.Drain()
			return nil, &contract.ActionError{Code: contract.ActionUnavailable, Severity: contract.SeveritySevere, Message: "the server is not connected"}
		}
		return textResult("hello"), nil
	})
	var err error
	if o, err = orchestrator.New(r.config); err != nil {
		t.Fatal(err)
	}
	if rec, err := o.Run(t.Context(), r.store.Get()); err == nil {
		t.Fatalf("got status %s of a run whose process stops, want an error", rec.Status())
	}
	_, err = r.store.Update(t.Context(), "run-1", func(rec *orchestrator.Record) error { return rec.TakeOver(testOwner, rec.CreatedAt) })
	if err != nil {
		t.Fatal(err)
	}
	if got := r.run(t); got.Status() != contract.OrchestrationDone || calls != 2 {
		t.Errorf("got %s (%s) after %d calls, want DONE after 2", got.Status(), got.Reason, calls)
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

// A call is not made if a reference in its arguments has no value, or if a short plan refers to a
// large output so often that the arguments would exceed the limits of memory or time.
func TestRun_ChecksReferences(t *testing.T) {
	text := strings.Repeat("x", 100_000)
	for _, tt := range []struct {
		name, output, reference string
		count                   int
		want                    string
	}{
		{"values too large", text, "${steps.a.output}", 20, "the values of the references are larger than 1048576 bytes"},
		{"search too long", `{"x":"` + text + `","y":1}`, "${steps.a.output.y}", 1000, "more than 67108864 bytes of outputs would be searched for the values of the references"},
		{"many small references", `{"y":1}`, "${steps.a.output.y}", 1000, ""},
		{"negative index", `[1]`, "${steps.a.output.-1}", 1, "the output has no value at ${steps.a.output.-1}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			plan := fmt.Sprintf(`{"steps":[
				{"id":"a","action":"files.read","arguments":{"path":"x"},"success_criteria":[{"schema":{}}]},
				{"id":"b","action":"files.write","arguments":{"list":[%q]}}]}`, strings.Repeat(tt.reference, tt.count))
			called := false
			r := newHarness(t, newRecord(plan), func(_ context.Context, call *orchestrator.Call) (*contract.ActionResult, error) {
				called = called || call.StepID == "b"
				return textResult(tt.output), nil
			})
			rec := r.run(t)
			var details []string
			for _, e := range rec.Errors {
				for _, d := range e.Details {
					details = append(details, d.Pointer+" "+d.Detail)
				}
			}
			if tt.want == "" {
				if !called || rec.Status() != contract.OrchestrationDone {
					t.Errorf("got status %s, call %t, want DONE after a call: %+v", rec.Status(), called, rec.Errors)
				}
				return
			}
			if called || rec.Reason != contract.ReasonSchemaInvalid {
				t.Errorf("got reason %q, call %t, want %q without a call", rec.Reason, called, contract.ReasonSchemaInvalid)
			}
			if diff := cmp.Diff([]string{"/steps/1/arguments/list/0 " + tt.want}, details); diff != "" {
				t.Errorf("details (-want +got):\n%s", diff)
			}
		})
	}
}

// Empty values of criteria and results are kept in the record.
func TestRun_ComparesEmptyValues(t *testing.T) {
	for _, tt := range []struct{ criterion, structured string }{
		{`{"equals":[]}`, `[]`},
		{`{"equals":{}}`, `{}`},
		{`{"jsonpath":"$.a","equals":""}`, `{"a":""}`},
		{`{"jsonpath":"$.a","equals":null}`, `{"a":null}`},
		{`{"schema":{}}`, `{"a":1}`},
	} {
		plan := fmt.Sprintf(`{"steps":[{"id":"a","action":"files.write","arguments":{},"success_criteria":[%s]}]}`, tt.criterion)
		r := newHarness(t, newRecord(plan), func(context.Context, *orchestrator.Call) (*contract.ActionResult, error) {
			return &contract.ActionResult{Type: contract.ActionToolResult, Content: json.RawMessage(`[]`), Structured: json.RawMessage(tt.structured)}, nil
		})
		rec := r.run(t)
		if rec.Status() != contract.OrchestrationDone {
			t.Errorf("%s: got status %s, want DONE: %+v", tt.criterion, rec.Status(), rec.Errors)
			continue
		}
		if got := string(rec.Outputs[0].Result.Structured); got != tt.structured {
			t.Errorf("%s: got the structured content %s, want %s", tt.criterion, got, tt.structured)
		}
	}
}
