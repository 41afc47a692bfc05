package router_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/matcher"
	"github.com/caprouter/caprouter/router"
)

const propertyRegistry = `
clients:
  a: {match: {intent: [review], domains: [python, go]}}
  b: {match: {intent: [review, cost], domains: [python, azure]}, requires: {scopes: [special]}}
  c: {match: {intent: [cost], domains: [azure, "*"]}}
  d: {match: {intent: [docs], domains: ["*"]}, constraints: {max_tokens: 3}}
  e: {match: {intent: [docs, review, cost], domains: [go, azure, python]}}
routing: {topk: 2}
`

// TestRouter_DispatchesOnlyWithinRules uses arbitrary classifications. Agents that get a task must
// be permitted, reach the threshold, and be at most top-k distinct ones. Every subtask must be
// executed or listed as omitted.
func TestRouter_DispatchesOnlyWithinRules(t *testing.T) {
	snapshot, err := capabilities.Parse("property.yaml", []byte(propertyRegistry))
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		clf := drawClassification(t)
		caller := drawCaller(t)
		agents := &recordingAgents{}
		r, err := router.New(router.Config{}, &scriptedClassifier{clf}, agents)
		if err != nil {
			t.Fatal(err)
		}
		r.SetView(router.NewView(snapshot, agents))
		req := &contract.Request{
			Content: contract.Content{Prompt: rapid.SampledFrom([]string{"short", strings.Repeat("long ", 20)}).Draw(t, "prompt")},
			Options: contract.Options{DryRun: rapid.Bool().Draw(t, "dry run")},
		}
		resp, err := r.Handle(t.Context(), req, caller)
		if err != nil {
			t.Fatalf("got error %v, want a response", err)
		}
		checkCalls(t, snapshot.Catalogue, req, caller, &clf, agents.calls)
		checkSubtasks(t, req, resp)
	})
}

func drawClassification(t *rapid.T) contract.Classification {
	intent := rapid.SampledFrom([]string{"review", "cost", "docs", contract.Unknown, "invented"})
	domains := rapid.SliceOfN(rapid.SampledFrom([]string{"python", "go", "azure", contract.Unknown, "*", "invented"}), 0, 3)
	clf := contract.Classification{
		Intent:     intent.Draw(t, "intent"),
		Domains:    domains.Draw(t, "domains"),
		Confidence: rapid.Float64Range(0, 1).Draw(t, "confidence"),
		Source:     rapid.SampledFrom([]contract.Source{contract.SourceLLM, contract.SourceLexical}).Draw(t, "source"),
	}
	for range rapid.IntRange(0, 3).Draw(t, "subtasks") {
		s := contract.Subtask{Title: "part"}
		if rapid.Bool().Draw(t, "own") {
			s.Intent, s.Domains = intent.Draw(t, "subtask intent"), domains.Draw(t, "subtask domains")
		}
		clf.Subtasks = append(clf.Subtasks, s)
	}
	return clf
}

func drawCaller(t *rapid.T) *contract.Caller {
	scopes := []string{"agent:a", "agent:b", "agent:c", "agent:d", "agent:e", "special"}
	return &contract.Caller{
		Subject:   "caller",
		Scopes:    rapid.SliceOfDistinct(rapid.SampledFrom(scopes), func(s string) string { return s }).Draw(t, "scopes"),
		AllAgents: rapid.Bool().Draw(t, "all agents"),
	}
}

func checkCalls(t *rapid.T, catalogue *capabilities.Catalogue, req *contract.Request, caller *contract.Caller, clf *contract.Classification, calls []dispatch.Call) {
	if req.Options.DryRun && len(calls) > 0 {
		t.Fatalf("got %d calls on a dry run, want none", len(calls))
	}
	var distinct []string
	for _, c := range calls {
		if !slices.Contains(distinct, c.Agent.ID) {
			distinct = append(distinct, c.Agent.ID)
		}
		if !caller.MayUse(c.Agent.ID) {
			t.Fatalf("got a task for %s, which the caller may not use", c.Agent.ID)
		}
		declared := catalogue.Agent(c.Agent.ID)
		for _, scope := range declared.Requires.Scopes {
			if !caller.HasScope(scope) {
				t.Fatalf("got a task for %s, which requires scope %s", c.Agent.ID, scope)
			}
		}
		if got := plainScore(declared, c.Task.Intent, c.Task.Domains, len(req.Content.Prompt)); got < 65 {
			t.Fatalf("got a task for %s with score %d for %s %v, want at least 65", c.Agent.ID, got, c.Task.Intent, c.Task.Domains)
		}
		if minConfidence := map[contract.Source]float64{contract.SourceLLM: 0.65, contract.SourceLexical: 0.5}[clf.Source]; clf.Confidence < minConfidence {
			t.Fatalf("got a task for %s with confidence %v, want at least %v", c.Agent.ID, clf.Confidence, minConfidence)
		}
	}
	if len(distinct) > 2 {
		t.Fatalf("got calls to %v, want at most topk = 2 distinct agents", distinct)
	}
}

// plainScore is an independent implementation of the score.
func plainScore(a *contract.RegistryEntry, intent string, domains []string, promptBytes int) int {
	score, left := 0, 0
	if slices.Contains(a.Match.Intent, intent) {
		score += 50
	}
	points := 0
	distinct := slices.Compact(slices.Sorted(slices.Values(domains)))
	for _, d := range distinct {
		if d != contract.AnyDomain && slices.Contains(a.Match.Domains, d) {
			points += 30
		} else {
			left++
		}
	}
	if left > 0 && slices.Contains(a.Match.Domains, contract.AnyDomain) {
		points += 30
	}
	score += min(points, 60)
	if a.Constraints.MaxTokens > 0 && (promptBytes+3)/4 > a.Constraints.MaxTokens {
		score -= 20
	}
	return score
}

// checkSubtasks fails if a subtask is neither among the tasks nor omitted.
func checkSubtasks(t *rapid.T, req *contract.Request, resp *contract.Response) {
	subtasks := len(resp.Decision.Classification.Subtasks)
	switch {
	case resp.Status == contract.StatusUnsupported, resp.Status == contract.StatusClarify, req.Options.DryRun:
		if len(resp.Tasks) > 0 {
			t.Fatalf("got tasks %v with status %s, want none", resp.Tasks, resp.Status)
		}
	case len(resp.Tasks)+len(resp.Omitted) != max(subtasks, 1):
		t.Fatalf("got %d tasks and %d omitted subtasks for %d subtasks", len(resp.Tasks), len(resp.Omitted), subtasks)
	case len(resp.Omitted) > 0 && resp.Status == contract.StatusCompleted:
		t.Fatalf("got completed with %v omitted, want partial", resp.Omitted)
	}
}

// recordingAgents return success and record the calls.
type recordingAgents struct {
	mu    sync.Mutex
	calls []dispatch.Call
}

func (a *recordingAgents) Send(_ context.Context, c dispatch.Call) dispatch.Outcome {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, c)
	return dispatch.Outcome{Result: &contract.Result{Status: contract.ResultSuccess}, Attempts: 1}
}

func (*recordingAgents) Prepare(context.Context, dispatch.Call) dispatch.Token {
	return dispatch.Token{}
}

func (a *recordingAgents) CancelTask(dispatch.Call) {}

func (a *recordingAgents) SetAgents(agents []*contract.RegistryEntry) matcher.Live {
	return make(matcher.Live, len(agents))
}
