package demo

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/agentkit"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/docs"
)

// newTask returns a task whose inputs are strings.
func newTask(intent string, inputs map[string]string) contract.Task {
	task := contract.Task{Intent: intent, Inputs: map[string]json.RawMessage{}}
	for name, text := range inputs {
		task.Inputs[name], _ = json.Marshal(text)
	}
	return task
}

func searchWork(t *testing.T) agentkit.Work {
	t.Helper()
	index, err := newSearchIndex(docs.FS)
	if err != nil {
		t.Fatal(err)
	}
	return answerFrom(index)
}

func TestAgents_ReturnAnswerOrReason(t *testing.T) {
	const bad = "try:\n    f()\nexcept:\n    raise\n"
	search := searchWork(t)
	tests := []struct {
		name   string
		work   agentkit.Work
		task   contract.Task
		status contract.ResultStatus
		want   []string // in the answer or in the explanations
	}{
		{"code and file name", reviewCode, newTask("code_review", map[string]string{"code": bad, "file": "a.py"}), contract.ResultSuccess, []string{"a.py: 1 findings", "3  warning  bare-except"}},
		{"code without a file name", reviewCode, newTask("code_review", map[string]string{"code": bad}), contract.ResultSuccess, []string{"code: 1 findings"}},
		{"code in the prompt", reviewCode, newTask("code_review", map[string]string{"prompt": "look:\n```python\n" + bad + "```\nthanks"}), contract.ResultSuccess, []string{"prompt: 1 findings"}},
		{"input before prompt", reviewCode, newTask("code_review", map[string]string{"code": "x = 1\n", "prompt": "```\n" + bad + "```"}), contract.ResultSuccess, []string{"code: 0 findings"}},
		{"notebook rules", reviewCode, newTask(notebookIntent, map[string]string{"code": "rows = df.collect()\n"}), contract.ResultSuccess, []string{"collect-to-driver"}},
		{"no notebook rules for other code", reviewCode, newTask("code_review", map[string]string{"code": "rows = df.collect()\n"}), contract.ResultSuccess, []string{"code: 0 findings"}},
		{"no code", reviewCode, newTask("code_review", map[string]string{"prompt": "review my code"}), contract.ResultFailure, []string{"there is no code"}},
		{"code that is not a string", reviewCode, contract.Task{Inputs: map[string]json.RawMessage{"code": json.RawMessage(`[1]`)}}, contract.ResultFailure, []string{"there is no code"}},
		{"sample script", reviewCode, newTask("code_review", map[string]string{"code": etlJob}), contract.ResultSuccess, []string{"14  error    hardcoded-secret", "eval-exec", "shell-true", "sql-from-strings"}},
		{"sample notebook", reviewCode, newTask(notebookIntent, map[string]string{"code": notebook}), contract.ResultSuccess, []string{"python-udf", "cross-join", "infer-schema"}},

		{"export", analyseCosts, newTask("cost_analysis", map[string]string{"csv": "service,cost\nA,1.10\n"}), contract.ResultSuccess, []string{"1.10 in 1 rows"}},
		{"export in the prompt", analyseCosts, newTask("cost_analysis", map[string]string{"prompt": "here:\n```\ncost\n2\n```"}), contract.ResultSuccess, []string{"2.00 in 1 rows"}},
		{"amount that is not a number", analyseCosts, newTask("cost_analysis", map[string]string{"csv": "service,cost\nA,1\nB,abc\n"}), contract.ResultFailure, []string{`row 3: the cost "abc" is not an amount`}},
		{`the cost "" is not an amount`, analyseCosts, newTask("cost_analysis", map[string]string{"csv": "a,b\n1,2\n"}), contract.ResultFailure, []string{`the cost "" is not an amount`}},
		{"no rows", analyseCosts, newTask("cost_analysis", map[string]string{"csv": "cost\n"}), contract.ResultSuccess, []string{"0.00 in 0 rows"}},
		{"no export", analyseCosts, newTask("cost_analysis", map[string]string{"prompt": "how much?"}), contract.ResultFailure, []string{"there is no cost export"}},
		{"sample export", analyseCosts, newTask("cost_analysis", map[string]string{"csv": azureCosts}), contract.ResultSuccess, []string{"5798.18 in 455 rows", "%  2026-02-17", "Idle (CPU below 3 %):\n      430.46    7.4 %  vm-jenkins"}},
		{"sample export with decimal commas", analyseCosts, newTask("cost_analysis", map[string]string{"csv": costesAzure}), contract.ResultSuccess, []string{"9107.45 in 16 rows", "Untagged:\n     1056.15   11.6 %  st-copias", "2026-03"}},

		{"question without a match", search, newTask("doc_answering", map[string]string{"prompt": "zyzzyva?"}), contract.ResultPartial, []string{"The documents do not mention this."}},
		{"ties", search, newTask("doc_answering", map[string]string{"prompt": "What do the docs say about how ties between agents are broken?"}), contract.ResultSuccess, []string{"docs/routing.md"}},
		{"score", search, newTask("doc_answering", map[string]string{"prompt": "how is the score of an agent computed?"}), contract.ResultSuccess, []string{"docs/routing.md"}},
		{"endpoint keys", search, newTask("doc_answering", map[string]string{"prompt": "which keys does an endpoint have in the registry?"}), contract.ResultSuccess, []string{"docs/registry.md"}},
		{"token", search, newTask("doc_answering", map[string]string{"prompt": "how do I verify the token in an agent?"}), contract.ResultSuccess, []string{"docs/agents.md"}},
		{"error code", search, newTask("doc_answering", map[string]string{"prompt": "what does the error code payload_too_large mean?"}), contract.ResultSuccess, []string{"docs/http.md"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.work(t.Context(), tt.task)
			if err != nil {
				t.Fatal(err)
			}
			if got.Status != tt.status {
				t.Errorf("got status %s, want %s", got.Status, tt.status)
			}
			if got.Status != contract.ResultFailure && (len(got.Data) != 2 || len(got.Metrics) == 0 || len(got.Explanations) == 0) {
				t.Errorf("got %+v, want an answer, further data, metrics and an explanation", got)
			}
			text := got.Text() + strings.Join(got.Explanations, "\n")
			for _, want := range tt.want {
				if !strings.Contains(text, want) {
					t.Errorf("got %q, want %q in it", text, want)
				}
			}
		})
	}
}

func TestPythonRules_MatchOnlyTheirMistake(t *testing.T) {
	tests := []struct {
		line string
		want []string
	}{
		{`API_TOKEN = "sk_live_51H8xQ2eZvKYlo2C"`, []string{"hardcoded-secret"}},
		{`token = os.environ["TOKEN"]`, nil},
		{`return eval(rule)`, []string{"eval-exec"}},
		{`model.evaluate(x)`, nil},
		{`if body.get("next") == None:`, []string{"none-comparison"}},
		{`if body.get("next") is None:`, nil},
		{`if len(batch) is 500:`, []string{"is-literal"}},
		{`def f(a, b=[]):`, []string{"mutable-default"}},
		{`def f(a, b=None):`, nil},
		{`except Exception:`, nil},
	}
	for _, tt := range tests {
		var got []string
		for _, f := range checkPython(tt.line, pythonRules()) {
			got = append(got, f.Rule)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.line, diff)
		}
	}
}

func TestSplitSections_IgnoresHeadingsInCode(t *testing.T) {
	var got []string
	for _, s := range splitSections("docs/a.md", "intro\n# One\ntext\n```\n# no heading\n```\n## Empty\n## Two\nmore\n") {
		got = append(got, s.heading+": "+s.text)
	}
	want := []string{"docs/a.md: intro", "One: text\n```\n# no heading\n```", "Two: more"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sections (-want +got):\n%s", diff)
	}
}

func TestCodeBlock(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"none", "no code", ""},
		{"one", "a\n```python\nx = 1\n```\nb", "x = 1\n"},
		{"first of two", "```\na\n```\n```\nb\n```", "a\n"},
		{"indented fences", "  ```\n  a\n  ```", "  a\n"},
		{"unterminated", "```\na\nb", "a\nb"},
		{"empty", "```\n```", ""},
		{"inline code", "run `x` now", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := codeBlock(tt.in); got != tt.want {
				t.Errorf("codeBlock(%q): got %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}
