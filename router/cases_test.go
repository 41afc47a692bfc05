package router_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/matcher"
	"github.com/caprouter/caprouter/router"
)

var update = flag.Bool("update", false, "rewrite want.json of the routing cases")

// TestCases routes testdata/cases/*.txtar. Each file says on top what it holds
// the router to, and has these sections:
//
//	registry.yaml         the registry (required)
//	request.json          the body of POST /api/v1/route (required)
//	classification.json   what the classifier says; left out: the lexical one
//	agents.json           what each agent does with a task; left out: success
//	caller.json           who asks; left out: the local principal
//	down                  ids of agents whose breaker is open
//	want.json             the response, with ids counted and times at zero
//	calls                 the tasks that were given out, sorted (parts run in parallel)
func TestCases(t *testing.T) {
	files, err := filepath.Glob("testdata/cases/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { runCase(t, file) })
	}
}

func runCase(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string][]byte{}
	for _, f := range archive.Files {
		sections[f.Name] = f.Data
	}
	agents := &scriptedAgents{t: t, script: map[string]scriptedOutcome{}, down: strings.Fields(string(sections["down"]))}
	decode(t, sections, "agents.json", &agents.script)

	resp, err := newCaseRouter(t, file, sections, agents).Handle(t.Context(), caseRequest(t, sections), caseCaller(t, sections))
	slices.Sort(agents.calls)
	got := map[string]string{"want.json": render(t, resp, err), "calls": strings.Join(agents.calls, "\n") + "\n"}
	for _, name := range []string{"want.json", "calls"} {
		if *update {
			sections[name] = []byte(got[name])
			continue
		}
		if diff := cmp.Diff(string(sections[name]), got[name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if *update {
		rewrite(t, file, archive, sections)
	}
}

func newCaseRouter(t *testing.T, file string, sections map[string][]byte, agents *scriptedAgents) *router.Router {
	t.Helper()
	snapshot, err := capabilities.Parse(file+"/registry.yaml", sections["registry.yaml"])
	if err != nil {
		t.Fatal(err)
	}
	var c router.Classifier
	if c, err = classifier.New(classifier.Config{}); err != nil {
		t.Fatal(err)
	}
	if _, ok := sections["classification.json"]; ok {
		var scripted scriptedClassifier
		decode(t, sections, "classification.json", &scripted.says)
		c = scripted
	}
	ids := 0
	var mu sync.Mutex
	r, err := router.New(router.Config{
		Now: func() time.Time { return caseTime },
		NewID: func() string {
			mu.Lock()
			defer mu.Unlock()
			ids++
			return fmt.Sprintf("id-%d", ids)
		},
	}, c, agents)
	if err != nil {
		t.Fatal(err)
	}
	r.SetView(router.NewView(snapshot, agents))
	return r
}

var caseTime = time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)

func caseRequest(t *testing.T, sections map[string][]byte) *contract.Request {
	t.Helper()
	req := &contract.Request{}
	decode(t, sections, "request.json", req)
	req.RequestID, req.TraceID = "request", strings.Repeat("0a", 16)
	return req
}

func caseCaller(t *testing.T, sections map[string][]byte) *contract.Caller {
	t.Helper()
	if _, ok := sections["caller.json"]; !ok {
		return &contract.Caller{Subject: "local", AllScopes: true, AllAgents: true}
	}
	var c struct {
		Subject, Tenant string
		Scopes          []string
	}
	if err := json.Unmarshal(sections["caller.json"], &c); err != nil {
		t.Fatal(err)
	}
	return &contract.Caller{Subject: c.Subject, Tenant: c.Tenant, Scopes: c.Scopes}
}

func decode(t *testing.T, sections map[string][]byte, name string, v any) {
	t.Helper()
	data, ok := sections[name]
	if !ok {
		return
	}
	if err := strictjson.Unmarshal(data, v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// render prints a response with its times at zero, or the error.
func render(t *testing.T, resp *contract.Response, err error) string {
	t.Helper()
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	resp.Decision.Classification.LatencyMS = 0
	for stage := range resp.Decision.TimingsMS {
		resp.Decision.TimingsMS[stage] = 0
	}
	for i := range resp.Tasks {
		task := &resp.Tasks[i]
		task.LatencyMS, task.TaskID = 0, "task"
		for k := range task.FailedOver {
			task.FailedOver[k].TaskID, task.FailedOver[k].LatencyMS = "task", 0
		}
	}
	if !strings.HasPrefix(resp.Decision.RegistryVersion, "sha256:") {
		t.Errorf("got registry version %q, want sha256:…", resp.Decision.RegistryVersion)
	}
	resp.Decision.RegistryVersion = "sha256:…"
	data, err := json.MarshalIndent(resp, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data) + "\n"
}

// rewrite stores what came out as what is wanted; the diff gets reviewed.
func rewrite(t *testing.T, file string, archive *txtar.Archive, sections map[string][]byte) {
	t.Helper()
	kept := archive.Files[:0]
	for _, f := range archive.Files {
		if f.Name != "want.json" && f.Name != "calls" {
			kept = append(kept, f)
		}
	}
	archive.Files = append(kept,
		txtar.File{Name: "want.json", Data: sections["want.json"]},
		txtar.File{Name: "calls", Data: sections["calls"]})
	if err := os.WriteFile(file, txtar.Format(archive), 0o600); err != nil {
		t.Fatal(err)
	}
}

// scriptedClassifier says one thing, as a model would.
type scriptedClassifier struct{ says contract.Classification }

func (c scriptedClassifier) Classify(context.Context, classifier.Input) contract.Classification {
	return c.says
}

// scriptedOutcome is what a scripted agent makes of a task.
type scriptedOutcome struct {
	Result    *contract.Result    `json:"result"`
	Error     *contract.TaskError `json:"error"`
	Uncertain bool                `json:"uncertain"`
}

// scriptedAgents stand where dispatch does and note who was called.
type scriptedAgents struct {
	t      *testing.T
	script map[string]scriptedOutcome
	down   []string

	mu    sync.Mutex
	calls []string
}

func (a *scriptedAgents) Send(_ context.Context, call dispatch.Call) dispatch.Outcome {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, fmt.Sprintf("%s %s %v %q others=%d", call.Agent.ID, call.Task.Intent, call.Task.Domains, call.Task.SubtaskTitle, call.Others))
	if prompt := string(call.Task.Inputs["prompt"]); prompt == "" || prompt == `""` {
		a.t.Errorf("%s: got inputs %v, want the prompt in them", call.Agent.ID, call.Task.Inputs)
	}
	out, ok := a.script[call.Agent.ID]
	if !ok {
		out.Result = &contract.Result{Status: contract.ResultSuccess, Data: map[string]json.RawMessage{"answer": json.RawMessage(`"done by ` + call.Agent.ID + `"`)}}
	}
	return dispatch.Outcome{Result: out.Result, Err: out.Error, Attempts: 1, Uncertain: out.Uncertain}
}

func (a *scriptedAgents) Live(agents []*contract.RegistryEntry) matcher.Live {
	live := make(matcher.Live, len(agents))
	for i, agent := range agents {
		for _, id := range a.down {
			if id == agent.ID {
				live[i] = &matcher.LiveState{}
				live[i].SetOpenUntil(caseTime.Add(7 * time.Second).UnixMilli())
			}
		}
	}
	return live
}

// TestIDsAreMadeWhereNoneAre holds for a request that enters without an edge.
func TestIDsAreMadeWhereNoneAre(t *testing.T) {
	sections := map[string][]byte{"registry.yaml": []byte(propertyRegistry)}
	r := newCaseRouter(t, "ids", sections, &scriptedAgents{t: t})
	seen := map[string]bool{}
	for range 2 {
		resp, err := r.Handle(t.Context(), &contract.Request{Content: contract.Content{Prompt: "hello"}}, &contract.Caller{})
		if err != nil {
			t.Fatal(err)
		}
		if len(resp.TraceID) != 32 || seen[resp.TraceID] || resp.RequestID == "" {
			t.Errorf("got trace id %q and request id %q, want new ones", resp.TraceID, resp.RequestID)
		}
		seen[resp.TraceID] = true
	}
}
