package router_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
	"github.com/caprouter/caprouter/matcher"
	"github.com/caprouter/caprouter/router"
)

var update = flag.Bool("update", false, "rewrite want.json of the routing cases")

// TestRouter_RoutesCases routes testdata/cases/*.txtar. Each file says on top what it holds
// the router to, and has these sections:
//
//	registry.yaml         the registry (required)
//	config.json           of the router, see caseConfig; left out: all defaults
//	request.json          the body of POST /api/v1/route (required)
//	classification.json   what the classifier says; left out: the lexical one
//	agents.json           what each agent does with a task; left out: success
//	caller.json           who asks; left out: the local principal
//	down                  ids of agents whose breaker is open
//	want.json             the response, with ids counted and times at zero
//	calls                 the tasks that were given out, sorted (parts run in parallel)
//
// A conversation goes on with request2.json, and classification2.json,
// agents2.json, caller2.json, want2.json and calls2 beside it, and so on.
func TestRouter_RoutesCases(t *testing.T) {
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
	agents := &scriptedAgents{t: t, down: strings.Fields(string(sections["down"]))}
	said := &scriptedClassifier{}
	r := newCaseRouter(t, file, sections, agents, said)
	got := map[string]string{}
	for turn := 1; turn == 1 || sections[named("request", turn, ".json")] != nil; turn++ {
		agents.script, agents.calls = map[string]scriptedOutcome{}, nil
		decode(t, sections, named("agents", turn, ".json"), &agents.script)
		if name := named("classification", turn, ".json"); sections[name] != nil {
			said.says = contract.Classification{} // decoding would write into what is remembered
			decode(t, sections, name, &said.says)
		}
		resp, err := r.Handle(t.Context(), caseRequest(t, sections, turn), caseCaller(t, sections, turn))
		slices.Sort(agents.calls)
		got[named("want", turn, ".json")] = render(t, resp, err)
		got[named("calls", turn, "")] = strings.Join(agents.calls, "\n") + "\n"
	}
	if *update {
		rewrite(t, file, archive, got)
		return
	}
	for name := range got {
		if diff := cmp.Diff(string(sections[name]), got[name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// named is the name of a section of the turn: request.json, request2.json.
func named(what string, turn int, ext string) string {
	if turn == 1 {
		return what + ext
	}
	return what + strconv.Itoa(turn) + ext
}

// caseConfig is what a case may change of the router.
type caseConfig struct {
	Trigger         string `json:"trigger"`
	AnswerByDefault bool   `json:"answer_by_default"`
	Answer          string `json:"answer"` // of the model, for policy A; "" = there is no model
	AnswerReason    string `json:"answer_reason"`
}

func newCaseRouter(t *testing.T, file string, sections map[string][]byte, agents *scriptedAgents, said *scriptedClassifier) *router.Router {
	t.Helper()
	snapshot, err := capabilities.Parse(file+"/registry.yaml", sections["registry.yaml"])
	if err != nil {
		t.Fatal(err)
	}
	var c router.Classifier = said
	if _, ok := sections["classification.json"]; !ok {
		if c, err = classifier.New(classifier.Config{Mode: classifier.ModeLexical}); err != nil {
			t.Fatal(err)
		}
	}
	var cfg caseConfig
	decode(t, sections, "config.json", &cfg)
	ids := 0
	var mu sync.Mutex
	config := router.Config{
		SessionTrigger:  cfg.Trigger,
		AnswerByDefault: cfg.AnswerByDefault,
		Now:             func() time.Time { return caseTime },
		NewID: func() string {
			mu.Lock()
			defer mu.Unlock()
			ids++
			return fmt.Sprintf("id-%d", ids)
		},
	}
	if cfg.Answer != "" || cfg.AnswerReason != "" {
		config.Model = scriptedModel(cfg)
	}
	if strings.Contains(string(sections["request.json"]), "session_id") || sections["request2.json"] != nil {
		config.Storage.Sessions = openSessions(t)
	}
	r, err := router.New(config, c, agents)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(context.WithoutCancel(t.Context())) })
	r.SetView(router.NewView(snapshot, agents))
	return r
}

// openSessions is where the sessions of one test are remembered.
func openSessions(t testing.TB) *store.Bucket {
	t.Helper()
	b, err := teststore.Open(t).Bucket(t.Context(), store.BucketConfig{Name: "SESSIONS", MaxAge: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var caseTime = time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)

func caseRequest(t *testing.T, sections map[string][]byte, turn int) *contract.Request {
	t.Helper()
	req := &contract.Request{}
	decode(t, sections, named("request", turn, ".json"), req)
	req.RequestID, req.TraceID = named("request", turn, ""), strings.Repeat("0a", 16)
	return req
}

func caseCaller(t *testing.T, sections map[string][]byte, turn int) *contract.Caller {
	t.Helper()
	section, ok := sections[named("caller", turn, ".json")]
	if !ok {
		return &contract.Caller{Subject: "local", AllScopes: true, AllAgents: true}
	}
	var c struct {
		Subject, Tenant string
		Scopes          []string
	}
	if err := json.Unmarshal(section, &c); err != nil {
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
	if use := resp.Data.AnsweredBy; use != nil {
		for i := range use.Calls {
			use.Calls[i].LatencyMS = 0
		}
	}
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
func rewrite(t *testing.T, file string, archive *txtar.Archive, got map[string]string) {
	t.Helper()
	archive.Files = slices.DeleteFunc(archive.Files, func(f txtar.File) bool {
		return strings.HasPrefix(f.Name, "want") || strings.HasPrefix(f.Name, "calls")
	})
	for turn := 1; got[named("want", turn, ".json")] != ""; turn++ {
		for _, name := range []string{named("want", turn, ".json"), named("calls", turn, "")} {
			archive.Files = append(archive.Files, txtar.File{Name: name, Data: []byte(got[name])})
		}
	}
	if err := os.WriteFile(file, txtar.Format(archive), 0o600); err != nil {
		t.Fatal(err)
	}
}

// scriptedClassifier says one thing, as a model would.
type scriptedClassifier struct{ says contract.Classification }

func (c *scriptedClassifier) Classify(context.Context, classifier.Input) contract.Classification {
	return c.says
}

// scriptedModel answers for policy A.
type scriptedModel caseConfig

func (m scriptedModel) Provider() string { return "scripted" }
func (m scriptedModel) Model() string    { return "scripted-1" }

func (m scriptedModel) Generate(context.Context, *llm.Request) (*llm.Reply, error) {
	if m.AnswerReason != "" {
		return nil, &llm.Error{Reason: m.AnswerReason, Detail: "scripted"}
	}
	return &llm.Reply{Text: m.Answer, Tokens: contract.Tokens{Input: 100, Output: 20}}, nil
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
	words := []string{fmt.Sprintf("%s %s %v %q others=%d", call.Agent.ID, call.Task.Intent, call.Task.Domains, call.Task.SubtaskTitle, call.Standbys)}
	if call.Agent.Restore != nil {
		for _, name := range slices.Sorted(maps.Keys(call.Task.Inputs)) {
			words = append(words, fmt.Sprintf("%s=%s", name, call.Task.Inputs[name]))
		}
	}
	a.calls = append(a.calls, strings.Join(words, " "))
	if prompt := string(call.Task.Inputs["prompt"]); prompt == "" || prompt == `""` {
		a.t.Errorf("%s: got inputs %v, want the prompt in them", call.Agent.ID, call.Task.Inputs)
	}
	out, ok := a.script[call.Agent.ID]
	if !ok {
		out.Result = &contract.Result{Status: contract.ResultSuccess, Data: map[string]json.RawMessage{"answer": json.RawMessage(`"done by ` + call.Agent.ID + `"`)}}
	}
	return dispatch.Outcome{Result: out.Result, Err: out.Error, Attempts: 1, MayHaveExecuted: out.Uncertain}
}

func (a *scriptedAgents) CancelTask(call dispatch.Call) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, "stop "+call.Agent.ID)
}

func (a *scriptedAgents) SetAgents(agents []*contract.RegistryEntry) matcher.Live {
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

// TestRouter_SetsMissingIDs holds for a request that enters without an edge.
func TestRouter_SetsMissingIDs(t *testing.T) {
	sections := map[string][]byte{"registry.yaml": []byte(propertyRegistry)}
	r := newCaseRouter(t, "ids", sections, &scriptedAgents{t: t}, nil)
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
