package golden

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
)

// model is a fake model. say determines its replies; if it is nil, reply is
// used.
type model struct {
	reply string
	say   func(user string) (*llm.Reply, error)

	mu        sync.Mutex
	questions []string
}

func (m *model) Provider() string { return "fake" }
func (m *model) Model() string    { return "fake-1" }

func (m *model) Generate(_ context.Context, req *llm.Request) (*llm.Reply, error) {
	m.mu.Lock()
	m.questions = append(m.questions, req.User)
	m.mu.Unlock()
	if m.say != nil {
		return m.say(req.User)
	}
	return &llm.Reply{Text: m.reply, Tokens: contract.Tokens{Input: 10, Output: 5}}, nil
}

func (m *model) asked() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.questions)
}

const (
	readsCode  = `{"intent":"code_review","domains":["python"],"subtasks":[],"confidence":0.9}`
	readsCosts = `{"intent":"cost_analysis","domains":["azure"],"subtasks":[],"confidence":0.8}`
)

const recordedCases = `
cases:
  - { id: code, input: "please look at my module", expect: { agents: [quality_agent] } }
  - { id: costs, input: "why is the bill so high", expect: { agents: [billing_agent] } }
  - { id: garbled, input: "garble this", expect: { outcome: fallback, reason: llm_invalid_json } }
  - { id: blocked, input: "block this", expect: { outcome: fallback, reason: llm_blocked } }
  - { id: scripted, input: "scripted", expect: { outcome: fallback, reason: llm_empty }, llm: "" }
`

// sayings returns the replies for recordedCases.
func sayings(user string) (*llm.Reply, error) {
	switch {
	case strings.Contains(user, "please look at my"):
		return &llm.Reply{Text: readsCode, Tokens: contract.Tokens{Input: 100, Output: 20}}, nil
	case strings.Contains(user, "why is the bill"):
		return &llm.Reply{Text: readsCosts}, nil
	case strings.Contains(user, "garble this"):
		return &llm.Reply{Text: "the key is sk-secret-123"}, nil
	}
	return nil, &llm.Error{Reason: llm.ReasonBlocked, Detail: "the maker's filters held back the prompt: SAFETY"}
}

func scrub(s string) string { return strings.ReplaceAll(s, "sk-secret-123", "<redacted>") }

func record(t *testing.T, m classifier.Model, rc RecordConfig, cases []Case) *RecordResult {
	t.Helper()
	rc.Scrub = scrub
	made, err := Record(t.Context(), Config{Registry: registry(t), Cases: cases, Classifier: classifier.Config{Model: m}}, rc)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func written(t *testing.T, c *Cassette) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := c.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRecord_Replay(t *testing.T) {
	cases := parse(t, recordedCases)
	live := &model{say: sayings}
	made := record(t, live, RecordConfig{}, cases)
	for _, f := range failures(made.Report) {
		t.Error("recording: " + f)
	}
	// One interaction per unscripted case, and the repair of the invalid one.
	if made.Asked != 5 || made.Reused != 0 || len(made.Failed) > 0 || made.Cassette.Len() != 5 {
		t.Errorf("got %d asked, %d reused, failed %v, %d recordings; want 5, 0, none, 5", made.Asked, made.Reused, made.Failed, made.Cassette.Len())
	}
	file := written(t, made.Cassette)
	if bytes.Contains(file, []byte("sk-secret")) || bytes.Contains(file, []byte("please look at")) {
		t.Errorf("the cassette holds a key or a question:\n%s", file)
	}
	read, err := parseCassette("c.jsonl", file)
	if err != nil {
		t.Fatal(err)
	}
	if again := written(t, read); !bytes.Equal(file, again) {
		t.Errorf("the cassette is another one when it is read back:\n%s", cmp.Diff(string(file), string(again)))
	}

	first := run1(t, Config{Cases: cases, Cassette: read})
	for _, f := range failures(first) {
		t.Error("replay: " + f)
	}
	if diff := cmp.Diff(Classifier{Mode: "llm", Provider: "fake", Model: "fake-1", PromptVersion: "router/1"}, first.Classifier); diff != "" {
		t.Errorf("classifier (-want +got):\n%s", diff)
	}
	if second := run1(t, Config{Cases: cases, Cassette: read, Workers: 1}); !bytes.Equal(bytesOf(t, first), bytesOf(t, second)) {
		t.Error("two replays are not the same bytes")
	}
	if n := len(live.asked()); n != 5 {
		t.Errorf("the model was asked %d times, want 5: a replay asks nobody", n)
	}
}

func TestRun_CassetteWithoutReply(t *testing.T) {
	cases := parse(t, recordedCases)
	c := record(t, &model{say: sayings}, RecordConfig{}, cases[:1]).Cassette
	r := run1(t, Config{Cases: cases[:2], Cassette: c})
	want := []string{"costs: the cassette has no reply to this model request: record it again (caprouter golden record)"}
	if diff := cmp.Diff(want, failures(r)); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
	other := changed(t, func(s *capabilities.Catalogue) { s.Agents, s.Learned = s.Agents[1:], s.Learned[1:] })
	if f := failures(run1(t, Config{Registry: other, Cases: cases[:1], Cassette: c})); len(f) != 1 {
		t.Errorf("over another registry: got failures %q, want the one: what is asked is another question", f)
	}
}

func TestRecord_ReusesExisting(t *testing.T) {
	cases := parse(t, recordedCases)
	known := record(t, &model{say: sayings}, RecordConfig{}, cases[:2]).Cassette
	other := &model{reply: readsCosts}

	made := record(t, other, RecordConfig{Existing: known}, cases[1:3])
	if made.Asked != 1 || made.Reused != 1 || made.Cassette.Len() != 2 || made.Dropped != 1 {
		t.Errorf("got %d asked, %d reused, %d recordings, %d dropped; want 1, 1, 2, 1: the unused one goes",
			made.Asked, made.Reused, made.Cassette.Len(), made.Dropped)
	}
	made = record(t, other, RecordConfig{Existing: known, Overwrite: true}, cases[:2])
	if made.Asked != 2 || made.Reused != 0 {
		t.Errorf("again: got %d asked, %d reused; want 2, 0", made.Asked, made.Reused)
	}
}

func TestRecord_KeepsInteractionsWhenModelFails(t *testing.T) {
	cases := parse(t, recordedCases)[:2]
	known := record(t, &model{say: sayings}, RecordConfig{}, cases).Cassette
	down := &model{say: func(user string) (*llm.Reply, error) {
		if strings.Contains(user, "please look at my") {
			return nil, &llm.Error{Reason: llm.ReasonUnauthorized, Detail: "key sk-secret-123 was refused"}
		}
		return &llm.Reply{Text: readsCode}, nil
	}}
	made := record(t, down, RecordConfig{Existing: known, Overwrite: true}, cases)
	if diff := cmp.Diff(map[string]int{"llm_unauthorized: key <redacted> was refused": 1}, made.Failed); diff != "" {
		t.Errorf("failed (-want +got):\n%s", diff)
	}
	if made.Cassette.Len() != 2 {
		t.Errorf("got %d recordings, want 2: the old one of what failed, and the new one", made.Cassette.Len())
	}
	if made = record(t, down, RecordConfig{}, cases[:1]); made.Cassette != nil {
		t.Errorf("got a cassette of %d, want none: there is nothing to write", made.Cassette.Len())
	}
}

// A partial run keeps the interactions of other cases.
func TestRecord_PartialKeepsTheRest(t *testing.T) {
	cases := parse(t, recordedCases)
	known := record(t, &model{say: sayings}, RecordConfig{}, cases).Cassette
	for _, again := range []bool{false, true} {
		made := record(t, &model{say: sayings}, RecordConfig{Existing: known, Overwrite: again, Partial: true}, cases[:1])
		if made.Cassette.Len() != known.Len() || made.Dropped != 0 {
			t.Errorf("again %v: got %d recordings, %d dropped; want all %d, 0", again, made.Cassette.Len(), made.Dropped, known.Len())
		}
	}
}

// A cassette of another model is not replaced, and no call is made.
func TestRecord_RejectsOtherModel(t *testing.T) {
	cases := parse(t, recordedCases)[:1]
	known := &Cassette{provider: "fake", model: "fake-0", interactions: map[string]Interaction{"k": {Key: "k"}}}
	m := &model{reply: readsCode}
	_, err := Record(t.Context(), Config{Registry: registry(t), Cases: cases, Classifier: classifier.Config{Model: m}}, RecordConfig{Existing: known})
	other, ok := errors.AsType[*ModelMismatchError](err)
	if !ok || other.Cassette != "fake fake-0" || other.Asked != "fake fake-1" || len(m.asked()) > 0 {
		t.Errorf("got %v and %d questions, want an *OtherModelError with both models, and none", err, len(m.asked()))
	}
}

func TestRecord_Interrupted(t *testing.T) {
	cases := parse(t, recordedCases)[:2]
	known := record(t, &model{say: sayings}, RecordConfig{}, cases).Cassette
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	made, err := Record(ctx, Config{
		Registry: registry(t), Cases: cases, Workers: 1, Classifier: classifier.Config{Model: &model{reply: readsCosts}},
		Progress: func(int, int) { cancel() },
	}, RecordConfig{Existing: known, Overwrite: true})
	if err != nil {
		t.Fatal(err)
	}
	if !made.Report.Interrupted || made.Asked != 1 || made.Cassette.Len() != 2 {
		t.Errorf("got interrupted %v, %d asked, %d recordings; want true, 1, 2", made.Report.Interrupted, made.Asked, made.Cassette.Len())
	}
}

func TestRecord_NeedsAModel(t *testing.T) {
	if _, err := Record(t.Context(), Config{Registry: registry(t)}, RecordConfig{}); err == nil {
		t.Error("got no error, want one: there is no model to ask")
	}
}

// A truncated reply is recorded, and so is the one with the larger limit.
func TestRecord_TruncatedReplies(t *testing.T) {
	cases := parse(t, `cases: [{ id: a, input: "look", expect: { agents: [quality_agent] } }]`)
	first := true
	m := &model{say: func(string) (*llm.Reply, error) {
		if first {
			first = false
			return &llm.Reply{Text: `{"intent":"code`, Truncated: true}, nil
		}
		return &llm.Reply{Text: readsCode}, nil
	}}
	made := record(t, m, RecordConfig{}, cases)
	if f := failures(run1(t, Config{Cases: cases, Cassette: made.Cassette})); f != nil || made.Cassette.Len() != 2 {
		t.Errorf("got failures %q and %d recordings, want none and 2", f, made.Cassette.Len())
	}
}

func TestReadCassette_Errors(t *testing.T) {
	line := func(key, model string) string {
		return `{"key":"` + key + `","provider":"p","model":"` + model + `","prompt_version":"v","purpose":"classify","reply":"","tokens":{"input":0,"output":0}}` + "\n"
	}
	tests := []struct{ name, content, want string }{
		{"empty", "\n", "c.jsonl:1:1: holds no recording: make it with caprouter golden record"},
		{"no JSON", line("a", "m") + "x\n", "c.jsonl:2:1: is no recording"},
		{"cases in its place", `{"id":"a","input":"x"}`, "c.jsonl:1:1: is no recording"},
		{"two models", line("a", "m") + line("b", "n"), "c.jsonl:2:1: is of another model (p n) than the lines before (p m)"},
		{"one question twice", line("a", "m") + line("a", "m"), `c.jsonl:2:1: the interaction "a" occurs twice`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := parseCassette("c.jsonl", []byte(tt.content)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %s", err, tt.want)
			}
		})
	}
	if _, err := ReadCassette(t.TempDir() + "/none"); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that there is no file", err)
	}
}

// Every part of a request changes the key, and parts are delimited.
func TestInteractionKey_IsUnique(t *testing.T) {
	text := rapid.StringN(0, 3, -1)
	rapid.Check(t, func(t *rapid.T) {
		type question struct {
			provider, model, system, user, enum string
			tokens                              int
		}
		draw := func(label string) question {
			return question{
				text.Draw(t, label+" provider"), text.Draw(t, label+" model"), text.Draw(t, label+" system"),
				text.Draw(t, label+" user"), text.Draw(t, label+" enum"), rapid.IntRange(0, 3).Draw(t, label+" tokens"),
			}
		}
		key := func(q question) string {
			k, err := interactionKey(q.provider, q.model, &llm.Request{
				System: q.system, User: q.user, Schema: &llm.Schema{Type: "string", Enum: []string{q.enum}}, MaxOutputTokens: q.tokens,
			})
			if err != nil {
				t.Fatal(err)
			}
			return k
		}
		a, b := draw("a"), draw("b")
		if (a == b) != (key(a) == key(b)) {
			t.Fatalf("%+v and %+v: equal %v, equal keys %v", a, b, a == b, key(a) == key(b))
		}
	})
}

func TestCassette_ProviderAndModel(t *testing.T) {
	c := record(t, &model{say: sayings}, RecordConfig{}, parse(t, recordedCases)[:1]).Cassette
	if got := c.Provider() + " " + c.Model(); got != "fake fake-1" {
		t.Errorf("got %q, want fake fake-1", got)
	}
	for _, r := range slices.Collect(maps.Values(c.interactions)) {
		if r.Purpose != contract.PurposeClassify || r.PromptVersion != "router/1" || r.Tokens.Input != 100 {
			t.Errorf("got %+v, want what was asked for, with which prompt, and the tokens", r)
		}
	}
}
