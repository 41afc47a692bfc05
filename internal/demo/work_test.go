package demo

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/agentkit"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/docs"
	"github.com/caprouter/caprouter/internal/demo/docsearch"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// task makes a task with inputs that are texts.
func task(intent string, inputs map[string]string) contract.Task {
	t := contract.Task{Intent: intent, Inputs: map[string]json.RawMessage{}}
	for name, text := range inputs {
		t.Inputs[name], _ = json.Marshal(text)
	}
	return t
}

func do(t *testing.T, work agentkit.Work, in contract.Task) contract.Result {
	t.Helper()
	r, err := work(t.Context(), in)
	if err != nil {
		t.Fatalf("the work fails: %v", err)
	}
	return r
}

func TestReview(t *testing.T) {
	const bad = "try:\n    f()\nexcept:\n    raise\n"
	tests := []struct {
		name   string
		task   contract.Task
		status contract.ResultStatus
		want   string // in the answer, or in the explanation of a failure
	}{
		{"code and its name", task("code_review", map[string]string{"code": bad, "file": "a.py"}), contract.ResultSuccess, "a.py: 1 finding"},
		{"code without a name", task("code_review", map[string]string{"code": bad}), contract.ResultSuccess, "code: 1 finding"},
		{"code in the prompt", task("code_review", map[string]string{"prompt": "look:\n```python\n" + bad + "```\nthanks"}), contract.ResultSuccess, "prompt: 1 finding in 4 lines"},
		{"the input wins over the prompt", task("code_review", map[string]string{"code": "x = 1\n", "prompt": "```\n" + bad + "```"}), contract.ResultSuccess, "nothing to complain about"},
		{"notebook rules by intent", task(reviewIntent, map[string]string{"code": "rows = df.collect()\n"}), contract.ResultSuccess, "collect-to-driver"},
		{"no notebook rules otherwise", task("code_review", map[string]string{"code": "rows = df.collect()\n"}), contract.ResultSuccess, "nothing to complain about"},
		{"nothing to review", task("code_review", map[string]string{"prompt": "review my code"}), contract.ResultFailure, "there is no code to review"},
		{"blank code", task("code_review", map[string]string{"code": " \n"}), contract.ResultFailure, "there is no code to review"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := do(t, review, tt.task)
			said := got.Text() + strings.Join(got.Explanations, "\n")
			if got.Status != tt.status || !strings.Contains(said, tt.want) {
				t.Errorf("status %s, says %q; want %s and %q", got.Status, said, tt.status, tt.want)
			}
		})
	}
}

// Inputs that are no texts are as good as none.
func TestInputsOfTheWrongKind(t *testing.T) {
	in := contract.Task{Inputs: map[string]json.RawMessage{"code": json.RawMessage(`[1]`), "csv": json.RawMessage(`{"a":1}`)}}
	for name, work := range map[string]agentkit.Work{"review": review, "analyse": analyse} {
		if got := do(t, work, in); got.Status != contract.ResultFailure || len(got.Explanations) != 1 {
			t.Errorf("%s: status %s, explanations %q; want a failure that says why", name, got.Status, got.Explanations)
		}
	}
}

func TestAnalyse(t *testing.T) {
	tests := []struct {
		name   string
		task   contract.Task
		status contract.ResultStatus
		want   string
	}{
		{"an export", task("cost_analysis", map[string]string{"csv": "service,cost\nA,1.10\n"}), contract.ResultSuccess, "1.10 in 1 row"},
		{"an export in the prompt", task("cost_analysis", map[string]string{"prompt": "here:\n```\ncost\n2\n```"}), contract.ResultSuccess, "2.00 in 1 row"},
		{"a bad amount", task("cost_analysis", map[string]string{"csv": "service,cost\nA,1\nB,abc\n"}), contract.ResultFailure, `row 3, column "cost": "abc" is not an amount`},
		{"nothing to analyse", task("cost_analysis", map[string]string{"prompt": "how much?"}), contract.ResultFailure, "there is no cost export"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := do(t, analyse, tt.task)
			said := got.Text() + strings.Join(got.Explanations, "\n")
			if got.Status != tt.status || !strings.Contains(said, tt.want) {
				t.Errorf("status %s, says %q; want %s and %q", got.Status, said, tt.status, tt.want)
			}
		})
	}
}

func documents(t *testing.T) agentkit.Work {
	t.Helper()
	sections, err := docsearch.Load(docs.FS)
	if err != nil {
		t.Fatal(err)
	}
	return answerFrom(docsearch.New(sections))
}

// Questions people ask are answered from the right document.
func TestAnswerFromTheDocuments(t *testing.T) {
	tests := []struct{ question, file string }{
		{"What do the docs say about how ties between agents are broken?", "routing.md"},
		{"how is the score of an agent computed?", "routing.md"},
		{"which keys does an endpoint have in the registry?", "registry.md"},
		{"how do I verify the token in an agent?", "agents.md"},
		{"what does the error code payload_too_large mean?", "http.md"},
		{"where is the signing key kept?", "operations.md"},
		{"what happens when I reload a broken registry file?", "registry.md operations.md"},
	}
	for _, tt := range tests {
		t.Run(tt.question, func(t *testing.T) {
			got := do(t, documents(t), task("doc_answering", map[string]string{"prompt": tt.question}))
			var hits []docsearch.Hit
			if err := json.Unmarshal(got.Data["hits"], &hits); err != nil {
				t.Fatal(err)
			}
			if got.Status != contract.ResultSuccess || len(hits) != maxHits {
				t.Fatalf("status %s with %d hits, want success with %d", got.Status, len(hits), maxHits)
			}
			if !slices.ContainsFunc(hits, func(h docsearch.Hit) bool { return strings.Contains(tt.file, h.File) }) {
				t.Errorf("hits %+v, want one in %s", hits, tt.file)
			}
			if text := got.Text(); !strings.Contains(text, hits[0].Snippet) || !strings.Contains(text, "docs/"+hits[0].File) {
				t.Errorf("the answer does not quote its source: %q", text)
			}
		})
	}
}

func TestAnswerWithoutAHit(t *testing.T) {
	got := do(t, documents(t), task("doc_answering", map[string]string{"prompt": "zyzzyva?"}))
	if got.Status != contract.ResultPartial || string(got.Data["hits"]) != "[]" || len(got.Explanations) != 1 {
		t.Errorf("got %+v, want a partial result with no hits and a reason", got)
	}
}

// Every result has what its readers rely on: a text, metrics with the time, and
// explanations.
func TestResultsAreComplete(t *testing.T) {
	for name, got := range map[string]contract.Result{
		"review":  do(t, review, task("code_review", map[string]string{"code": etlJob})),
		"analyse": do(t, analyse, task("cost_analysis", map[string]string{"csv": azureCosts})),
		"answer":  do(t, documents(t), task("retrieval_qa", map[string]string{"prompt": "gates"})),
	} {
		if _, timed := got.Metrics["ms"]; got.Text() == "" || !timed || len(got.Explanations) == 0 {
			t.Errorf("%s: %+v, want a text, metrics.ms and explanations", name, got)
		}
	}
}

// TestSamples fixes what the agents say about the sample material.
func TestSamples(t *testing.T) {
	tests := []struct {
		name string
		work agentkit.Work
		task contract.Task
	}{
		{"etl_job", review, task("code_review", map[string]string{"code": etlJob, "file": "etl_job.py"})},
		{"notebook", review, task(reviewIntent, map[string]string{"code": notebook, "file": "notebook.py"})},
		{"azure_costs", analyse, task("cost_analysis", map[string]string{"csv": azureCosts})},
		{"costes_azure", analyse, task("cost_analysis", map[string]string{"csv": costesAzure})},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			result := do(t, tt.work, tt.task)
			var rest strings.Builder
			for _, name := range []string{"findings", "costs"} {
				if raw, ok := result.Data[name]; ok {
					rest.WriteString("\n-- data." + name + " --\n" + indented(t, raw))
				}
			}
			got := result.Text() + "\n" + rest.String()
			path := filepath.Join("testdata", tt.name+".golden")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatalf("%v; run the test with -update", err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", path, diff)
			}
		})
	}
}

func indented(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	out, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out) + "\n"
}

func TestFenced(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"none", "no code", ""},
		{"one", "a\n```python\nx = 1\n```\nb", "x = 1\n"},
		{"the first of two", "```\na\n```\n```\nb\n```", "a\n"},
		{"indented fences", "  ```\n  a\n  ```", "  a\n"},
		{"not closed", "```\na\nb", "a\nb"},
		{"empty", "```\n```", ""},
		{"inline code is no block", "run `x` now", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := fenced(tt.in); got != tt.want {
				t.Errorf("fenced(%q) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}
