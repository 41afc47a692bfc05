package orchestrator_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/orchestrator"
	"github.com/caprouter/caprouter/orchestrator/policy"
)

const testRegistry = `{"servers":[{"name":"files","tools":[
	{"name":"read","inputSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"],"additionalProperties":false},"repeatable":true},
	{"name":"write","inputSchema":{"type":"object"}}]},
	{"name":"mail","tools":[{"name":"send"}]}]}`

// memoryStore holds one record. It encodes it, so that callers do not share memory with it.
type memoryStore struct {
	t       testing.TB
	mu      sync.Mutex
	data    []byte
	onWrite func(rec *orchestrator.Record)
}

func newMemoryStore(t testing.TB, rec *orchestrator.Record) *memoryStore {
	s := &memoryStore{t: t}
	s.data = s.encode(rec)
	return s
}

func (s *memoryStore) encode(rec *orchestrator.Record) []byte {
	data, err := strictjson.Marshal(rec)
	if err != nil {
		s.t.Errorf("encode the record: %v", err)
	}
	return data
}

func (s *memoryStore) load() *orchestrator.Record {
	rec := new(orchestrator.Record)
	if err := strictjson.Unmarshal(s.data, rec); err != nil {
		s.t.Errorf("decode the record: %v", err)
	}
	if err := rec.Check(rec.ID); err != nil {
		s.t.Errorf("the record is inconsistent: %v", err)
	}
	return rec
}

func (s *memoryStore) Get() *orchestrator.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.load()
}

func (s *memoryStore) Update(_ context.Context, _ string, change func(*orchestrator.Record) error) (*orchestrator.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rec := s.load()
	if err := change(rec); err != nil {
		return s.load(), err
	}
	s.data = s.encode(rec)
	if s.onWrite != nil {
		s.onWrite(rec)
	}
	return s.load(), nil
}

type invokeFunc func(ctx context.Context, call *orchestrator.Call) (*contract.ActionResult, error)

func (f invokeFunc) Invoke(ctx context.Context, call *orchestrator.Call) (*contract.ActionResult, error) {
	return f(ctx, call)
}

type judgeFunc func(call *policy.Call) policy.Verdict

func (f judgeFunc) Judge(call *policy.Call) policy.Verdict { return f(call) }

func allowAll(*policy.Call) policy.Verdict {
	return policy.Verdict{Effect: policy.Allow, Rule: "test"}
}

// plannerFunc returns the next plan.
type plannerFunc func(req *orchestrator.PlanRequest) (*contract.Plan, error)

func (f plannerFunc) Plan(_ context.Context, req *orchestrator.PlanRequest) (*contract.Plan, error) {
	return f(req)
}

// staticModels use the plan of the goal, unless there is a planner.
type staticModels struct{ planner orchestrator.Planner }

func (m staticModels) Planner(c *contract.GoalConstraints) (orchestrator.Planner, error) {
	if m.planner != nil {
		return m.planner, nil
	}
	return orchestrator.Static{Raw: c.Plan}, nil
}

func (staticModels) Verifier(*contract.GoalConstraints) (orchestrator.Verifier, error) {
	return orchestrator.Deterministic{}, nil
}

// auditLog records the events of the policy.
type auditLog struct {
	mu     sync.Mutex
	events []string
}

func (a *auditLog) RecordRunEvent(_ context.Context, _ *orchestrator.Record, ev contract.RunEvent) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.events = append(a.events, ev.Event+" "+ev.StepID)
	return nil
}

const testOwner = "process-1"

func newRecord(plan string) *orchestrator.Record {
	now := time.Now()
	rec := &orchestrator.Record{
		Version: orchestrator.RecordVersion, ID: "run-1", State: orchestrator.StateInit, Owner: testOwner,
		Caller: contract.Caller{Subject: "ana", AllScopes: true}, CreatedAt: now, Deadline: now.Add(time.Minute),
		Goal:    contract.Goal{Goal: "a goal"},
		Planner: contract.RunModel{Kind: contract.PlannerStatic}, Verifier: contract.RunModel{Kind: contract.VerifierDeterministic},
	}
	if plan != "" {
		rec.Goal.Constraints.Plan = json.RawMessage(plan)
	}
	return rec
}

func textResult(text string) *contract.ActionResult {
	content, _ := strictjson.Marshal(text)
	return &contract.ActionResult{Type: contract.ActionText, Content: content, MIMEType: "text/plain"}
}

// harness is an Orchestrator with its fakes.
type harness struct {
	store  *memoryStore
	audit  auditLog
	config orchestrator.Config
}

func newHarness(t testing.TB, rec *orchestrator.Record, invoke invokeFunc) *harness {
	r := &harness{store: newMemoryStore(t, rec)}
	r.config = orchestrator.Config{
		Registry: registryOf(t, testRegistry), Invoker: invoke, Enforcer: judgeFunc(allowAll), Models: staticModels{}, Store: r.store,
		Auditor: &r.audit, Owner: testOwner, Budgets: orchestrator.Budgets{Steps: 10, Replans: 2, Retries: 2},
	}
	return r
}

func (r *harness) run(t testing.TB) *orchestrator.Record {
	t.Helper()
	o, err := orchestrator.New(r.config)
	if err != nil {
		t.Fatal(err)
	}
	rec, err := o.Run(t.Context(), r.store.Get())
	if err != nil {
		t.Fatalf("run: %v", err)
	}
	return rec
}
