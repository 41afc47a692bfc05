package router_test

import (
	"context"
	"testing"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/modeltext"
	"github.com/caprouter/caprouter/router"
)

// disconnectingModel is a model whose caller disconnects during the call.
type disconnectingModel struct {
	disconnect context.CancelFunc
	reply      *llm.Reply // returned in spite of it; nil = none
}

func (m *disconnectingModel) Provider() string { return "scripted" }
func (m *disconnectingModel) Model() string    { return "scripted-1" }

func (m *disconnectingModel) Generate(ctx context.Context, _ *llm.Request) (*llm.Reply, error) {
	m.disconnect()
	if m.reply != nil {
		return m.reply, nil
	}
	return nil, ctx.Err()
}

// A request is cancelled if its caller disconnects before the model has answered.
func TestRouter_CancelsFallbackAnswerIfCallerDisconnects(t *testing.T) {
	for name, tc := range map[string]struct {
		reply  *llm.Reply
		before bool
		want   contract.Status
	}{
		"disconnect before the call": {&llm.Reply{Text: "It is sunny."}, true, contract.StatusCancelled},
		"disconnect during the call": {nil, false, contract.StatusCancelled},
		"disconnect after the reply": {&llm.Reply{Text: "It is sunny."}, false, contract.StatusCompleted},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, disconnect := context.WithCancel(t.Context())
			defer disconnect()
			if tc.before {
				disconnect()
			}
			clf := contract.Classification{Intent: contract.Unknown, Source: contract.SourceLLM, Confidence: 0.9}
			r := newFallbackRouter(t, clf, &disconnectingModel{disconnect, tc.reply})
			resp, err := r.Handle(ctx, &contract.Request{Content: contract.Content{Prompt: "What is the weather like?"}}, &contract.Caller{})
			if err != nil {
				t.Fatal(err)
			}
			if resp.Status != tc.want || resp.Data.Degraded != (tc.want == contract.StatusCancelled) {
				t.Errorf("got %s, degraded reason %q; want %s", resp.Status, resp.Data.DegradedReason, tc.want)
			}
		})
	}
}

// newFallbackRouter returns a router with policy A, a classifier with one proposal, and a model.
func newFallbackRouter(t *testing.T, clf contract.Classification, m modeltext.Model) *router.Router {
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
