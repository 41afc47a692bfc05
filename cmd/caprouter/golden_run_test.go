package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/golden"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
)

// runGolden runs golden run in its own directory, with a registry, a case that passes and a case
// that fails.
func runGolden(t *testing.T, prepare func(dir string), args ...string) (dir, out, errOut string, code int) {
	t.Helper()
	dir = t.TempDir()
	for name, content := range map[string]string{
		"registry.yaml": goldenRegistry,
		"other/c.yaml":  "cases:\n  - { id: c, input: dance, expect: { outcome: fallback } }\n",
		"cases/a.yaml": "cases:\n  - { id: a, input: a code review of python, expect: { agents: [quality_agent] } }\n" +
			"  - { id: b, input: sing, expect: { agents: [quality_agent] } }\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if prepare != nil {
		prepare(dir)
	}
	t.Chdir(dir)
	var stdout, stderr bytes.Buffer
	code = execute(t.Context(), append([]string{"golden", "run", "--registry", "registry.yaml", "cases"}, args...), nil, &stdout, &stderr)
	return dir, stdout.String(), stderr.String(), code
}

// A report that cannot be written is reported before the run, with the path that the user entered.
func TestGoldenRun_ChecksOutputsFirst(t *testing.T) {
	tests := []struct{ name, flag, path, want string }{
		{"missing directory", "--html", "none/report.html", "caprouter: none/report.html: no such file or directory\n"},
		{"below a file", "--junit", "registry.yaml/report.xml", "caprouter: registry.yaml/report.xml: not a directory\n"},
		{"a directory", "--html", "cases", "caprouter: cases: is a directory\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, out, errOut, code := runGolden(t, nil, "--json", tt.flag, tt.path)
			if code != cmdline.ExitError || errOut != tt.want || out != "" {
				t.Errorf("got exit code %d, %q and %q, want %d, %q and no work", code, errOut, out, cmdline.ExitError, tt.want)
			}
		})
	}
}

// If a file cannot be written after the run, the report is still printed.
func TestGoldenRun_PrintsBeforeWriting(t *testing.T) {
	dir := t.TempDir()
	gone := filepath.Join(dir, "gone", "report.html")
	f := runFlags{html: gone, asJSON: true}
	cmd := newGoldenRunCommand()
	var out bytes.Buffer
	cmd.SetOut(&out)
	err := f.finishRun(cmd, &golden.Report{Summary: golden.Summary{Planned: 2, Total: 1}, Interrupted: true}, nil)
	if err == nil {
		t.Fatal("got no error, want one")
	}
	for _, want := range []string{gone + ": no such file or directory", "interrupted: 1 of 2 cases were run"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	if !strings.Contains(out.String(), `"interrupted":true`) {
		t.Errorf("got %q, want the report", &out)
	}
	f.html = filepath.Join(dir, "gone", "report.html")
	err = f.finishRun(cmd, &golden.Report{Summary: golden.Summary{Failed: 1}}, nil)
	if code := cmdline.ReportError(io.Discard, err); err == nil || err.Error() == "" || code != cmdline.ExitError {
		t.Errorf("got %v, want the file that was not written, although a case failed too", err)
	}
}

// No output may replace an input or the other output.
func TestGoldenRun_RejectsInputAsOutput(t *testing.T) {
	prepare := func(dir string) {
		if err := os.Symlink("registry.yaml", filepath.Join(dir, "link.html")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("../other", filepath.Join(dir, "cases", "linked")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("other/c.yaml", filepath.Join(dir, "out.xml")); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "more.yaml"), []byte("cases: []\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"same output twice", []string{"--html", "x.html", "--junit", "./x.html"}, "--html x.html and --junit ./x.html are the same file"},
		{"a baseline", []string{"--junit", "b.json", "--baseline", "cases/../b.json"}, "--junit b.json and --baseline cases/../b.json are the same file"},
		{"a cassette", []string{"--html", "c.jsonl", "--cassette", "c.jsonl"}, "--html c.jsonl and --cassette c.jsonl are the same file"},
		{"link to the registry", []string{"--html", "link.html"}, "--html link.html and the registry registry.yaml are the same file"},
		{"case file", []string{"more.yaml", "--html", "more.yaml"}, "--html more.yaml and the case file more.yaml are the same file"},
		{"link to a case file of a directory", []string{"--junit", "out.xml"}, "--junit out.xml and the case file cases/linked/c.yaml are the same file"},
		{"case file of a directory", []string{"--junit", "cases/a.yaml"}, "--junit cases/a.yaml and the case file cases/a.yaml are the same file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, errOut, code := runGolden(t, prepare, tt.args...)
			if code != cmdline.ExitUsage || !strings.Contains(errOut, tt.want) {
				t.Errorf("got exit code %d and %q, want %d and %q", code, errOut, cmdline.ExitUsage, tt.want)
			}
		})
	}
	t.Run("output next to the cases, and a device twice", func(t *testing.T) {
		dir, _, errOut, code := runGolden(t, nil, "--junit", os.DevNull, "--html", os.DevNull)
		if code != cmdline.ExitError || errOut != "" {
			t.Errorf("got exit code %d and %q, want the failed case only", code, errOut)
		}
		if _, _, errOut, _ := runGolden(t, nil, "--html", "cases/report.html"); errOut != "" {
			t.Errorf("%s: got %q, want no error about a report that is not a case file", dir, errOut)
		}
	})
}

// reportOf returns the report of cases that passed.
func reportOf(ids ...string) *golden.Report {
	r := &golden.Report{}
	for _, id := range ids {
		r.Cases = append(r.Cases, golden.CaseResult{ID: id, Passed: true})
	}
	return r
}

// Cases of the baseline are gone only if all cases were run.
func TestGoldenRun_ComparesSelectedCases(t *testing.T) {
	before, now := reportOf("a", "b"), reportOf("a")
	var flags runFlags
	if c := flags.compareBaseline(before, now); len(c.Gone) != 1 {
		t.Errorf("all cases: got %q gone, want b", c.Gone)
	}
	flags.filter.IDs = []string{"a"}
	if c := flags.compareBaseline(before, now); len(c.Gone) > 0 {
		t.Errorf("selected cases: got %q gone, want none", c.Gone)
	}
}

func TestGoldenRun_RejectsBaselineOfOtherCases(t *testing.T) {
	before := reportOf("a")
	flags := runFlags{baseline: "b.json"}
	others := []golden.Case{{ID: "x"}}
	if err := flags.checkBaseline(before, others); err == nil || !strings.HasPrefix(err.Error(), "b.json: has none of these cases") {
		t.Errorf("got %v, want an error because no case is in the baseline", err)
	}
	if err := flags.checkBaseline(before, append(others, golden.Case{ID: "a"})); err != nil {
		t.Errorf("one case in common: got %v", err)
	}
	flags.filter.Tags = []string{"new"}
	if err := flags.checkBaseline(before, others); err != nil {
		t.Errorf("selected cases: got %v, want no error, because they may all be new", err)
	}
}
