package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/testkit"
)

// cancelAt cancels a context when the text is written.
type cancelAt struct {
	text   string
	cancel context.CancelFunc
}

func (c cancelAt) Write(b []byte) (int, error) {
	if strings.Contains(string(b), c.text) {
		c.cancel()
	}
	return len(b), nil
}

// Ctrl-C at a question ends teach, even if the input is blocked, and changes no file.
func TestTeach_InterruptedLeavesFiles(t *testing.T) {
	const registry = "clients:\n  payer:\n    match: { intent: [pay], domains: [bills] }\n"
	for question, answers := range map[string]string{"Which agent": "", "Write?": "payer\n"} {
		t.Chdir(t.TempDir())
		if err := os.WriteFile("capabilities.yaml", []byte(registry), 0o600); err != nil {
			t.Fatal(err)
		}
		in, typed := io.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		group := run.New(t.Context())
		if answers != "" { // an empty write would wait for a read that may not happen
			group.Go("type", func(context.Context) error { _, err := io.WriteString(typed, answers); return err })
		}
		var stderr strings.Builder
		code := make(chan int, 1)
		group.Go("teach", func(context.Context) error {
			code <- execute(ctx, []string{"teach", "settle it"}, in, cancelAt{question, cancel}, &stderr)
			return nil
		})
		if got := testkit.Receive(t, code); got != exitError || stderr.String() != "caprouter: interrupted\n" {
			t.Errorf("%s: got exit code %d and %q, want 1 and interrupted", question, got, stderr.String())
		}
		typed.Close()
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
		if data, err := os.ReadFile("capabilities.yaml"); err != nil || string(data) != registry {
			t.Errorf("%s: got the registry %q, %v, want it unchanged", question, data, err)
		}
		if _, err := os.Stat("cases.yaml"); err == nil {
			t.Errorf("%s: got a case file, want none", question)
		}
	}
}

func TestApplyEdits_WritesAllOrNone(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	want := func(path, text string) {
		t.Helper()
		if data, _ := os.ReadFile(path); string(data) != text {
			t.Errorf("%s: got %q, want %q", path, data, text)
		}
	}
	write("a", "old")
	write("b", "edited meanwhile")
	a, b := fileEdit{"a", []byte("old"), []byte("new")}, fileEdit{"b", []byte("read"), []byte("new")}
	if err := applyEdits(t.Context(), []fileEdit{a, b}); err == nil || !strings.Contains(err.Error(), "b was changed meanwhile") {
		t.Errorf("got %v, want an error because b was changed", err)
	}
	want("a", "old")
	want("b", "edited meanwhile")

	b.before = []byte("edited meanwhile")
	if err := applyEdits(t.Context(), []fileEdit{a, b, {"c", nil, []byte("created")}}); err != nil {
		t.Fatal(err)
	}
	want("a", "new")
	want("b", "new")
	want("c", "created")
	if info, err := os.Stat("a"); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("got mode %v, %v, want 0640 as before", info.Mode(), err)
	}
	if err := restoreFiles([]fileEdit{a, {"c", nil, nil}}); err != nil {
		t.Fatal(err)
	}
	want("a", "old")
	if _, err := os.Stat("c"); err == nil {
		t.Error("got c kept, want it removed")
	}
}

// Concurrent commands that edit one file do not overwrite each other: each writes, or fails because
// the file was changed meanwhile.
func TestApplyEdits_ConcurrentCommands(t *testing.T) {
	t.Chdir(t.TempDir())
	const commands, lines = 8, 4
	run.ForEach(t.Context(), commands, commands, func(ctx context.Context, i int) {
		for written := 0; written < lines; {
			before, err := readForEdit("cases.yaml")
			if err != nil {
				t.Error(err)
				return
			}
			after := fmt.Appendf(slices.Clone(before), "line %d of %d\n", written, i)
			switch err := applyEdits(ctx, []fileEdit{{"cases.yaml", before, after}}); {
			case err == nil:
				written++
			case !strings.Contains(err.Error(), "changed meanwhile"):
				t.Error(err)
				return
			}
		}
	})
	data, err := os.ReadFile("cases.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(data), "\n"); got != commands*lines {
		t.Errorf("got %d lines, want %d, all that were reported as written", got, commands*lines)
	}
}

// The order of the agents follows the candidates, then the confidence in their intents. A model
// that finds no intent gives no confidences, and the lexical classifier gives its own.
func TestTeacher_OrdersAgentsByConfidence(t *testing.T) {
	snapshot, err := capabilities.Parse("capabilities.yaml", []byte(`clients:
  a_agent: { match: { intent: [archive], domains: [files] } }
  b_agent: { match: { intent: [bill, budget], domains: [costs] }, examples: { budget: [how much may we spend, plan the budget of the year] } }
  c_agent: { match: { intent: [check], domains: [code] } }
`))
	if err != nil {
		t.Fatal(err)
	}
	scores := func(list ...any) (out []contract.IntentScore) {
		for i := 0; i < len(list); i += 2 {
			out = append(out, contract.IntentScore{Intent: list[i].(string), Confidence: list[i+1].(float64)})
		}
		return out
	}
	for _, tt := range []struct {
		name     string
		decision *contract.Decision
		want     string
	}{
		{"candidates first", &contract.Decision{
			Classification: contract.Classification{Intent: "check", Confidence: 0.6, Source: contract.SourceLexical, Alternatives: scores("budget", 0.3)},
			Candidates:     []contract.Candidate{{AgentID: "c_agent"}},
		}, "c_agent check 0.60; b_agent bill, budget 0.30; a_agent archive"},
		{"unknown", &contract.Decision{
			Classification: contract.Classification{Intent: contract.Unknown, Confidence: 0.4, Source: contract.SourceLexical, Alternatives: scores("check", 0.4, "bill", 0.2, "archive", 0.004)},
		}, "c_agent check 0.40; b_agent bill 0.20, budget; a_agent archive"},
		{"subtasks", &contract.Decision{Classification: contract.Classification{
			Intent: contract.Unknown, Source: contract.SourceLexical,
			Subtasks: []contract.Subtask{{Intent: "bill", Confidence: 0.9}, {Intent: "check", Confidence: 0.8}},
		}}, "b_agent bill 0.90, budget; c_agent check 0.80; a_agent archive"},
		{"nothing known", &contract.Decision{
			Classification: contract.Classification{Intent: contract.Unknown, Source: contract.SourceLexical},
		}, "a_agent archive; b_agent bill, budget; c_agent check"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			teach := teacher{lexical: func() *lexical.Model {
				t.Error("the lexical classifier was trained")
				return lexical.Train(lexical.Corpus{})
			}}
			if got := listAgents(&teach, snapshot, tt.decision); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
	trained := lexical.Train(classifier.BuildCorpus(snapshot.Catalogue))
	teach := teacher{lexical: func() *lexical.Model { return trained }}
	unread := &contract.Decision{Classification: contract.Classification{Intent: contract.Unknown, Source: contract.SourceLLM}}
	if got := listAgents(&teach, snapshot, unread); !strings.HasPrefix(got, "b_agent bill, budget 1.00; ") {
		t.Errorf("model without an intent: got %s, want b_agent with a confidence first", got)
	}
}

// listAgents returns the agents as teach lists them for a decision about a budget.
func listAgents(teach *teacher, s *capabilities.Snapshot, d *contract.Decision) string {
	likely := teach.confidences(&reading{prompt: "how much may we spend?", response: contract.Response{Decision: d}})
	var lines []string
	for _, a := range orderAgents(s, d, likely) {
		lines = append(lines, a.ID+" "+formatIntents(a.Match.Intent, likely))
	}
	return strings.Join(lines, "; ")
}
