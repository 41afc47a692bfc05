package orchestrator_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/testkit/serversuite"
	"github.com/caprouter/caprouter/orchestrator"
)

// Every mistake in a plan has its pointer.
func TestCheckPlan_ReportsPointers(t *testing.T) {
	step := func(id, more string) string { return `{"id":"` + id + `","action":"files.read"` + more + `}` }
	for _, tt := range []struct{ name, steps, pointer, detail string }{
		{"no step", ``, "/steps", "at least one step"},
		{"invalid id", step("a b", ""), "/steps/0/id", "letters"},
		{"duplicate id", step("a", "") + "," + step("a", ""), "/steps/1/id", "step 0"},
		{"no server", `{"id":"a","action":"read"}`, "/steps/0/action", "server and a tool"},
		{"arguments", step("a", `,"arguments":[1]`), "/steps/0/arguments", "an object"},
		{"unknown dependency", step("a", `,"depends_on":["z"]`), "/steps/0/depends_on/0", "no step"},
		{"itself", step("a", `,"depends_on":["a"]`), "/steps/0/depends_on/0", "itself"},
		{"cycle", step("a", `,"depends_on":["b"]`) + "," + step("b", `,"depends_on":["a"]`), "/steps/0/depends_on", "depends on itself"},
		{"forward", step("a", `,"arguments":{"x":["${steps.b.output.y}"]}`) + "," + step("b", ""), "/steps/0/arguments/x/0", "not an earlier step"},
		{"unknown step", step("a", `,"arguments":{"x":"${steps.z.output}"}`), "/steps/0/arguments/x", "does not exist"},
		{"invalid reference", step("a", `,"arguments":{"x":"${steps.a.result}"}`), "/steps/0/arguments/x", "must have the form"},
		{"misspelt reference", step("a", `,"arguments":{"x":"${Step.a.output}"}`), "/steps/0/arguments/x", "must have the form"},
		{"two criteria", step("a", `,"success_criteria":[{"contains":"x","equals":1}]`), "/steps/0/success_criteria/0", "one of"},
		{"invalid path", step("a", `,"success_criteria":[{"jsonpath":"x","equals":1}]`), "/steps/0/success_criteria/0", "begin with $"},
		{"invalid schema", step("a", `,"success_criteria":[{"schema":{"type":7}}]`), "/steps/0/success_criteria/0", "schema"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			plan, mistakes := orchestrator.ParsePlan([]byte(`{"steps":[` + tt.steps + `]}`))
			if len(mistakes) == 0 {
				mistakes = orchestrator.CheckPlan(plan, orchestrator.PlanRules{MaxSteps: 5})
			}
			if len(mistakes) != 1 || mistakes[0].Pointer != tt.pointer || !strings.Contains(mistakes[0].Detail, tt.detail) {
				t.Errorf("got %+v, want %q at %s", mistakes, tt.detail, tt.pointer)
			}
		})
	}
}

// The same plan has the same mistakes in the same order, so that responses can be compared.
func TestCheckPlan_OrdersMistakes(t *testing.T) {
	plan, mistakes := orchestrator.ParsePlan([]byte(`{"steps":[{"id":"a","action":"files.read","arguments":{
		"c":"${steps.x.output}","a":"${steps.z.output}","b":["${steps.y.output}","${steps.x.output}"],"d":"${steps.x"}}]}`))
	if len(mistakes) > 0 {
		t.Fatal(mistakes)
	}
	const at = "/steps/0/arguments/"
	want := []string{at + "d", at + "b/1", at + "c", at + "b/0", at + "a"} // incomplete ones, then by step
	for range 20 {
		var got []string
		for _, m := range orchestrator.CheckPlan(plan, orchestrator.PlanRules{MaxSteps: 5}) {
			got = append(got, m.Pointer)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("pointers (-want +got):\n%s", diff)
		}
	}
}

func TestParsePlan_RejectsUnknownKeys(t *testing.T) {
	for text, pointer := range map[string]string{
		`{"steps":[],"note":"x"}`:                                                    "/note",
		`{"steps":[{"id":"a","action":"b.c","shell":"rm"}]}`:                         "/steps/0/shell",
		`{"steps":[{"id":"a","action":"b.c","mcp_action":"b.c"}]}`:                   "/steps/0/mcp_action",
		`{"steps":[{"id":"a","action":"b.c","success_criteria":[{"matches":"x"}]}]}`: "/steps/0/success_criteria/0/matches",
		`{"steps":[{"id":"a","action":"b.c","arguments":{},"entities":{}}]}`:         "/steps/0/entities",
		`{"steps":"` + strings.Repeat("x", contract.MaxPlanBytes) + `"}`:             "",
		`{"steps":[{"id":"a","action":"b.c","arguments":{"x":1,"x":2}}]}`:            "/steps/0/arguments/x",
	} {
		_, mistakes := orchestrator.ParsePlan([]byte(text))
		if len(mistakes) != 1 || mistakes[0].Pointer != pointer {
			t.Errorf("%.80s: got %+v, want a mistake at %q", text, mistakes, pointer)
		}
	}
	if _, mistakes := orchestrator.ParsePlan([]byte(`{"steps":[{"id":"a","shell":"rm"},{"id":1,"action":"b.c"}],"note":"x"}`)); len(mistakes) != 3 {
		t.Errorf("got %+v, want three mistakes", mistakes)
	}
	plan, mistakes := orchestrator.ParsePlan([]byte(`{"steps":[{"id":"a","mcp_action":"b.c","entities":{"x":1}}]}`))
	if len(mistakes) > 0 || plan.Steps[0].Action != "b.c" || string(plan.Steps[0].Arguments) != `{"x":1}` {
		t.Errorf("alternative names: got %+v %v", plan, mistakes)
	}
}

// FuzzParsePlan checks that no plan panics, and that a plan without mistakes can be ordered.
func FuzzParsePlan(f *testing.F) {
	f.Add([]byte(readThenWrite))
	f.Add([]byte(`{"steps":[{"id":"a","action":"b.c","arguments":{"x":"${steps.a.output['y'][0]}"}}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		plan, mistakes := orchestrator.ParsePlan(raw)
		if len(mistakes) == 0 {
			orchestrator.CheckPlan(plan, orchestrator.PlanRules{MaxSteps: 20, NeedCriteria: true})
		}
	})
}

func TestDeterministic_ChecksCriteria(t *testing.T) {
	text, structured := textResult(`{"items":[{"name":"x","n":1.0}]}`), textResult("t")
	structured.Structured = []byte(`{"a":"b"}`)
	for _, tt := range []struct {
		criterion string
		result    *contract.ActionResult
		want      bool
	}{
		{`{"contains":"name"}`, text, true},
		{`{"contains":"other"}`, text, false},
		{`{"jsonpath":"$.items[0].name","equals":"x"}`, text, true},
		{`{"jsonpath":"$.items[0].n","equals":1}`, text, true},
		{`{"jsonpath":"$.items[0].n","equals":2}`, text, false},
		{`{"jsonpath":"$.items[1]","equals":1}`, text, false},
		{`{"jsonpath":"$.items.-1","equals":1}`, text, false},
		{`{"jsonpath":"$.items['-1']","equals":1}`, text, false},
		{`{"jsonpath":"$['items'][0]['name']","equals":"x"}`, text, true},
		{`{"equals":{"items":[{"n":1,"name":"x"}]}}`, text, true},
		{`{"equals":{"a":"b"}}`, structured, true},
		{`{"schema":{"type":"object","required":["a"]}}`, structured, true},
		{`{"schema":{"type":"array"}}`, structured, false},
	} {
		plan, mistakes := orchestrator.ParsePlan([]byte(`{"steps":[{"id":"a","action":"b.c","success_criteria":[` + tt.criterion + `]}]}`))
		if len(mistakes) > 0 {
			t.Fatal(mistakes)
		}
		verdict, err := orchestrator.Deterministic{}.Verify(t.Context(), &orchestrator.VerifyRequest{
			Plan: plan, Outputs: []contract.ToolOutput{{StepID: "a", Status: contract.OutputOK, Result: tt.result}},
		})
		if err != nil || verdict.Passed != tt.want {
			t.Errorf("%s: got %+v and error %v, want %t", tt.criterion, verdict, err, tt.want)
		}
	}
}

// FuzzDeterministic checks that no criterion panics for any output.
func FuzzDeterministic(f *testing.F) {
	f.Add([]byte(`{"jsonpath":"$.items[0]['x'].-1","equals":1e5}`), []byte(`{"items":[{"x":[1]}]}`))
	f.Add([]byte(`{"equals":{"a":1.0}}`), []byte(`{"a":1}`))
	f.Add([]byte(`{"schema":{"type":"object"}}`), []byte(`[]`))
	f.Fuzz(func(t *testing.T, criterion, output []byte) {
		plan, mistakes := orchestrator.ParsePlan([]byte(`{"steps":[{"id":"a","action":"b.c","success_criteria":[` + string(criterion) + `]}]}`))
		if len(mistakes) > 0 || len(orchestrator.CheckPlan(plan, orchestrator.PlanRules{MaxSteps: 1})) > 0 {
			return
		}
		_, err := orchestrator.Deterministic{}.Verify(t.Context(), &orchestrator.VerifyRequest{
			Plan: plan, Outputs: []contract.ToolOutput{{StepID: "a", Status: contract.OutputOK, Result: &contract.ActionResult{Structured: output}}},
		})
		if err != nil {
			t.Errorf("got error %v, want a verdict", err)
		}
	})
}

// mapRegistry is a custom registry: tools by server.
type mapRegistry map[string][]string

func (m mapRegistry) ListServers(context.Context) ([]orchestrator.Server, error) {
	return []orchestrator.Server{{Name: "files"}, {Name: "mail"}}, nil
}

func (m mapRegistry) ListTools(_ context.Context, server string) ([]string, error) {
	if tools, ok := m[server]; ok {
		return tools, nil
	}
	return nil, orchestrator.ErrNotFound
}

func (m mapRegistry) GetToolSchema(_ context.Context, server, tool string) (*orchestrator.Tool, error) {
	if slices.Contains(m[server], tool) {
		return &orchestrator.Tool{Server: server, Name: tool}, nil
	}
	return nil, orchestrator.ErrNotFound
}

func TestServerRegistry_CanBeReplaced(t *testing.T) {
	own := mapRegistry{"files": {"read", "write"}, "mail": {"send"}}
	serversuite.Check(t, own)
	r := newHarness(t, newRecord(readThenWrite), func(_ context.Context, call *orchestrator.Call) (*contract.ActionResult, error) {
		if call.StepID == "a" {
			return textResult("hello"), nil
		}
		return textResult(`{"ok":true}`), nil
	})
	r.config.Registry = own
	if rec := r.run(t); rec.Status() != contract.OrchestrationDone {
		t.Errorf("got %s (%s), want DONE", rec.Status(), rec.Reason)
	}
}
