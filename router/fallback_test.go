package router_test

import (
	"context"
	"testing"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/router"
)

// left is a model whose caller disconnects during the call.
type left struct {
	leave context.CancelFunc
	reply *llm.Reply // returned nevertheless; nil = none
}

func (m *left) Provider() string { return "scripted" }
func (m *left) Model() string    { return "scripted-1" }

func (m *left) Generate(ctx context.Context, _ *llm.Request) (*llm.Reply, error) {
	m.leave()
	if m.reply != nil {
		return m.reply, nil
	}
	return nil, ctx.Err()
}

// TestRouter_CancelsFallbackAnswerIfCallerDisconnects: a request is
// cancelled if its caller disconnects before the model has answered.
func TestRouter_CancelsFallbackAnswerIfCallerDisconnects(t *testing.T) {
	for name, tc := range map[string]struct {
		reply  *llm.Reply
		before bool
		want   contract.Status
	}{
		"before the model is asked": {&llm.Reply{Text: "It is sunny."}, true, contract.StatusCancelled},
		"while the model thinks":    {nil, false, contract.StatusCancelled},
		"when the answer is there":  {&llm.Reply{Text: "It is sunny."}, false, contract.StatusCompleted},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			if tc.before {
				leave()
			}
			clf := contract.Classification{Intent: contract.Unknown, Source: contract.SourceLLM, Confidence: 0.9}
			r := answeringRouter(t, clf, &left{leave, tc.reply})
			resp, err := r.Handle(ctx, &contract.Request{Content: contract.Content{Prompt: "What is the weather like?"}}, &contract.Caller{})
			if err != nil {
				t.Fatal(err)
			}
			if resp.Status != tc.want || resp.Data.Degraded != (tc.want == contract.StatusCancelled) {
				t.Errorf("got %s, degraded by %q; want %s", resp.Status, resp.Data.DegradedReason, tc.want)
			}
		})
	}
}

// answeringRouter has policy A, a classifier with one proposal, and a model.
func answeringRouter(t *testing.T, clf contract.Classification, m fallback.Model) *router.Router {
	t.Helper()
	agents := &scriptedAgents{t: t}
	r, err := router.New(router.Config{Model: m, AnswerByDefault: true}, &scriptedClassifier{proposal: clf}, agents)
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := capabilities.Parse("registry.yaml", []byte(propertyRegistry))
	if err != nil {
		t.Fatal(err)
	}
	r.SetView(router.NewView(snapshot, agents))
	return r
}
