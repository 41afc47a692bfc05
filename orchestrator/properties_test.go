package orchestrator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/orchestrator"
	"github.com/caprouter/caprouter/orchestrator/policy"
)

// scenario describes a random run.
type scenario struct {
	Budgets  orchestrator.Budgets
	Parallel int
	Static   bool           // the planner returns no other plan
	Plans    []scenarioPlan // the last one is repeated
	StopAt   int            // the process stops after this write of the record; 0 = it does not
}

type scenarioPlan struct {
	Rejected contract.RunReason // "" = valid
	Steps    []scenarioStep
}

type scenarioStep struct {
	Write    bool // its call must not be repeated
	After    []int
	Effect   policy.Effect
	Decision string   // about its gate; "" = none in time
	Outcomes []string // of its calls: a code, resultGood or resultBad; the last one is repeated
}

const (
	resultGood = "hello"
	resultBad  = "bye"
)

func drawScenario(t *rapid.T) *scenario {
	outcomes := append(slices.Repeat([]string{resultGood}, 20), resultBad, contract.ActionUnavailable, contract.ActionTimeout, contract.ActionFailed,
		contract.ActionOutcomeUnknown, contract.ActionBadResult, contract.ActionForbidden)
	effects := append(slices.Repeat([]policy.Effect{policy.Allow}, 8), policy.Gate, policy.Gate, policy.Gate, policy.Deny)
	step := rapid.Custom(func(t *rapid.T) scenarioStep {
		return scenarioStep{
			Write:    rapid.Bool().Draw(t, "write"),
			After:    rapid.SliceOfN(rapid.IntRange(0, 4), 0, 2).Draw(t, "after"),
			Effect:   rapid.SampledFrom(effects).Draw(t, "effect"),
			Decision: rapid.SampledFrom([]string{contract.GateApprove, contract.GateApprove, contract.GateApprove, contract.GateDeny, ""}).Draw(t, "decision"),
			Outcomes: rapid.SliceOfN(rapid.SampledFrom(outcomes), 1, 3).Draw(t, "outcomes"),
		}
	})
	plan := rapid.Custom(func(t *rapid.T) scenarioPlan {
		return scenarioPlan{
			Rejected: rapid.SampledFrom([]contract.RunReason{"", "", "", "", "", "", contract.ReasonPlanInvalid, contract.ReasonPlannerFailed}).Draw(t, "rejected"),
			Steps:    rapid.SliceOfN(step, 1, 5).Draw(t, "steps"),
		}
	})
	return &scenario{
		Budgets: orchestrator.Budgets{
			Steps: rapid.IntRange(1, 12).Draw(t, "steps"), Replans: rapid.IntRange(0, 3).Draw(t, "replans"), Retries: rapid.IntRange(0, 3).Draw(t, "retries"),
		},
		Parallel: rapid.IntRange(1, 3).Draw(t, "parallel"), Static: rapid.Bool().Draw(t, "static"),
		Plans: rapid.SliceOfN(plan, 1, 4).Draw(t, "plans"), StopAt: rapid.IntRange(0, 30).Draw(t, "stop"),
	}
}

// scenarioRun executes a scenario.
type scenarioRun struct {
	*scenario
	rig   *harness
	stops int
	stop  context.CancelFunc

	skipped time.Duration // by the clock of the run

	mu       sync.Mutex
	planned  int                 // requests for a plan
	recorded map[string][]string // the audited events of a step, by plan and step
	calls    map[string][]string // the outcomes of the calls of a step
	problems []string
}

func (s *scenarioRun) now() time.Time { return time.Now().Add(s.skipped) }

func (s *scenarioRun) problem(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

// key identifies a step of a plan, and is the argument of its call.
func key(plan int, step string) string { return fmt.Sprintf("%d-%s", plan, step) }

// spec returns the step of a key.
func (s *scenarioRun) spec(key string) *scenarioStep {
	var plan, step int
	_, _ = fmt.Sscanf(key, "%d-s%d", &plan, &step)
	return &s.Plans[min(plan, len(s.Plans))-1].Steps[step]
}

// Plan implements orchestrator.Planner.
func (s *scenarioRun) Plan(context.Context, *orchestrator.PlanRequest) (*contract.Plan, error) {
	s.planned++
	n := s.rig.store.Get().Plans + 1
	p := &s.Plans[min(n, len(s.Plans))-1]
	if p.Rejected != "" {
		return nil, &orchestrator.PlanError{Reason: p.Rejected, Message: "no plan"}
	}
	plan := &contract.Plan{}
	for i, spec := range p.Steps {
		id := fmt.Sprintf("s%d", i)
		step := contract.PlanStep{
			ID: id, Action: "files.read", Arguments: json.RawMessage(fmt.Sprintf(`{"path":%q}`, key(n, id))),
			SuccessCriteria: []contract.SuccessCriterion{{Contains: resultGood}},
		}
		if spec.Write {
			step.Action = "files.write"
		}
		for _, j := range spec.After {
			if other := fmt.Sprintf("s%d", j); j < i && !slices.Contains(step.DependsOn, other) {
				step.DependsOn = append(step.DependsOn, other)
			}
		}
		plan.Steps = append(plan.Steps, step)
	}
	return plan, nil
}

func keyOf(arguments json.RawMessage) string {
	var in struct {
		Path string `json:"path"`
	}
	_ = json.Unmarshal(arguments, &in) // the arguments of the plan
	return in.Path
}

// Judge implements orchestrator.Enforcer.
func (s *scenarioRun) Judge(call *policy.Call) policy.Verdict {
	return policy.Verdict{Effect: s.spec(keyOf(call.Arguments)).Effect, Rule: "test", Reason: "a test"}
}

// RecordRunEvent implements orchestrator.Auditor.
func (s *scenarioRun) RecordRunEvent(_ context.Context, rec *orchestrator.Record, ev contract.RunEvent) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := key(rec.Plans, ev.StepID)
	s.recorded[k] = append(s.recorded[k], ev.Event)
	return nil
}

// Invoke implements orchestrator.Invoker. It checks that the audit log permits the call.
func (s *scenarioRun) Invoke(_ context.Context, call *orchestrator.Call) (*contract.ActionResult, error) {
	k := keyOf(call.Input)
	spec := s.spec(k)
	s.mu.Lock()
	allowed, made := slices.Clone(s.recorded[k]), s.calls[k]
	outcome := spec.Outcomes[min(len(made), len(spec.Outcomes)-1)]
	s.calls[k] = append(made, outcome)
	s.mu.Unlock()
	if !slices.Contains(allowed, "policy_allow") || spec.Effect == policy.Deny || spec.Effect == policy.Gate && (spec.Decision != contract.GateApprove || !slices.Contains(allowed, "gate_approved")) {
		s.problem("the call of %s was made after the audited events %v; the policy effect is %s and the decision of the person %q", k, allowed, spec.Effect, spec.Decision)
	}
	if outcome == resultGood || outcome == resultBad {
		return textResult(outcome), nil
	}
	return nil, failure(outcome)
}

// execute runs the scenario to its end.
func (s *scenarioRun) execute(t *testing.T) *orchestrator.Record {
	writes := 0
	s.rig.store.onWrite = func(*orchestrator.Record) {
		if writes++; writes == s.StopAt {
			s.stops++
			s.stop()
		}
	}
	o, err := orchestrator.New(s.rig.config)
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		ctx, stop := context.WithCancel(t.Context())
		s.stop = stop
		rec, err := o.Run(ctx, s.rig.store.Get())
		stopped := ctx.Err() != nil
		stop()
		if rec.State.Terminal() {
			return rec
		}
		if err != nil && !stopped {
			s.problem("run: %v", err)
			return rec
		}
		if rec.Status() == contract.OrchestrationWaiting {
			s.decide()
		}
		_, err = s.rig.store.Update(t.Context(), rec.ID, func(r *orchestrator.Record) error {
			if r.Owner == "" && !r.NeedsWork(s.now()) {
				return errors.New("the decisions about its gates do not continue the run")
			}
			return r.TakeOver(testOwner, s.now())
		})
		if err != nil {
			s.problem("take over: %v", err)
			return rec
		}
	}
	s.problem("the run does not end")
	return s.rig.store.Get()
}

// decide decides every gate of a waiting run, or lets it expire.
func (s *scenarioRun) decide() {
	expire := false
	_, err := s.rig.store.Update(context.Background(), "run-1", func(r *orchestrator.Record) error {
		for i := range r.Steps {
			if r.Steps[i].State != orchestrator.StepGated {
				continue
			}
			decision := s.spec(key(r.Plans, r.Plan.Steps[i].ID)).Decision
			if g := r.OpenGate(r.Plan.Steps[i].ID); decision == "" {
				expire = true
			} else if g != nil {
				g.Decision, g.DecidedBy = decision, "bob"
			}
		}
		return nil
	})
	if err != nil {
		s.problem("decide: %v", err)
	}
	if expire {
		s.skipped += 2 * time.Hour
	}
}

// check checks a finished run.
func (s *scenarioRun) check(rec *orchestrator.Record) {
	replans := s.Budgets.Replans
	if s.Static {
		replans = 0
	}
	calls := 0
	for k, made := range s.calls {
		calls += len(made)
		executed := slices.DeleteFunc(slices.Clone(made), func(outcome string) bool { return outcome == contract.ActionUnavailable })
		if s.spec(k).Write && len(executed) > 1 {
			s.problem("the call of %s, which must not be repeated, was executed %d times", k, len(executed))
		}
	}
	switch {
	case rec.Plans > replans+1 || s.planned > replans+1+s.stops:
		s.problem("%d plans, of %d requests, exceed the budget", rec.Plans, s.planned)
	case len(rec.Outputs) > s.Budgets.Steps:
		s.problem("%d steps exceed the budget", len(rec.Outputs))
	case rec.Retries > s.Budgets.Retries || calls > s.Budgets.Steps+s.Budgets.Retries+s.stops*s.Parallel:
		s.problem("%d calls with %d retries exceed the budget", calls, rec.Retries)
	}
	events := slices.DeleteFunc(eventsOf(rec), func(ev string) bool { return ev == "resumed" })
	if i := slices.Index(events, "committed"); (i >= 0) != (rec.Status() == contract.OrchestrationDone) || i >= 0 && (i == 0 || events[i-1] != "verify_ok") {
		s.problem("status %s after the events %v", rec.Status(), events)
	}
	if rec.Status() != contract.OrchestrationDone {
		return
	}
	for i := range rec.Steps {
		if made := s.calls[key(rec.Plans, rec.Plan.Steps[i].ID)]; len(made) == 0 || made[len(made)-1] != resultGood {
			s.problem("the run is done, and step %d had the outcomes %v", i, made)
		}
	}
}

// For any behaviour of tools, policy and approvers, and for a process that stops at any point: a
// run ends within its budgets, every call is preceded by a permission in the audit log, a call that
// must not be repeated is not, and a run is committed only after its verification.
func TestRun_HoldsProperties(t *testing.T) {
	ends := map[contract.OrchestrationStatus]int{}
	rapid.Check(t, func(rt *rapid.T) {
		s := &scenarioRun{scenario: drawScenario(rt), recorded: map[string][]string{}, calls: map[string][]string{}}
		var got *orchestrator.Record
		synctest.Test(t, func(t *testing.T) {
			rec := newRecord("")
			if rec.Deadline = rec.CreatedAt.Add(time.Hour); !s.Static {
				rec.Planner.Kind = contract.PlannerGemini
			}
			s.rig = newHarness(t, rec, nil)
			s.rig.config.Invoker, s.rig.config.Enforcer, s.rig.config.Auditor = s, s, s
			s.rig.config.Models, s.rig.config.Budgets, s.rig.config.Parallel = staticModels{planner: s}, s.Budgets, s.Parallel
			s.rig.config.Now = s.now
			got = s.execute(t)
			s.check(got)
		})
		ends[got.Status()]++
		if len(s.problems) > 0 {
			rt.Fatalf("%s\nevents: %v", strings.Join(s.problems, "\n"), eventsOf(got))
		}
	})
	for _, status := range []contract.OrchestrationStatus{contract.OrchestrationDone, contract.OrchestrationBlocked, contract.OrchestrationDegraded} {
		if ends[status] == 0 && !t.Failed() {
			t.Errorf("got no run that ended as %s: %v", status, ends)
		}
	}
}
