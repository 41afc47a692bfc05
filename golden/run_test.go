package golden

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
)

// compareFile compares got with a file of testdata, which -update rewrites.
func compareFile(t *testing.T, file string, got []byte) {
	t.Helper()
	path := "testdata/" + file
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s\nrun with -update to accept it", path, diff)
	}
}

// parse reads cases for the registry of testdata.
func parse(t *testing.T, yaml string) []Case {
	t.Helper()
	cases, err := ReadYAML("cases.yaml", []byte(yaml), NewDeclaredNames(registry(t)))
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

func runCases(t *testing.T, cfg Config) *Report {
	t.Helper()
	if cfg.Registry == nil {
		cfg.Registry = registry(t)
	}
	r, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func encodeReport(t *testing.T, r *Report) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WriteJSON(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// changedRegistry returns the registry of testdata with a modification.
func changedRegistry(t *testing.T, change func(*capabilities.Catalogue)) *capabilities.Snapshot {
	t.Helper()
	s := registry(t)
	change(s.Catalogue)
	return s
}

func failures(r *Report) []string {
	var list []string
	for i := range r.Cases {
		if c := &r.Cases[i]; !c.Passed {
			list = append(list, c.ID+": "+strings.Join(c.Differences, "; "))
		}
	}
	return list
}

// Every case of the chaos tests has the outcome stated in its file.
func TestRun_Chaos(t *testing.T) {
	s := registry(t)
	cases, err := LoadCases([]string{"testdata/chaos.yaml"}, NewDeclaredNames(s))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range failures(runCases(t, Config{Cases: cases})) {
		t.Error(f)
	}
}

const everyOutcome = `
cases:
  - { id: dispatch, input: "Do a code review of this python module", expect: { outcome: dispatch, agents: [quality_agent], intent: code_review, domains: [python] }, tags: [en] }
  - { id: two, input: "Do a code review of this python module and a cost analysis of azure", expect: { outcome: dispatch, agents: [billing_agent, quality_agent] }, tags: [en, multi] }
  - { id: nobody, input: "Sing me a song", expect: { outcome: fallback_b, agents: [], reason: no_match }, tags: [en] }
  - { id: alternate, input: "Do a cost analysis of azure", expect: { agents: [rag_agent] }, alternates: [[quality_agent], [billing_agent]] }
  - { id: wrong, input: "Revise este código python", expect: { outcome: dispatch, agents: [billing_agent], intent: cost_analysis, domains: [azure], reason: no_match }, tags: [pt] }
  - { id: refused, input: "x", history: [], expect: { outcome: dispatch } }
`

func TestRun_Report(t *testing.T) {
	cases := parse(t, everyOutcome)
	cases[5].Input = strings.Repeat("x", 65<<10) // longer than a caller may send; Load would reject it
	r := runCases(t, Config{Cases: cases})
	r.Cases[5].Input = "(too long)"
	compareFile(t, "report.json", encodeReport(t, r))
	var junit bytes.Buffer
	if err := WriteJUnit(&junit, r); err != nil {
		t.Fatal(err)
	}
	compareFile(t, "report.xml", junit.Bytes())
}

// The report does not depend on the number of workers.
func TestRun_IsDeterministic(t *testing.T) {
	chaos, err := LoadCases([]string{"testdata/chaos.yaml"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	cases := append(parse(t, everyOutcome), chaos...)
	want := encodeReport(t, runCases(t, Config{Cases: cases, Workers: 1}))
	for _, workers := range []int{1, 8} {
		if got := encodeReport(t, runCases(t, Config{Cases: cases, Workers: workers})); !bytes.Equal(want, got) {
			t.Errorf("%d workers: got another report:\n%s", workers, cmp.Diff(string(want), string(got)))
		}
	}
}

func TestRun_Outcomes(t *testing.T) {
	tests := []struct {
		name   string
		change func(*capabilities.Catalogue)
		cases  string
	}{
		{
			"divergent intents, not split",
			func(s *capabilities.Catalogue) { s.Routing.AutoSplitIfConflict = false },
			`cases: [{ id: a, input: "Do a code review of python, then a cost analysis of azure", expect: { outcome: clarify, agents: [], reason: divergent } }]`,
		},
		{
			"divergent intents of a model",
			func(s *capabilities.Catalogue) { s.Routing.AutoSplitIfConflict = false },
			`cases: [{ id: a, input: "x", expect: { outcome: clarify, agents: [], reason: divergent },
			  llm: '{"intent":"code_review","domains":["python"],"subtasks":[{"title":"a","intent":"code_review"},{"title":"b","intent":"cost_analysis","domains":["azure"]}],"confidence":1}' }]`,
		},
		{
			"policy B",
			func(s *capabilities.Catalogue) { s.Fallback.Policy = "B" },
			`cases: [{ id: a, input: "x", expect: { outcome: fallback_b, reason: low_confidence },
			  llm: '{"intent":"code_review","domains":["python"],"subtasks":[],"confidence":0.1}' }]`,
		},
		{
			"policy A, model not called",
			func(s *capabilities.Catalogue) { s.Fallback.Policy = "A" },
			`cases: [{ id: a, input: "Sing me a song", expect: { outcome: fallback_a } }]`,
		},
		{
			"policy C, nothing stored",
			func(s *capabilities.Catalogue) { s.Fallback.Policy = "C" },
			`cases: [{ id: a, input: "Sing me a song", expect: { outcome: fallback_c } }]`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := runCases(t, Config{Registry: changedRegistry(t, tt.change), Cases: parse(t, tt.cases)})
			for _, f := range failures(r) {
				t.Error(f)
			}
		})
	}
}

// The history is part of the request to the model, and masked as in the server.
func TestRun_SendsHistory(t *testing.T) {
	cases := parse(t, `cases: [{ id: a, input: "and on azure?", expect: { agents: [billing_agent] }, history: [{ role: user, content: "what did bob@example.com cost us" }] }]`)
	m := &fakeModel{reply: `{"intent":"cost_analysis","domains":["azure"],"subtasks":[],"confidence":1}`}
	r := runCases(t, Config{Cases: cases, Classifier: classifier.Config{Model: m}})
	if f := failures(r); f != nil {
		t.Error(f)
	}
	asked := m.prompts()
	if len(asked) != 1 || !strings.Contains(asked[0], "cost us") || strings.Contains(asked[0], "bob@") {
		t.Errorf("got requests %q, want one with the masked history", asked)
	}
}

// A known-failure mark applies to runs without a model, and to cases with scripted replies.
func TestRun_KnownFailures(t *testing.T) {
	const text = `
cases:
  - { id: passes, input: "Do a code review of this python module", expect: { agents: [quality_agent] } }
  - { id: marked, input: "Sing me a song", expect: { agents: [quality_agent] }, known_failure: "no word of the registry" }
  - { id: outdated, input: "Do a code review of this python module", expect: { agents: [quality_agent] }, known_failure: "a typo" }
  - { id: fails, input: "Sing me a song", expect: { agents: [quality_agent] } }
  - { id: scripted, input: "x", expect: { agents: [quality_agent] }, known_failure: "broken", llm: "la la la" }
`
	asModel := classifier.Config{Model: &fakeModel{reply: `{"intent":"code_review","domains":["python"],"subtasks":[],"confidence":1}`}}
	tests := []struct {
		name                  string
		clf                   classifier.Config
		passed, known, failed int
		marks                 string
		failures              []string // of Failed
	}{
		{"without a model", classifier.Config{}, 1, 2, 2, "marked outdated scripted", []string{"outdated: " + errMarked, "fails: agents: got none, want quality_agent"}},
		{"with a model", asModel, 4, 1, 0, "scripted", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := runCases(t, Config{Cases: parse(t, text), Classifier: tt.clf})
			if s := r.Summary; s.Passed != tt.passed || s.Known != tt.known || s.Failed != tt.failed {
				t.Errorf("got %d passed, %d known, %d failed; want %d, %d, %d", s.Passed, s.Known, s.Failed, tt.passed, tt.known, tt.failed)
			}
			var failed, marks []string
			for i := range r.Cases {
				c := &r.Cases[i]
				if c.Failed() {
					failed = append(failed, c.ID+": "+strings.Join(c.Differences, "; "))
				}
				if c.KnownFailure != "" {
					marks = append(marks, c.ID)
				}
			}
			if diff := cmp.Diff(tt.failures, failed); diff != "" {
				t.Errorf("failed (-want +got):\n%s", diff)
			}
			if got := strings.Join(marks, " "); got != tt.marks {
				t.Errorf("got marks on %q, want on %q", got, tt.marks)
			}
			var junit bytes.Buffer
			if err := WriteJUnit(&junit, r); err != nil {
				t.Fatal(err)
			}
			if got := strings.Count(junit.String(), `type="known_failure"`); got != tt.known {
				t.Errorf("JUnit: got %d known failures, want %d:\n%s", got, tt.known, junit.String())
			}
		})
	}
}

// A case fails if the model gives no usable reply, unless it expects the reason for which the
// lexical classifier replaces the model.
func TestRun_FailsWithoutUsableReply(t *testing.T) {
	cases := parse(t, `
cases:
  - { id: any, input: "Do a code review of this python module", expect: { agents: [quality_agent] } }
  - { id: expected, input: "Do a code review of this python module", expect: { agents: [quality_agent], reason: llm_invalid_json } }
`)
	r := runCases(t, Config{Cases: cases, Workers: 1, Classifier: classifier.Config{Model: &fakeModel{reply: "la la la"}}})
	want := []string{"any: the model gave no usable reply (llm_invalid_json: is not JSON: invalid character 'l' at start of value at line 1, column 1), and the lexical classifier answered"}
	if diff := cmp.Diff(want, failures(r)); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]NamedCount{{"lexical", 2}}, r.Summary.BySource); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
}

// An agent of a tenant serves only cases of that tenant.
func TestRun_CasesOfTenants(t *testing.T) {
	tenants := changedRegistry(t, func(c *capabilities.Catalogue) {
		c.Agent("quality_agent").Requires.Tenants = []string{"acme"}
	})
	cases := parse(t, `
cases:
  - { id: served, tenant: acme, input: "Do a code review of this python module", expect: { agents: [quality_agent] } }
  - { id: other, tenant: umbrella, input: "Do a code review of this python module", expect: { outcome: fallback } }
  - { id: none, input: "Do a code review of this python module", expect: { outcome: fallback } }
`)
	if diff := cmp.Diff([]string(nil), failures(runCases(t, Config{Registry: tenants, Cases: cases}))); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
}

func TestRun_Interrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var seen []int
	r, err := Run(ctx, Config{
		Registry: registry(t), Cases: parse(t, everyOutcome), Workers: 1,
		Progress: func(done, total int) {
			seen = append(seen, done, total)
			if done == 2 {
				cancel()
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{1, 6, 2, 6}, seen); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
	if !r.Interrupted || r.Summary.Planned != 6 || r.Summary.Total != 2 || len(r.Cases) != 2 {
		t.Errorf("got interrupted %v, summary %+v, %d cases; want an interrupted report of 2 of 6", r.Interrupted, r.Summary, len(r.Cases))
	}
	var junit bytes.Buffer
	if err := WriteJUnit(&junit, r); err != nil {
		t.Fatal(err)
	}
	if want := `<error message="interrupted: 2 of 6 cases were run" type="interrupted">`; !strings.Contains(junit.String(), want) {
		t.Errorf("got no %s in JUnit output:\n%s", want, junit.String())
	}
}

func TestRun_Rejects(t *testing.T) {
	tests := []struct {
		name string
		cfg  Config
		want string
	}{
		{"no registry", Config{}, "a registry is required"},
		{"cassette and model", Config{Registry: registry(t), Cassette: &Cassette{}, Classifier: classifier.Config{Model: &fakeModel{}}}, "either a cassette or a model"},
		{"mode without its model", Config{Registry: registry(t), Classifier: classifier.Config{Mode: classifier.ModeLLM}}, "needs a model"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Run(t.Context(), tt.cfg); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}

func TestReadJSON_RoundTrip(t *testing.T) {
	r := runCases(t, Config{Cases: parse(t, everyOutcome)})
	dir := writeFiles(t, map[string]string{
		"good.json":    string(encodeReport(t, r)),
		"other.json":   `{"cases":[]}`,
		"unknown.json": `{"version":1,"nope":1}`,
		"text.json":    `hello`,
	})
	got, err := ReadJSON(dir + "/good.json")
	if err != nil {
		t.Fatal(err)
	}
	if want := encodeReport(t, r); !bytes.Equal(want, encodeReport(t, got)) {
		t.Errorf("got another report after reading (-want +got):\n%s", cmp.Diff(string(want), string(encodeReport(t, got))))
	}
	for file, want := range map[string]string{
		"other.json": "a report of version 0; this program reads version 1", "unknown.json": "not a report of golden run --json",
		"text.json": "not a report of golden run --json", "none.json": "no such file",
	} {
		if _, err := ReadJSON(dir + "/" + file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", file, err, want)
		}
	}
}

func TestCompareReports(t *testing.T) {
	report := func(verdicts string) *Report { // "a+ b- c-!": passed, failed, known failure
		r := &Report{}
		for v := range strings.FieldsSeq(verdicts) {
			c := CaseResult{ID: v[:1], Passed: v[1] == '+'}
			if strings.HasSuffix(v, "!") {
				c.KnownFailure = "marked"
			}
			r.Cases = append(r.Cases, c)
		}
		return r
	}
	tests := []struct {
		name, before, now string
		want              Comparison
	}{
		{"nothing changed", "a+ b-", "a+ b-", Comparison{KnownFailed: []string{"b"}}},
		{"a regression", "a+ b-", "a- b-", Comparison{Regressions: []string{"a"}, KnownFailed: []string{"b"}}},
		{"new cases", "a+", "a+ b+ c-", Comparison{NewFailures: []string{"c"}}},
		{"fixed and removed", "a- b+ c-", "a+", Comparison{Fixed: []string{"a"}, Gone: []string{"b", "c"}}},
		{"known failure now", "a+ b-", "a-! b-! c-!", Comparison{KnownFailed: []string{"a", "b", "c"}}},
		{"order of the cases", "a+ b+", "b- a-", Comparison{Regressions: []string{"b", "a"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, CompareReports(report(tt.before), report(tt.now))); diff != "" {
				t.Errorf("comparison (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDiffExpected(t *testing.T) {
	got := Actual{Outcome: Dispatch, Agents: []string{"b", "a"}, Intent: "x", Domains: []string{"q", "p"}, Reason: "llm_empty"}
	tests := []struct {
		name string
		c    Case
		want []string
	}{
		{"nothing expected", Case{}, nil},
		{"order of sets", Case{Expect: Expect{Agents: []string{"a", "b"}, Domains: []string{"p", "q"}}}, nil},
		{"alternate", Case{Expect: Expect{Agents: []string{"c"}}, Alternates: [][]string{{"a"}, {"a", "b"}}}, nil},
		{"subset", Case{Expect: Expect{Agents: []string{"a"}}}, []string{"agents: got a + b, want a"}},
		{"no agent", Case{Expect: Expect{Agents: []string{}}}, []string{"agents: got a + b, want none"}},
		{"no alternate", Case{Expect: Expect{Agents: []string{"c"}}, Alternates: [][]string{{"d"}}}, []string{"agents: got a + b, want c or d"}},
		{"no domain", Case{Expect: Expect{Domains: []string{}}}, []string{"domains: got p + q, want none"}},
		{"fallback", Case{Expect: Expect{Outcome: AnyFallback}}, []string{"outcome: got dispatch (llm_empty), want fallback"}},
		{"several differences", Case{Expect: Expect{Outcome: Clarify, Intent: "y", Reason: "no_match"}}, []string{
			"outcome: got dispatch (llm_empty), want clarify", "intent: got x, want y", "reason: got llm_empty, want no_match",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, diffExpected(&tt.c, &got)); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
		})
	}
	if !slices.Equal(got.Agents, []string{"b", "a"}) {
		t.Error("got the set sorted in place")
	}
}

func BenchmarkRun(b *testing.B) {
	s := registry(b)
	var cases []Case
	for i := range 1000 {
		cases = append(cases, Case{
			ID: strconv.Itoa(i), Input: "Do a code review of this python module, number " + strconv.Itoa(i),
			Expect: Expect{Outcome: Dispatch, Agents: []string{"quality_agent"}},
		})
	}
	b.ReportAllocs()
	for b.Loop() {
		r, err := Run(b.Context(), Config{Registry: s, Cases: cases, Workers: 1})
		if err != nil || r.Summary.Passed != len(cases) {
			b.Fatalf("%v: %+v", err, r)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(cases)), "µs/case")
}
