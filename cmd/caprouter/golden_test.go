package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/docs"
	"github.com/caprouter/caprouter/golden"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/localfile"
	"github.com/caprouter/caprouter/internal/testkit/fakellm"
)

const (
	goldenRegistry = "clients:\n  quality_agent:\n    match: { intent: [code_review], domains: [python] }\n"
	goldenCases    = "cases:\n" +
		"  - { id: a, input: have a look, expect: { agents: [quality_agent] } }\n" +
		"  - { id: b, input: have another look, expect: { agents: [quality_agent] } }\n" +
		"  - { id: c, input: and a third one, expect: { agents: [quality_agent] } }\n"
	codeReview = `{"intent":"code_review","domains":["python"],"subtasks":[],"confidence":0.93}`
)

// goldenDir returns a directory with a registry and cases, and a model in the environment that is
// interrupted at its second call.
func goldenDir(t *testing.T) (dir string, ctx context.Context) {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	t.Cleanup(interrupt)
	server := fakellm.Start(t, fakellm.Config{Script: func(r *fakellm.Request) fakellm.Behaviour {
		if r.Call > 0 {
			interrupt()
			return fakellm.Silence()
		}
		return fakellm.Text(codeReview)
	}})
	t.Setenv("CAPROUTER_LLM_BASE_URL", server.URL)
	t.Setenv("GEMINI_API_KEY", server.Key)
	dir = t.TempDir()
	for name, content := range map[string]string{"registry.yaml": goldenRegistry, "cases.yaml": goldenCases} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, ctx
}

func TestGoldenRun_WritesReportWhenInterrupted(t *testing.T) {
	dir, ctx := goldenDir(t)
	junit := filepath.Join(dir, "junit.xml")
	var out, errOut bytes.Buffer
	code := execute(ctx, []string{
		"golden", "run", "--live", "--json", "--parallel", "1", "--junit", junit,
		"--registry", filepath.Join(dir, "registry.yaml"), filepath.Join(dir, "cases.yaml"),
	}, nil, &out, &errOut)
	if want := "caprouter: interrupted: 1 of 3 cases were run; the report holds these\n"; code != cmdline.ExitError || errOut.String() != want {
		t.Errorf("got exit code %d and %q, want %d and %q", code, errOut.String(), cmdline.ExitError, want)
	}
	report := filepath.Join(dir, "report.json")
	if err := os.WriteFile(report, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := golden.ReadJSON(report)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Interrupted || r.Summary.Passed != 1 || r.Cases[0].ID != "a" {
		t.Errorf("got %+v, want the first case, interrupted", r)
	}
	if xml, err := os.ReadFile(junit); err != nil || !strings.Contains(string(xml), "interrupted: 1 of 3 cases were run") {
		t.Errorf("JUnit: got %v and %s, want interrupted", err, xml)
	}
}

func TestGoldenRecord_KeepsRepliesWhenInterrupted(t *testing.T) {
	dir, ctx := goldenDir(t)
	cassette := filepath.Join(dir, "cases.cassette.jsonl")
	var out, errOut bytes.Buffer
	code := execute(ctx, []string{
		"golden", "record", "--parallel", "1", "--cassette", cassette,
		"--registry", filepath.Join(dir, "registry.yaml"), filepath.Join(dir, "cases.yaml"),
	}, nil, &out, &errOut)
	if want := "caprouter: interrupted: 1 of 3 cases were recorded; the cassette holds these\n"; code != cmdline.ExitError || errOut.String() != want {
		t.Errorf("got exit code %d and %q, want %d and %q", code, errOut.String(), cmdline.ExitError, want)
	}
	c, err := golden.ReadCassette(cassette)
	if err != nil || c.Len() != 1 {
		t.Errorf("got %v, want a cassette with one recording", err)
	}
}

// If a report cannot be written, the previous file and its mode are kept.
func TestWriteReport(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.xml")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if err := localfile.WriteReport(path, func(io.Writer) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
	if data, _ := os.ReadFile(path); string(data) != "old" {
		t.Errorf("got %q, want the previous report", data)
	}
	for _, file := range []string{path, path + ".new"} {
		if err := localfile.WriteReport(file, func(w io.Writer) error { _, err := io.WriteString(w, "new"); return err }); err != nil {
			t.Fatal(err)
		}
		if data, _ := os.ReadFile(file); string(data) != "new" {
			t.Errorf("%s: got %q, want the new report", file, data)
		}
	}
	for file, want := range map[string]os.FileMode{path: 0o600, path + ".new": 0o644} {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: got %v, error %v, want the mode %v", file, info.Mode(), err, want)
		}
	}
	if err := localfile.WriteReport(filepath.Join(path, "below", "a.xml"), func(io.Writer) error { return nil }); err == nil {
		t.Error("below a file: got no error")
	}
}

// Every flag of the commands with cases is documented.
func TestGoldenFlags_AreDocumented(t *testing.T) {
	text, err := docs.FS.ReadFile("golden.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, sub := range newGoldenCommand().Commands() {
		if sub.Name() == "bench" {
			continue // documented in quality.md
		}
		for _, m := range regexp.MustCompile("--[a-z-]+").FindAllString(sub.LocalFlags().FlagUsages(), -1) {
			if !strings.Contains(string(text), "`"+m) {
				t.Errorf("golden.md: got no %s of golden %s", m, sub.Name())
			}
		}
	}
}
