package pycheck

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// TestRules reads testdata/rules/RULE.txtar. Each holds sources that the rule
// must judge: a line it must find ends in "# <-", every other line it must
// leave alone. A file whose name starts with "notebook" is checked as one.
func TestRules(t *testing.T) {
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			path := filepath.Join("testdata", "rules", r.name+".txtar")
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatalf("every rule has its cases in a file: %v", err)
			}
			found := 0
			for _, f := range archive.Files {
				found += checkCase(t, r, f)
			}
			if found == 0 {
				t.Errorf("%s has no case that the rule finds something in", path)
			}
		})
	}
}

func checkCase(t *testing.T, r rule, f txtar.File) int {
	t.Helper()
	const mark = "# <-"
	src := string(f.Data)
	var want []int
	for i, line := range strings.Split(src, "\n") {
		if strings.HasSuffix(line, mark) {
			want = append(want, i+1)
		}
	}
	src = strings.ReplaceAll(src, mark, "")
	var got []int
	for _, found := range Check(src, Options{Notebook: strings.HasPrefix(f.Name, "notebook")}).Findings {
		if found.Rule == r.name {
			got = append(got, found.Line)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: %s finds lines %v, want %v", f.Name, r.name, got, want)
	}
	return len(got)
}

// Every file in testdata/rules belongs to a rule, so that a renamed rule does
// not leave its cases behind unread.
func TestRuleFilesBelongToRules(t *testing.T) {
	files, err := os.ReadDir(filepath.Join("testdata", "rules"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(f.Name(), ".txtar")
		if !slices.ContainsFunc(rules, func(r rule) bool { return r.name == name }) {
			t.Errorf("testdata/rules/%s: there is no rule %q", f.Name(), name)
		}
	}
}

func TestRuleNamesAreDistinct(t *testing.T) {
	seen := make(map[string]bool)
	for _, r := range rules {
		if seen[r.name] || r.severity == "" || r.check == nil {
			t.Errorf("rule %q: want a distinct name, a severity and a check", r.name)
		}
		seen[r.name] = true
	}
}

// Findings say what the reader needs: where, what, and the line itself.
func TestFinding(t *testing.T) {
	got := Check("import json\n\n\ndef f(x):\n    return eval(x)  "+strings.Repeat("#", 90)+"\n", Options{}).Findings
	want := []string{
		"1 unused-import warning json is imported and never used | import json",
		"4 missing-docstring note f is public and has no docstring | def f(x):",
		"5 eval-exec error eval runs whatever its argument says; parse the value instead, as with ast.literal_eval or json | return eval(x)  " + strings.Repeat("#", 63) + "…",
		"5 long-line note the line has 110 characters; at most 100 are easy to read | return eval(x)  " + strings.Repeat("#", 63) + "…",
	}
	var lines []string
	for _, f := range got {
		lines = append(lines, fmt.Sprintf("%d %s %s %s | %s", f.Line, f.Rule, f.Severity, f.Message, f.Code))
	}
	if !slices.Equal(lines, want) {
		t.Errorf("findings:\n got %q\nwant %q", lines, want)
	}
}

func TestNoqaSilencesItsLine(t *testing.T) {
	src := "import json  # noqa: F401\nimport os\n"
	got := Check(src, Options{}).Findings
	if len(got) != 1 || got[0].Line != 2 {
		t.Errorf("findings %v, want one, in line 2", got)
	}
}
