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

// wholeResponseCases keep the whole response, to test its format: one case is dispatched, one is
// answered by a fallback.
var wholeResponseCases = []string{"two-agents", "fallback-a"}

var update = flag.Bool("update", false, "rewrite the expected results of the routing cases")

// TestRouter_RoutesCases routes testdata/cases/*.txtar. The comment of each file
// states the expected behaviour. The sections are:
//
//	registry.yaml         the registry (required)
//	config.json           configuration of the router, see caseConfig; default: all defaults
//	request.json          the body of POST /api/v1/route (required)
//	classification.json   the proposed classification; default: that of the lexical classifier
//	agents.json           the outcome of each agent's tasks; default: success
//	caller.json           the caller; default: the local principal
//	down                  ids of agents whose circuit breaker is open
//	want                  the expected response as a projection, see projectResponse
//	want.json             instead of want: the whole response (wholeResponseCases)
//	calls                 the tasks that were sent, sorted, because subtasks run in parallel
//
// Further turns of a conversation have the sections request2.json,
// classification2.json, agents2.json, caller2.json, want2 and calls2, and so on.
//
// Run the test with -update to rewrite the expected sections, and review the diff.
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
	scripted := &scriptedClassifier{}
	r := newCaseRouter(t, file, sections, agents, scripted)
	got := map[string]string{}
	for turn := 1; turn == 1 || sections[sectionName("request", turn, ".json")] != nil; turn++ {
		agents.script, agents.calls = map[string]scriptedOutcome{}, nil
		decode(t, sections, sectionName("agents", turn, ".json"), &agents.script)
		if name := sectionName("classification", turn, ".json"); sections[name] != nil {
			scripted.proposal = contract.Classification{} // decoding would write into the slices of the previous turn
			decode(t, sections, name, &scripted.proposal)
		}
		resp, err := r.Handle(t.Context(), caseRequest(t, sections, turn), caseCaller(t, sections, turn))
		slices.Sort(agents.calls)
		if err == nil && !strings.HasPrefix(resp.Decision.RegistryVersion, "sha256:") {
			t.Errorf("got registry version %q, want sha256:…", resp.Decision.RegistryVersion)
		}
		switch {
		case err != nil:
			got[sectionName("want", turn, "")] = "error: " + err.Error() + "\n"
		case slices.Contains(wholeResponseCases, strings.TrimSuffix(filepath.Base(file), ".txtar")):
			got[sectionName("want", turn, ".json")] = wholeResponse(t, resp)
		default:
			got[sectionName("want", turn, "")] = projectResponse(resp)
		}
		got[sectionName("calls", turn, "")] = strings.Join(agents.calls, "\n") + "\n"
	}
	if *update {
		rewriteCase(t, file, archive, got)
		return
	}
	for name := range got {
		if diff := cmp.Diff(string(sections[name]), got[name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// sectionName returns the name of a section of the turn: request.json, request2.json.
func sectionName(base string, turn int, ext string) string {
	if turn == 1 {
		return base + ext
	}
	return base + strconv.Itoa(turn) + ext
}

// caseConfig is the part of the configuration that a case can set.
type caseConfig struct {
	Trigger         string `json:"trigger"`
	AnswerByDefault bool   `json:"answer_by_default"`
	Answer          string `json:"answer"` // of the model by policy A; "" = no model
	AnswerReason    string `json:"answer_reason"`
}

func newCaseRouter(t *testing.T, file string, sections map[string][]byte, agents *scriptedAgents, scripted *scriptedClassifier) *router.Router {
	t.Helper()
	snapshot, err := capabilities.Parse(file+"/registry.yaml", sections["registry.yaml"])
	if err != nil {
		t.Fatal(err)
	}
	var c router.Classifier = scripted
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

// openSessions opens a store for the sessions of one test.
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
	decode(t, sections, sectionName("request", turn, ".json"), req)
	req.RequestID, req.TraceID = sectionName("request", turn, ""), strings.Repeat("0a", 16)
	return req
}

func caseCaller(t *testing.T, sections map[string][]byte, turn int) *contract.Caller {
	t.Helper()
	section, ok := sections[sectionName("caller", turn, ".json")]
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

// rewriteCase replaces the expected sections of the file by the results.
func rewriteCase(t *testing.T, file string, archive *txtar.Archive, got map[string]string) {
	t.Helper()
	archive.Files = slices.DeleteFunc(archive.Files, func(f txtar.File) bool {
		return strings.HasPrefix(f.Name, "want") || strings.HasPrefix(f.Name, "calls")
	})
	for turn := 1; turn == 1 || got[sectionName("calls", turn, "")] != ""; turn++ {
		for _, name := range []string{sectionName("want", turn, ""), sectionName("want", turn, ".json"), sectionName("calls", turn, "")} {
			if data, ok := got[name]; ok {
				archive.Files = append(archive.Files, txtar.File{Name: name, Data: []byte(data)})
			}
		}
	}
	if err := os.WriteFile(file, txtar.Format(archive), 0o600); err != nil {
		t.Fatal(err)
	}
}

// scriptedClassifier proposes a fixed classification.
type scriptedClassifier struct{ proposal contract.Classification }

func (c *scriptedClassifier) Classify(context.Context, classifier.Input) contract.Classification {
	return c.proposal
}

// scriptedModel answers by policy A.
type scriptedModel caseConfig

func (m scriptedModel) Provider() string { return "scripted" }
func (m scriptedModel) Model() string    { return "scripted-1" }

func (m scriptedModel) Generate(context.Context, *llm.Request) (*llm.Reply, error) {
	if m.AnswerReason != "" {
		return nil, &llm.Error{Reason: m.AnswerReason, Detail: "scripted"}
	}
	return &llm.Reply{Text: m.Answer, Tokens: contract.Tokens{Input: 100, Output: 20}}, nil
}

// scriptedOutcome is the outcome of a task in agents.json.
type scriptedOutcome struct {
	Result    *contract.Result    `json:"result"`
	Error     *contract.TaskError `json:"error"`
	Uncertain bool                `json:"uncertain"`
}

// scriptedAgents implements execution.Dispatcher and records the calls.
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
	if call.Divided {
		words = append(words, "divided")
	}
	if len(call.Task.Alternatives) > 0 {
		words = append(words, fmt.Sprintf("confidence=%v alternatives=%v", call.Task.Confidence, call.Task.Alternatives))
	}
	if len(call.Task.History) > 0 {
		words = append(words, fmt.Sprintf("history=%q", call.Task.History))
	}
	if call.Agent.Restore != nil {
		for _, name := range slices.Sorted(maps.Keys(call.Task.Inputs)) {
			words = append(words, fmt.Sprintf("%s=%s", name, call.Task.Inputs[name]))
		}
	}
	a.calls = append(a.calls, strings.Join(words, " "))
	if prompt := string(call.Task.Inputs["prompt"]); prompt == "" || prompt == `""` {
		a.t.Errorf("%s: got inputs %v, want the prompt among them", call.Agent.ID, call.Task.Inputs)
	}
	out, ok := a.script[call.Agent.ID]
	if !ok {
		out.Result = &contract.Result{Status: contract.ResultSuccess, Data: map[string]json.RawMessage{"answer": json.RawMessage(`"done by ` + call.Agent.ID + `"`)}}
	}
	return dispatch.Outcome{Result: out.Result, Err: out.Error, Attempts: 1, MayHaveExecuted: out.Uncertain}
}

func (*scriptedAgents) Prepare(context.Context, dispatch.Call) dispatch.Token {
	return dispatch.Token{}
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

// TestRouter_SetsMissingIDs sends a request that did not pass the HTTP server.
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
