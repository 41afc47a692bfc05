package demo

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"regexp"
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

var update = flag.Bool("update", false, "rewrite the golden files")

// The golden cases of the sample registry.
const (
	goldenCases        = "golden/cases"                        // valid with and without a model
	goldenLexicalCases = "golden/words"                        // valid only without a model
	goldenReplies      = "golden/model/replies.yaml"           // all cases, each with the reply of a good model
	goldenCassette     = "golden/model/replies.cassette.jsonl" // the same replies by prompt
)

func sampleRegistry(t *testing.T) *capabilities.Snapshot {
	t.Helper()
	s, err := capabilities.Parse("registry.yaml", Registry(nil))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func loadCases(t *testing.T, s *capabilities.Snapshot, paths ...string) []golden.Case {
	t.Helper()
	cases, err := golden.LoadCases(paths, golden.NewDeclaredNames(s))
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

func casesWithoutModel(t *testing.T, s *capabilities.Snapshot) []golden.Case {
	return loadCases(t, s, goldenCases, goldenLexicalCases)
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
			t.Errorf("%s:%d: %s: %s", c.File, c.Line, c.ID, strings.Join(c.Differences, "; "))
		}
	}
}

// Each language needs the same number of cases of each kind.
func TestGoldenCases_AreBalanced(t *testing.T) {
	cases := casesWithoutModel(t, sampleRegistry(t))
	if len(cases) < 120 {
		t.Errorf("got %d cases, want at least 120", len(cases))
	}
	languages := []string{"en", "es", "pt", "zh"}
	kinds := []string{"adversarial", "ambiguous", "clear", "long", "multi", "no-domain", "out-of-scope", "short", "typo"}
	count := map[string]int{}
	for _, c := range cases {
		if len(c.Tags) < 2 || !slices.Contains(languages, c.Tags[0]) || !slices.Contains(kinds, c.Tags[1]) {
			t.Fatalf("%s:%d: got tags %q, want a language and a kind first", c.File, c.Line, c.Tags)
		}
		count[c.Tags[0]]++
		count[c.Tags[0]+" "+c.Tags[1]]++
		count[c.Split]++
	}
	for _, kind := range kinds {
		for _, l := range languages {
			if got, want := count[l+" "+kind], count["en "+kind]; got != want || got == 0 {
				t.Errorf("got %d %s cases in %s, want %d as in en", got, kind, l, want)
			}
		}
	}
	if count[golden.Test] < len(cases)*2/3 || count[golden.Train] == 0 || count[golden.Validation] == 0 {
		t.Errorf("got splits %v, want most cases in test and some in train and validation", count)
	}
}

// A case passes or is a known failure. After a change of the classifier or the registry,
// -update removes the marks of passing cases and corrects the counts in the documents. Add
// other marks manually, because the reason of a failure must be examined.
func TestGoldenCases_PassOrAreKnownFailures(t *testing.T) {
	s := sampleRegistry(t)
	report := runGolden(t, golden.Config{Registry: s, Cases: casesWithoutModel(t, s)})
	outOfScope := 0
	for _, c := range slices.Backward(report.Cases) { // backwards, so that removing a line does not move the remaining cases
		switch {
		case c.PassedDespiteMark() && *update:
			removeMark(t, c.File, c.Line)
			report.Summary.Failed--
			report.Summary.Passed++
		case c.PassedDespiteMark():
			t.Errorf("remove known_failure from %s, %s:%d, which passes (-update does)", c.ID, c.File, c.Line)
		case c.Failed():
			t.Errorf("fix %s, %s:%d, or add known_failure with a reason: %s", c.ID, c.File, c.Line, strings.Join(c.Differences, "; "))
		}
		if slices.Contains(c.Tags, "out-of-scope") && c.Actual.Outcome == golden.Dispatch {
			outOfScope++
		}
	}
	if outOfScope > 4 {
		t.Errorf("got %d out-of-scope cases dispatched, want at most 4", outOfScope)
	}
	if t.Failed() {
		return
	}
	checkCounts(t, &report.Summary)
}

// removeMark removes the line known_failure of the case that begins at the line, from 1.
func removeMark(t *testing.T, file string, line int) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.Collect(strings.Lines(string(data)))
	const key = "    known_failure: "
	n := slices.IndexFunc(lines[line:], func(l string) bool { return strings.HasPrefix(l, key) || strings.HasPrefix(l, "  - ") })
	if n < 0 || !strings.HasPrefix(lines[line+n], key) {
		t.Fatalf("%s:%d: the case has no line %q", file, line, key)
	}
	writeText(t, file, strings.Join(slices.Delete(lines, line+n, line+n+1), ""))
}

// checkCounts compares the counts in the documents with the summary.
func checkCounts(t *testing.T, s *golden.Summary) {
	t.Helper()
	sentence := regexp.MustCompile(`Without a model \d+ of the \d+ golden cases of the demonstration pass; \d+ are known failures\.`)
	want := fmt.Sprintf("Without a model %d of the %d golden cases of the demonstration pass; %d are known failures.", s.Passed, s.Total, s.Known)
	for _, file := range []string{"../../README.md", "../../docs/quality.md"} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got := sentence.FindString(string(data))
		switch {
		case got == "":
			t.Errorf("%s: got no sentence with the counts, want %q on one line", file, want)
		case got != want && *update:
			writeText(t, file, strings.Replace(string(data), got, want, 1))
		case got != want:
			t.Errorf("%s: got %q, want %q (-update corrects it)", file, got, want)
		}
	}
}

// Each case needs one reply, and its expected outcome must follow from that reply.
func TestGoldenReplies_PassAllCases(t *testing.T) {
	s := sampleRegistry(t)
	replies := loadCases(t, s, goldenReplies)
	want := map[string]golden.Case{}
	for _, c := range casesWithoutModel(t, s) {
		want[c.ID] = c
	}
	if len(replies) != len(want) {
		t.Errorf("got %d replies, want %d, one for each case", len(replies), len(want))
	}
	for _, r := range replies {
		c := want[r.ID]
		if c.Expect.Outcome == golden.Clarify { // the reply of a model is not ambiguous
			c.Expect = r.Expect
		}
		if len(r.LLM) != 1 {
			t.Errorf("%s: got %d replies, want one", r.ID, len(r.LLM))
		}
		r.LLM, r.File, r.Line, c.File, c.Line = nil, "", 0, "", 0
		c.KnownFailure = "" // without a model
		if diff := cmp.Diff(c, r); diff != "" {
			t.Errorf("%s (-case +reply):\n%s", r.ID, diff)
		}
	}
	wantAllPassed(t, runGolden(t, golden.Config{Registry: s, Cases: replies}))
}

// The cassette must contain a reply to every call of the model. Record it with -update
// after a change of the registry, the cases or the prompt.
func TestGoldenCassette_PassesAllCases(t *testing.T) {
	s := sampleRegistry(t)
	if *update {
		lines := recordGolden(t, s, loadCases(t, s, goldenReplies))
		writeText(t, goldenCassette, strings.Join(lines, ""))
	}
	cassette, err := golden.ReadCassette(goldenCassette)
	if err != nil {
		t.Fatal(err)
	}
	cfg := golden.Config{Registry: s, Cases: loadCases(t, s, goldenCases), Cassette: cassette}
	first, second := runGolden(t, cfg), runGolden(t, cfg)
	wantAllPassed(t, first)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("second run (-first +second):\n%s", diff)
	}
}

// recordGolden records each case with a model that returns the reply of the case. It
// returns the lines of the cassette, sorted and without duplicates.
func recordGolden(t *testing.T, s *capabilities.Snapshot, cases []golden.Case) []string {
	t.Helper()
	var all bytes.Buffer
	for _, c := range cases {
		model := fixedModel(c.LLM[0])
		c.LLM = nil
		cfg := golden.Config{Registry: s, Cases: []golden.Case{c}, Classifier: classifier.Config{Model: model}}
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

// fixedModel is a model that always returns the same reply.
type fixedModel string

func (fixedModel) Provider() string { return "written" }
func (fixedModel) Model() string    { return "by-hand" }

func (r fixedModel) Generate(context.Context, *llm.Request) (*llm.Reply, error) {
	return llm.NewReply(string(r), llm.FinishComplete, "", contract.Tokens{})
}

func writeText(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
