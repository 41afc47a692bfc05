package demo

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/agentkit"
	"github.com/caprouter/caprouter/contract"
)

// notebookIntent is the intent whose tasks are also checked with notebookRules.
const notebookIntent = "databricks_review"

// rule reports each line of Python source that its pattern matches. It reads single
// lines, so it misses what only a parser could find.
type rule struct {
	name, severity string
	pattern        *regexp.Regexp
	message        string
}

// finding is one match of a rule.
type finding struct {
	Line     int    `json:"line"`
	Severity string `json:"severity"`
	Rule     string `json:"rule"`
	Message  string `json:"message"`
}

// pythonRules returns the rules for every Python source.
func pythonRules() []rule {
	return []rule{
		{"hardcoded-secret", "error", regexp.MustCompile(`(?i)(token|secret|password|api_?key)\s*=\s*["'][^"']{8,}["']`), "the source contains a secret; read it from the environment"},
		{"eval-exec", "error", regexp.MustCompile(`\b(eval|exec)\(`), "executes any code that its argument contains"},
		{"shell-true", "error", regexp.MustCompile(`shell\s*=\s*True`), "a shell interprets the arguments, so they can run other commands"},
		{"sql-from-strings", "error", regexp.MustCompile(`(?i)f"(select|insert|update|delete)\b.*\{`), "inserted values can change the query; pass parameters"},
		{"is-literal", "error", regexp.MustCompile(`\bis (not )?["'\d]`), "compares identity instead of value"},
		{"bare-except", "warning", regexp.MustCompile(`^\s*except\s*:`), "also catches KeyboardInterrupt and SystemExit"},
		{"mutable-default", "warning", regexp.MustCompile(`^\s*def .*=\s*(\[\]|\{\})`), "all calls share one default value"},
		{"none-comparison", "warning", regexp.MustCompile(`[!=]= None\b`), "compare with “is None”"},
		{"print-call", "note", regexp.MustCompile(`^\s*print\(`), "use logging in code that runs unattended"},
		{"todo-comment", "note", regexp.MustCompile(`#.*\b(TODO|FIXME)\b`), "unfinished work"},
	}
}

// notebookRules returns the rules for notebooks that run on Spark.
func notebookRules() []rule {
	return []rule{
		{"collect-to-driver", "warning", regexp.MustCompile(`\.(collect|toPandas)\(\)`), "transfers every row to the driver"},
		{"cross-join", "warning", regexp.MustCompile(`\.crossJoin\(`), "multiplies the rows of both sides"},
		{"python-udf", "warning", regexp.MustCompile(`\budf\(`), "passes every row through Python; use built-in functions"},
		{"single-partition", "warning", regexp.MustCompile(`\.(coalesce|repartition)\(1\)`), "writes with a single task"},
		{"infer-schema", "note", regexp.MustCompile(`inferSchema`), "reads the data twice; declare the schema"},
	}
}

// checkPython returns the findings in the order of the lines.
func checkPython(source string, rules []rule) []finding {
	found := []finding{}
	for i, line := range strings.Split(source, "\n") {
		for _, r := range rules {
			if r.pattern.MatchString(line) {
				found = append(found, finding{Line: i + 1, Severity: r.severity, Rule: r.name, Message: r.message})
			}
		}
	}
	return found
}

// reviewCode is the work of quality_agent. It checks inputs.code, or the first code
// block of the prompt, without running it.
func reviewCode(_ context.Context, task contract.Task) (contract.Result, error) {
	source, file := textInput(task, "code"), textInput(task, "file")
	if source == "" {
		source, file = codeBlock(agentkit.Prompt(task)), "prompt"
	}
	if strings.TrimSpace(source) == "" {
		return agentkit.Failure("there is no code to review: send it as inputs.code, or in the prompt between lines of ```"), nil
	}
	if file == "" {
		file = "code"
	}
	rules := pythonRules()
	if task.Intent == notebookIntent {
		rules = slices.Concat(rules, notebookRules())
	}
	found := checkPython(source, rules)
	var answer strings.Builder
	fmt.Fprintf(&answer, "%s: %d findings", file, len(found))
	for _, f := range found {
		fmt.Fprintf(&answer, "\n  %4d  %-7s  %s: %s", f.Line, f.Severity, f.Rule, f.Message)
	}
	return newResult(contract.ResultSuccess, answer.String(), map[string]any{"findings": found},
		map[string]float64{"findings": float64(len(found))},
		fmt.Sprintf("%d rules were applied to each line; the code was not executed", len(rules)))
}
