package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caprouter/caprouter/golden"
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
			if code != exitError || errOut != tt.want || out != "" {
				t.Errorf("got exit code %d, %q and %q, want %d, %q and no work", code, errOut, out, exitError, tt.want)
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
	if code := reportError(io.Discard, err); err == nil || err.Error() == "" || code != exitError {
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
			if code != exitUsage || !strings.Contains(errOut, tt.want) {
				t.Errorf("got exit code %d and %q, want %d and %q", code, errOut, exitUsage, tt.want)
			}
		})
	}
	t.Run("output next to the cases, and a device twice", func(t *testing.T) {
		dir, _, errOut, code := runGolden(t, nil, "--junit", os.DevNull, "--html", os.DevNull)
		if code != exitError || errOut != "" {
			t.Errorf("got exit code %d and %q, want the failed case only", code, errOut)
		}
		if _, _, errOut, _ := runGolden(t, nil, "--html", "cases/report.html"); errOut != "" {
			t.Errorf("%s: got %q, want no error about a report that is not a case file", dir, errOut)
		}
	})
}

// A link is kept, and its target is written, even if it is missing.
func TestWriteReport_FollowsLinks(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "real"), 0o750); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"old.xml", "new.xml"} {
		file := filepath.Join(dir, "real", target)
		if target == "old.xml" {
			if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		link := filepath.Join(dir, "link-"+target)
		if err := os.Symlink(filepath.Join("real", target), link); err != nil {
			t.Fatal(err)
		}
		if err := writeReport(link, func(w io.Writer) error { _, err := io.WriteString(w, "written"); return err }); err != nil {
			t.Fatal(err)
		}
		if to, err := os.Readlink(link); err != nil || to != filepath.Join("real", target) {
			t.Errorf("%s: got a link to %q, error %v, want it unchanged", link, to, err)
		}
		if data, _ := os.ReadFile(file); string(data) != "written" {
			t.Errorf("%s: got %q, want the written text", file, data)
		}
	}
	checkFiles(t, filepath.Join(dir, "real"), map[string]string{"old.xml": "written", "new.xml": "written"})
}

// The check whether a file can be written changes no file and leaves none.
func TestCheckWritable_LeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "old.xml")
	if err := os.WriteFile(old, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{old, filepath.Join(dir, "new.xml"), os.DevNull} {
		if err := checkWritable(path); err != nil {
			t.Errorf("%s: got %v, want no error", path, err)
		}
	}
	checkFiles(t, dir, map[string]string{"old.xml": "old"})
}

// A process that is killed leaves its temporary file. The next one removes it if it is so
// old that no process can use it.
func TestWriteAtomically_RemovesAbandonedTempFiles(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-2 * time.Hour)
	names := map[string]bool{ // is kept
		".caprouter-123": false, ".caprouter-124": true, ".caprouter-": true, ".caprouter-notes1": true, ".caprouter-1.yaml": true,
	}
	for name := range names {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if name == ".caprouter-124" {
			continue // of a process that runs
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, ".caprouter-7"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(dir, ".caprouter-7"), old, old); err != nil {
		t.Fatal(err)
	}
	names[".caprouter-7"] = true
	if err := writeAtomically(fileContent{path: filepath.Join(dir, "cases.yaml"), content: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	for name, want := range names {
		if _, err := os.Lstat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s: got kept %v, want %v", name, err == nil, want)
		}
	}
}
