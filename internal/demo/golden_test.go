package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/golden"
	"github.com/caprouter/caprouter/internal/llm"
)

// The golden set of the sample registry.
const (
	goldenCases    = "golden/cases"                        // hold with a model and without
	goldenWords    = "golden/words"                        // hold without a model
	goldenBaseline = "golden/baseline.json"                // what passes without a model; it names what does not yet
	goldenReplies  = "golden/model/replies.yaml"           // all of it, with what a good model would say
	goldenCassette = "golden/model/replies.cassette.jsonl" // the same replies, by question
)

func sampleRegistry(t *testing.T) *capabilities.Snapshot {
	t.Helper()
	s, err := capabilities.Parse("registry.yaml", Registry(nil))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func load(t *testing.T, s *capabilities.Snapshot, paths ...string) []golden.Case {
	t.Helper()
	cases, err := golden.Load(paths, golden.NamesOf(s))
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

// wordsCases are those that are run without a model.
func wordsCases(t *testing.T, s *capabilities.Snapshot) []golden.Case {
	return load(t, s, goldenCases, goldenWords)
}

func runGolden(t *testing.T, cfg golden.Config) *golden.Report {
	t.Helper()
	report, err := golden.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func wantAllPassed(t *testing.T, report *golden.Report) {
	t.Helper()
	for i := range report.Cases {
		if c := &report.Cases[i]; !c.Passed {
			t.Errorf("%s:%d: %s: %s", c.File, c.Line, c.ID, strings.Join(c.Why, "; "))
		}
	}
}

// TestGoldenSetIsBalanced: every language and every kind of request has its
// share, and each kind is there in each language.
func TestGoldenSetIsBalanced(t *testing.T) {
	cases := wordsCases(t, sampleRegistry(t))
	if len(cases) < 120 {
		t.Errorf("%d cases, want at least 120", len(cases))
	}
	languages := []string{"en", "es", "pt", "zh"}
	kinds := []string{"adversarial", "ambiguous", "clear", "long", "multi", "no-domain", "out-of-scope", "short", "typo"}
	count := map[string]int{}
	for _, c := range cases {
		if len(c.Tags) < 2 || !slices.Contains(languages, c.Tags[0]) || !slices.Contains(kinds, c.Tags[1]) {
			t.Fatalf("%s:%d: tags %q, want a language and a kind first", c.File, c.Line, c.Tags)
		}
		count[c.Tags[0]]++
		count[c.Tags[0]+" "+c.Tags[1]]++
		count[c.Split]++
	}
	for _, kind := range kinds {
		for _, l := range languages {
			if got, want := count[l+" "+kind], count["en "+kind]; got != want || got == 0 {
				t.Errorf("%d %s cases in %s, %d in en: want as many", got, kind, l, want)
			}
		}
	}
	if count[golden.Test] < len(cases)*2/3 || count[golden.Train] == 0 || count[golden.Validation] == 0 {
		t.Errorf("splits %v, want most cases in test and some in train and validation", count)
	}
}

// TestGoldenWithoutModel runs the set as `caprouter golden run --baseline` does:
// what passed once passes still. A case that is right and fails stays in the set
// and is a failure in the baseline. -update writes down how it stands; a case that
// has come to pass must be written down, so that it cannot be lost again.
func TestGoldenWithoutModel(t *testing.T) {
	s := sampleRegistry(t)
	report := runGolden(t, golden.Config{Registry: s, Cases: wordsCases(t, s)})
	t.Logf("%d of %d pass", report.Summary.Passed, report.Summary.Total)
	if *update {
		writeBaseline(t, report)
		return
	}
	before, err := golden.ReadJSON(goldenBaseline)
	if err != nil {
		t.Fatal(err)
	}
	c := golden.Compare(before, report)
	for i := range report.Cases {
		if r := &report.Cases[i]; slices.Contains(c.Regressions, r.ID) || slices.Contains(c.NewFailures, r.ID) {
			t.Errorf("%s:%d: %s is not in the baseline as a failure: %s", r.File, r.Line, r.ID, strings.Join(r.Why, "; "))
		}
	}
	if len(c.Fixed)+len(c.Gone) > 0 {
		t.Errorf("the baseline is out of date: %q pass now, %q are gone; write it with -update", c.Fixed, c.Gone)
	}
}

// writeBaseline writes what a comparison and its reader need of a report, on
// lines that can be reviewed: what the cases say themselves is left out, and what
// changes with every figure of the classifier.
func writeBaseline(t *testing.T, report *golden.Report) {
	t.Helper()
	report.Confidences = []golden.Point{}
	for i := range report.Cases {
		c := &report.Cases[i]
		c.Input, c.Line, c.Expect, c.Decision, c.Got.Confidence = "", 0, golden.Expect{}, nil, 0
	}
	writeGolden(t, goldenBaseline, func(b *bytes.Buffer) error {
		var plain bytes.Buffer
		if err := golden.WriteJSON(&plain, report); err != nil {
			return err
		}
		return json.Indent(b, plain.Bytes(), "", " ")
	})
}

// TestGoldenReplies holds the replies to the cases they belong to and takes each
// to its outcome.
func TestGoldenReplies(t *testing.T) {
	s := sampleRegistry(t)
	replies := load(t, s, goldenReplies)
	want := map[string]golden.Case{}
	for _, c := range wordsCases(t, s) {
		want[c.ID] = c
	}
	if len(replies) != len(want) {
		t.Errorf("%d replies to %d cases, want one each", len(replies), len(want))
	}
	for _, r := range replies {
		c := want[r.ID]
		if c.Expect.Outcome == golden.Clarify { // a model is not asked back
			c.Expect = r.Expect
		}
		if len(r.LLM) != 1 {
			t.Errorf("%s: %d replies, want one", r.ID, len(r.LLM))
		}
		r.LLM, r.File, r.Line, c.File, c.Line = nil, "", 0, "", 0
		if diff := cmp.Diff(c, r); diff != "" {
			t.Errorf("%s (-case +reply):\n%s", r.ID, diff)
		}
	}
	wantAllPassed(t, runGolden(t, golden.Config{Registry: s, Cases: replies}))
}

// TestGoldenCassette runs the set with a cassette of those replies: every
// question the router asks is in it, and nothing else is needed. -update makes
// it again, after a change of the registry, the cases or the prompt.
func TestGoldenCassette(t *testing.T) {
	s := sampleRegistry(t)
	if *update {
		lines := recordGolden(t, s, load(t, s, goldenReplies))
		writeGolden(t, goldenCassette, func(b *bytes.Buffer) error {
			_, err := b.WriteString(strings.Join(lines, ""))
			return err
		})
	}
	cassette, err := golden.ReadCassette(goldenCassette)
	if err != nil {
		t.Fatal(err)
	}
	cfg := golden.Config{Registry: s, Cases: load(t, s, goldenCases), Cassette: cassette}
	first, second := runGolden(t, cfg), runGolden(t, cfg)
	wantAllPassed(t, first)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("two runs differ:\n%s", diff)
	}
}

// recordGolden records each case with a model that says the case's reply, and
// returns the lines of the cassette: sorted, and once where two cases ask the same.
func recordGolden(t *testing.T, s *capabilities.Snapshot, cases []golden.Case) []string {
	t.Helper()
	var all bytes.Buffer
	for _, c := range cases {
		said := writtenReply(c.LLM[0])
		c.LLM = nil
		cfg := golden.Config{Registry: s, Cases: []golden.Case{c}, Classifier: classifier.Config{Model: said}}
		recorded, err := golden.Record(t.Context(), cfg, golden.RecordConfig{})
		if err != nil {
			t.Fatal(err)
		}
		if err := recorded.Cassette.Write(&all); err != nil {
			t.Fatal(err)
		}
	}
	lines := slices.Sorted(strings.Lines(all.String()))
	return slices.Compact(lines)
}

// writtenReply is a model that says one thing.
type writtenReply string

func (writtenReply) Provider() string { return "written" }
func (writtenReply) Model() string    { return "by-hand" }

func (r writtenReply) Generate(context.Context, *llm.Request) (*llm.Reply, error) {
	return llm.NewReply(string(r), llm.EndWhole, "", contract.Tokens{})
}

func writeGolden(t *testing.T, file string, write func(*bytes.Buffer) error) {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}
