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

// fakeModel determines its replies with say, or returns reply if say is nil.
type fakeModel struct {
	reply string
	say   func(user string) (*llm.Reply, error)

	mu        sync.Mutex
	questions []string
}

func (m *fakeModel) Provider() string { return "fake" }
func (m *fakeModel) Model() string    { return "fake-1" }

func (m *fakeModel) Generate(_ context.Context, req *llm.Request) (*llm.Reply, error) {
	m.mu.Lock()
	m.questions = append(m.questions, req.User)
	m.mu.Unlock()
	if m.say != nil {
		return m.say(req.User)
	}
	return &llm.Reply{Text: m.reply, Tokens: contract.Tokens{Input: 10, Output: 5}}, nil
}

func (m *fakeModel) prompts() []string {
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

// recordedReplies returns the replies for recordedCases.
func recordedReplies(user string) (*llm.Reply, error) {
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

func encodeCassette(t *testing.T, c *Cassette) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := c.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRecord_Replay(t *testing.T) {
	cases := parse(t, recordedCases)
	live := &fakeModel{say: recordedReplies}
	made := record(t, live, RecordConfig{}, cases)
	for _, f := range failures(made.Report) {
		t.Error("recording: " + f)
	}
	// One interaction for each unscripted case, and the repair of the invalid one.
	if made.Asked != 5 || made.Reused != 0 || len(made.Failed) > 0 || made.Cassette.Len() != 5 {
		t.Errorf("got %d asked, %d reused, failed %v, %d recordings; want 5, 0, none, 5", made.Asked, made.Reused, made.Failed, made.Cassette.Len())
	}
	file := encodeCassette(t, made.Cassette)
	if bytes.Contains(file, []byte("sk-secret")) || bytes.Contains(file, []byte("please look at")) {
		t.Errorf("got a key or a prompt in the cassette:\n%s", file)
	}
	read, err := parseCassette("c.jsonl", file)
	if err != nil {
		t.Fatal(err)
	}
	if again := encodeCassette(t, read); !bytes.Equal(file, again) {
		t.Errorf("got another cassette after reading (-want +got):\n%s", cmp.Diff(string(file), string(again)))
	}

	first := runCases(t, Config{Cases: cases, Cassette: read})
	for _, f := range failures(first) {
		t.Error("replay: " + f)
	}
	if diff := cmp.Diff(Classifier{Mode: "llm", Provider: "fake", Model: "fake-1", PromptVersion: "router/1"}, first.Classifier); diff != "" {
		t.Errorf("classifier (-want +got):\n%s", diff)
	}
	if second := runCases(t, Config{Cases: cases, Cassette: read, Workers: 1}); !bytes.Equal(encodeReport(t, first), encodeReport(t, second)) {
		t.Error("got different bytes from two replays, want the same")
	}
	if n := len(live.prompts()); n != 5 {
		t.Errorf("got %d calls of the model, want 5, because a replay makes none", n)
	}
}

func TestRun_CassetteWithoutReply(t *testing.T) {
	cases := parse(t, recordedCases)
	c := record(t, &fakeModel{say: recordedReplies}, RecordConfig{}, cases[:1]).Cassette
	r := runCases(t, Config{Cases: cases[:2], Cassette: c})
	want := []string{"costs: the cassette has no reply to this model request: record it again (caprouter golden record)"}
	if diff := cmp.Diff(want, failures(r)); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
	other := changedRegistry(t, func(s *capabilities.Catalogue) { s.Agents, s.Learned = s.Agents[1:], s.Learned[1:] })
	if f := failures(runCases(t, Config{Registry: other, Cases: cases[:1], Cassette: c})); len(f) != 1 {
		t.Errorf("other registry: got failures %q, want one, because the request differs", f)
	}
}

func TestRecord_ReusesExisting(t *testing.T) {
	cases := parse(t, recordedCases)
	known := record(t, &fakeModel{say: recordedReplies}, RecordConfig{}, cases[:2]).Cassette
	other := &fakeModel{reply: readsCosts}

	made := record(t, other, RecordConfig{Existing: known}, cases[1:3])
	if made.Asked != 1 || made.Reused != 1 || made.Cassette.Len() != 2 || made.Dropped != 1 {
		t.Errorf("got %d asked, %d reused, %d recordings, %d dropped; want 1, 1, 2, 1, because one is unused",
			made.Asked, made.Reused, made.Cassette.Len(), made.Dropped)
	}
	made = record(t, other, RecordConfig{Existing: known, Overwrite: true}, cases[:2])
	if made.Asked != 2 || made.Reused != 0 {
		t.Errorf("second run: got %d asked, %d reused; want 2, 0", made.Asked, made.Reused)
	}
}

func TestRecord_KeepsInteractionsWhenModelFails(t *testing.T) {
	cases := parse(t, recordedCases)[:2]
	known := record(t, &fakeModel{say: recordedReplies}, RecordConfig{}, cases).Cassette
	down := &fakeModel{say: func(user string) (*llm.Reply, error) {
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
		t.Errorf("got %d recordings, want 2: the old one of the failed case, and the new one", made.Cassette.Len())
	}
	if made = record(t, down, RecordConfig{}, cases[:1]); made.Cassette != nil {
		t.Errorf("got a cassette of %d, want none without recordings", made.Cassette.Len())
	}
}

// A partial run keeps the interactions of other cases.
func TestRecord_PartialRunKeepsOtherInteractions(t *testing.T) {
	cases := parse(t, recordedCases)
	known := record(t, &fakeModel{say: recordedReplies}, RecordConfig{}, cases).Cassette
	for _, again := range []bool{false, true} {
		made := record(t, &fakeModel{say: recordedReplies}, RecordConfig{Existing: known, Overwrite: again, Partial: true}, cases[:1])
		if made.Cassette.Len() != known.Len() || made.Dropped != 0 {
			t.Errorf("partial run %v: got %d recordings, %d dropped; want all %d, 0", again, made.Cassette.Len(), made.Dropped, known.Len())
		}
	}
}

// A cassette of another model is not replaced, and no call is made.
func TestRecord_RejectsOtherModel(t *testing.T) {
	cases := parse(t, recordedCases)[:1]
	known := &Cassette{provider: "fake", model: "fake-0", interactions: map[string]Interaction{"k": {Key: "k"}}}
	m := &fakeModel{reply: readsCode}
	_, err := Record(t.Context(), Config{Registry: registry(t), Cases: cases, Classifier: classifier.Config{Model: m}}, RecordConfig{Existing: known})
	other, ok := errors.AsType[*ModelMismatchError](err)
	if !ok || other.Cassette != "fake fake-0" || other.Asked != "fake fake-1" || len(m.prompts()) > 0 {
		t.Errorf("got %v and %d calls, want an *OtherModelError with both models and no call", err, len(m.prompts()))
	}
}

func TestRecord_Interrupted(t *testing.T) {
	cases := parse(t, recordedCases)[:2]
	known := record(t, &fakeModel{say: recordedReplies}, RecordConfig{}, cases).Cassette
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	made, err := Record(ctx, Config{
		Registry: registry(t), Cases: cases, Workers: 1, Classifier: classifier.Config{Model: &fakeModel{reply: readsCosts}},
		Progress: func(int, int) { cancel() },
	}, RecordConfig{Existing: known, Overwrite: true})
	if err != nil {
		t.Fatal(err)
	}
	if !made.Report.Interrupted || made.Asked != 1 || made.Cassette.Len() != 2 {
		t.Errorf("got interrupted %v, %d asked, %d recordings; want true, 1, 2", made.Report.Interrupted, made.Asked, made.Cassette.Len())
	}
}

func TestRecord_RequiresModel(t *testing.T) {
	if _, err := Record(t.Context(), Config{Registry: registry(t)}, RecordConfig{}); err == nil {
		t.Error("got no error without a model, want one")
	}
}

// A truncated reply is recorded, and so is the one with the larger limit.
func TestRecord_TruncatedReplies(t *testing.T) {
	cases := parse(t, `cases: [{ id: a, input: "look", expect: { agents: [quality_agent] } }]`)
	first := true
	m := &fakeModel{say: func(string) (*llm.Reply, error) {
		if first {
			first = false
			return &llm.Reply{Text: `{"intent":"code`, Truncated: true}, nil
		}
		return &llm.Reply{Text: readsCode}, nil
	}}
	made := record(t, m, RecordConfig{}, cases)
	if f := failures(runCases(t, Config{Cases: cases, Cassette: made.Cassette})); f != nil || made.Cassette.Len() != 2 {
		t.Errorf("got failures %q and %d recordings, want none and 2", f, made.Cassette.Len())
	}
}

func TestReadCassette_Errors(t *testing.T) {
	line := func(key, model string) string {
		return `{"key":"` + key + `","provider":"p","model":"` + model + `","prompt_version":"v","purpose":"classify","reply":"","tokens":{"input":0,"output":0}}` + "\n"
	}
	tests := []struct{ name, content, want string }{
		{"empty", "\n", "c.jsonl:1:1: holds no recording: make it with caprouter golden record"},
		{"not JSON", line("a", "m") + "x\n", "c.jsonl:2:1: is no recording"},
		{"cases instead of a cassette", `{"id":"a","input":"x"}`, "c.jsonl:1:1: is no recording"},
		{"two models", line("a", "m") + line("b", "n"), "c.jsonl:2:1: is of another model (p n) than the lines before (p m)"},
		{"duplicate key", line("a", "m") + line("a", "m"), `c.jsonl:2:1: the interaction "a" occurs twice`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := parseCassette("c.jsonl", []byte(tt.content)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %s", err, tt.want)
			}
		})
	}
	if _, err := ReadCassette(t.TempDir() + "/none"); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want an error for the missing file", err)
	}
}

// Every part of a request changes the key, and parts are delimited.
func TestInteractionKey_IsUnique(t *testing.T) {
	text := rapid.StringN(0, 3, -1)
	rapid.Check(t, func(t *rapid.T) {
		type request struct {
			provider, model, system, user, enum string
			tokens                              int
		}
		draw := func(label string) request {
			return request{
				text.Draw(t, label+" provider"), text.Draw(t, label+" model"), text.Draw(t, label+" system"),
				text.Draw(t, label+" user"), text.Draw(t, label+" enum"), rapid.IntRange(0, 3).Draw(t, label+" tokens"),
			}
		}
		key := func(q request) string {
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
			t.Fatalf("%+v and %+v: got equal %v but equal keys %v, want the same", a, b, a == b, key(a) == key(b))
		}
	})
}

func TestCassette_ProviderAndModel(t *testing.T) {
	c := record(t, &fakeModel{say: recordedReplies}, RecordConfig{}, parse(t, recordedCases)[:1]).Cassette
	if got := c.Provider() + " " + c.Model(); got != "fake fake-1" {
		t.Errorf("got %q, want fake fake-1", got)
	}
	for _, r := range slices.Collect(maps.Values(c.interactions)) {
		if r.Purpose != contract.PurposeClassify || r.PromptVersion != "router/1" || r.Tokens.Input != 100 {
			t.Errorf("got %+v, want the request, the prompt version and the tokens", r)
		}
	}
}
