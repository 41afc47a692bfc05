package router_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/fallback"
	"github.com/caprouter/caprouter/internal/execution"
	"github.com/caprouter/caprouter/internal/fallbackpolicy"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/modeltext"
	"github.com/caprouter/caprouter/router"
)

// recordingModel replies with a text, and keeps the request.
type recordingModel struct {
	reply string
	err   error
	got   []*llm.Request
}

func (m *recordingModel) Provider() string { return "scripted" }
func (m *recordingModel) Model() string    { return "scripted-1" }

func (m *recordingModel) Generate(_ context.Context, req *llm.Request) (*llm.Reply, error) {
	m.got = append(m.got, req)
	if m.err != nil {
		return nil, m.err
	}
	return &llm.Reply{Text: m.reply, Tokens: contract.Tokens{Input: 100, Output: 20}}, nil
}

// noAnswers is an AnswerLimit that is used up.
type noAnswers struct{}

func (noAnswers) Take(*contract.Caller) (contract.Limit, bool) { return contract.Limit{}, false }

func answerOf(text string) scriptedOutcome {
	data, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return scriptedOutcome{Result: &contract.Result{Status: contract.ResultSuccess, Data: map[string]json.RawMessage{"answer": data}}}
}

func TestRouter_SummarizesResults(t *testing.T) {
	const registry = `
clients:
  quality_agent: { match: { intent: [code_review], domains: [python] } }
  billing_agent: { match: { intent: [cost_analysis], domains: [azure] } }
`
	const both = "Review this python code and do a cost analysis of our azure bill"
	const sections = "## Review this python code (quality_agent)\n\nLine 3.\n\n## do a cost analysis of our azure bill (billing_agent)\n\n12 EUR, mail bob@example.com"
	full := map[string]scriptedOutcome{"quality_agent": answerOf("Line 3."), "billing_agent": answerOf("12 EUR, mail bob@example.com")}
	tests := []struct {
		name       string
		prompt     string
		agents     map[string]scriptedOutcome
		model      *recordingModel
		off        bool // the router joins texts
		limit      fallbackpolicy.AnswerLimit
		want       string // the answer
		wantReason string
		wantCalls  int
	}{
		{
			name: "two results", prompt: both, agents: full, model: &recordingModel{reply: "Fix line 3; it costs 12 EUR: ask [EMAIL_1]."},
			want: "Fix line 3; it costs 12 EUR: ask bob@example.com.", wantCalls: 1,
		},
		{
			name: "a link", prompt: both, agents: full, model: &recordingModel{reply: "[Pay](https://evil.example/?to=[EMAIL_1]) or ask [EMAIL_1]."},
			want: "[Pay](https://evil.example/?to=[EMAIL_1]) or ask bob@example.com.", wantCalls: 1,
		},
		{name: "not configured", prompt: both, agents: full, model: &recordingModel{reply: "x"}, off: true, want: sections},
		{name: "one result", prompt: "Review this python code", agents: full, model: &recordingModel{reply: "x"}, want: "Line 3."},
		{
			name: "one of two failed", prompt: both, model: &recordingModel{reply: "x"}, want: "Line 3.",
			agents: map[string]scriptedOutcome{"quality_agent": answerOf("Line 3."), "billing_agent": {Error: &contract.TaskError{Code: contract.TaskAgentUnavailable}}},
		},
		{name: "the model fails", prompt: both, agents: full, model: &recordingModel{err: &llm.Error{Reason: llm.ReasonTimeout}}, want: sections, wantReason: llm.ReasonTimeout, wantCalls: 1},
		{name: "an empty reply", prompt: both, agents: full, model: &recordingModel{reply: " \n"}, want: sections, wantReason: llm.ReasonEmpty, wantCalls: 1},
		{name: "no model", prompt: both, agents: full, want: sections, wantReason: llm.ReasonNotConfigured},
		{name: "limit of answers", prompt: both, agents: full, model: &recordingModel{reply: "x"}, limit: noAnswers{}, want: sections, wantReason: fallback.ReasonLimited},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var m modeltext.Model
			if tt.model != nil {
				m = tt.model
			}
			resp := routeWithSummary(t.Context(), t, registry, tt.prompt, router.Config{Model: m, Answers: tt.limit, SummarizeResults: !tt.off}, &scriptedAgents{t: t, script: tt.agents})
			if resp.Data.Answer != tt.want || resp.Data.DegradedReason != tt.wantReason || resp.Data.Degraded {
				t.Errorf("got the answer %q, reason %q; want %q, %q", resp.Data.Answer, resp.Data.DegradedReason, tt.want, tt.wantReason)
			}
			calls := 0
			if tt.model != nil {
				calls = len(tt.model.got)
			}
			if used := resp.Data.AnsweredBy != nil; calls != tt.wantCalls || used != (tt.wantCalls > 0) {
				t.Errorf("got %d calls, reported %v; want %d", calls, used, tt.wantCalls)
			}
			if _, timed := resp.Decision.TimingsMS["summarize"]; timed != (tt.wantCalls > 0 || tt.wantReason != "") {
				t.Errorf("got the time of a summary %v", timed)
			}
			if tt.prompt == both && len(resp.Data.Results) != len(resp.Tasks)-countErrors(resp.Tasks) {
				t.Errorf("got %d results of %d tasks, want all", len(resp.Data.Results), len(resp.Tasks))
			}
			if tt.wantCalls > 0 {
				req := tt.model.got[0]
				if text := req.User; strings.Contains(text, "bob@") || !strings.Contains(text, "[EMAIL_1]") || !strings.Contains(text, "cost analysis") || req.Purpose != contract.PurposeSummarize {
					t.Errorf("got %s %s, want the request and masked results", req.Purpose, text)
				}
			}
		})
	}
}

// disconnectingAgents cancels the request when it has both results.
type disconnectingAgents struct {
	*scriptedAgents
	disconnect context.CancelFunc
	sent       atomic.Int32
}

func (a *disconnectingAgents) Send(ctx context.Context, call dispatch.Call) dispatch.Outcome {
	out := a.scriptedAgents.Send(ctx, call)
	if a.sent.Add(1) == 2 {
		a.disconnect()
	}
	return out
}

func TestRouter_SummarizesNothingAfterCancellation(t *testing.T) {
	const registry = `
clients:
  quality_agent: { match: { intent: [code_review], domains: [python] } }
  billing_agent: { match: { intent: [cost_analysis], domains: [azure] } }
`
	ctx, disconnect := context.WithCancel(t.Context())
	agents := &disconnectingAgents{scriptedAgents: &scriptedAgents{t: t}, disconnect: disconnect}
	model := &recordingModel{reply: "x"}
	cfg := router.Config{Model: model, SummarizeResults: true}
	resp := routeWithSummary(ctx, t, registry, "Review this python code and do a cost analysis of our azure bill", cfg, agents)
	if len(resp.Data.Results) != 2 || resp.Data.DegradedReason != llm.OutcomeCancelled || len(model.got) > 0 {
		t.Errorf("got %d results, reason %q and %d calls of the model; want 2, cancelled, none", len(resp.Data.Results), resp.Data.DegradedReason, len(model.got))
	}
}

func countErrors(tasks []contract.TaskReport) (n int) {
	for i := range tasks {
		if tasks[i].Error != nil {
			n++
		}
	}
	return n
}

type liveAgents interface {
	execution.Dispatcher
	router.LiveSource
}

func routeWithSummary(ctx context.Context, t *testing.T, registry, prompt string, cfg router.Config, agents liveAgents) *contract.Response {
	t.Helper()
	snapshot, err := capabilities.Parse("registry.yaml", []byte(registry))
	if err != nil {
		t.Fatal(err)
	}
	c, err := classifier.New(classifier.Config{Mode: classifier.ModeLexical})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	r, err := router.New(cfg, c, agents)
	if err != nil {
		t.Fatal(err)
	}
	r.SetView(router.NewView(snapshot, agents))
	resp, err := r.Handle(ctx, &contract.Request{Content: contract.Content{Prompt: prompt}}, &contract.Caller{AllScopes: true, AllAgents: true})
	if err != nil {
		t.Fatal(err)
	}
	return resp
}
