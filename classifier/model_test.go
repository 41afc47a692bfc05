package classifier_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
)

// script is the behaviour of a fake model for its nth call, from 0.
type script func(ctx context.Context, nth int, req *llm.Request) (*llm.Reply, error)

// fakeModel follows a script and records its requests.
type fakeModel struct {
	do script

	mu       sync.Mutex
	requests []llm.Request
}

func (*fakeModel) Provider() string { return "fake" }
func (*fakeModel) Model() string    { return "fake-1" }

func (m *fakeModel) Generate(ctx context.Context, req *llm.Request) (*llm.Reply, error) {
	m.mu.Lock()
	nth := len(m.requests)
	m.requests = append(m.requests, *req)
	m.mu.Unlock()
	return m.do(ctx, nth, req)
}

func (m *fakeModel) received() []llm.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

func (m *fakeModel) calls() int { return len(m.received()) }

// replyTexts replies with the texts in turn, and repeats the last one.
func replyTexts(texts ...string) script {
	return func(_ context.Context, nth int, _ *llm.Request) (*llm.Reply, error) {
		return &llm.Reply{Text: texts[min(nth, len(texts)-1)], Tokens: contract.Tokens{Input: 100, Output: 20, Thinking: 5}}, nil
	}
}

// replySequence returns the replies in turn, and repeats the last one.
func replySequence(list ...llm.Reply) script {
	return func(_ context.Context, nth int, _ *llm.Request) (*llm.Reply, error) {
		r := list[min(nth, len(list)-1)]
		return &r, nil
	}
}

func failWith(err error) script {
	return func(context.Context, int, *llm.Request) (*llm.Reply, error) { return nil, err }
}

// after runs next when the gate opens, or ends with the context.
func after(gate <-chan struct{}, then script) script {
	return func(ctx context.Context, nth int, req *llm.Request) (*llm.Reply, error) {
		select {
		case <-gate:
			return then(ctx, nth, req)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// neverReply blocks until the context ends.
func neverReply() script { return after(nil, nil) }

// goodReply is valid for the registries of these tests.
const goodReply = `{"intent":"code_review","domains":["python"],"subtasks":[],"confidence":0.93}`

// open returns a classifier that is closed at the end of the test.
func open(t testing.TB, cfg classifier.Config) *classifier.Classifier {
	t.Helper()
	c, err := classifier.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// classifyOnce classifies one prompt with a scripted model.
func classifyOnce(t testing.TB, do script) (contract.Classification, *fakeModel) {
	t.Helper()
	m := &fakeModel{do: do}
	c := open(t, classifier.Config{Model: m})
	return c.Classify(t.Context(), input(sourceRegistry(), "review this python code")), m
}

// outcomes lists the calls as "purpose outcome".
func outcomes(clf *contract.Classification) []string {
	var list []string
	if clf.ModelUse != nil {
		for _, call := range clf.Calls {
			list = append(list, string(call.Purpose)+" "+call.Outcome)
		}
	}
	return list
}

// editReply changes one member of goodReply; nil removes it.
func editReply(t testing.TB, member string, value any) string {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(goodReply), &object); err != nil {
		t.Fatal(err)
	}
	object[member] = value
	if value == nil {
		delete(object, member)
	}
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// manyAgents returns a registry of n agents, each with its own intent and domain, and one intent in
// common.
func manyAgents(n int) *capabilities.Catalogue {
	agents := make([]*contract.RegistryEntry, n)
	for i := range agents {
		name := strings.Repeat(string(rune('a'+i%26)), 3+i/26)
		agents[i] = &contract.RegistryEntry{
			ID:    "agent_" + name,
			Match: contract.Match{Intent: []string{"do_" + name, "common_work"}, Domains: []string{"dom" + name, contract.AnyDomain}},
		}
	}
	slices.SortFunc(agents, func(a, b *contract.RegistryEntry) int { return strings.Compare(a.ID, b.ID) })
	return snapshot(agents...)
}
