package goldenreport

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/golden"
)

func reportOf(reader golden.Classifier, ids ...string) *golden.Report {
	r := &golden.Report{Classifier: reader}
	for _, id := range ids {
		r.Cases = append(r.Cases, golden.CaseResult{ID: id, Passed: true})
	}
	return r
}

func TestPrintComparison_ListsRemovedCases(t *testing.T) {
	var ids []string
	for i := range 23 {
		ids = append(ids, fmt.Sprintf("case-%02d", i))
	}
	words := golden.Classifier{Mode: "lexical"}
	before, now := reportOf(words, ids...), reportOf(words, "case-00")
	c := golden.CompareReports(before, now)
	var out strings.Builder
	PrintComparison(&out, before, now, &c, 0)
	var want strings.Builder
	for _, id := range ids[1:21] {
		want.WriteString("gone: " + id + "\n")
	}
	want.WriteString("gone: … and 2 more\nagainst the baseline: 0 regressions, 0 new failures (0 may be), 0 failed before, 0 fixed, 22 gone\n")
	if diff := cmp.Diff(want.String(), out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPrintComparison_WarnsOfOtherClassifier(t *testing.T) {
	before := reportOf(golden.Classifier{Mode: "lexical"}, "a")
	now := reportOf(golden.Classifier{Mode: "llm", Provider: "p", Model: "m", PromptVersion: "v"}, "a")
	var out strings.Builder
	PrintComparison(&out, before, now, new(golden.Comparison), 0)
	if want := "warning: another reader than in the baseline: llm, p m, prompts v, was lexical\n"; !strings.HasPrefix(out.String(), want) {
		t.Errorf("got %q, want the prefix %q", out.String(), want)
	}
}
