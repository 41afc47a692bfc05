package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/localfile"
	"github.com/caprouter/caprouter/internal/testkit/fakellm"
)

// closedDir returns a directory in which no user, not even root, can create a file.
func closedDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "closed")
	if err := os.Mkdir(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{dir, "/proc"} {
		f, err := os.CreateTemp(dir, "golden-")
		if err != nil {
			return dir
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(f.Name()); err != nil {
			t.Fatal(err)
		}
	}
	t.Skip("every directory is writable on this system")
	return ""
}

// The model is not called if its replies cannot be stored.
func TestGoldenRecord_ChecksFileFirst(t *testing.T) {
	closed := closedDir(t)
	server := fakellm.Start(t, fakellm.Config{Script: func(*fakellm.Request) fakellm.Behaviour {
		t.Error("got a call of the model, want none")
		return fakellm.Text(codeReview)
	}})
	t.Setenv("CAPROUTER_LLM_BASE_URL", server.URL)
	t.Setenv("GEMINI_API_KEY", server.Key)
	dir := t.TempDir()
	for name, content := range map[string]string{"registry.yaml": goldenRegistry, "cases.yaml": goldenCases} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cassette := filepath.Join(closed, "a.cassette.jsonl")
	var out, errOut bytes.Buffer
	code := execute(t.Context(), []string{
		"golden", "record", "--cassette", cassette,
		"--registry", filepath.Join(dir, "registry.yaml"), filepath.Join(dir, "cases.yaml"),
	}, nil, &out, &errOut)
	if want := "caprouter: " + cassette + ": "; code != cmdline.ExitError || !strings.HasPrefix(errOut.String(), want) {
		t.Errorf("got exit code %d and %q, want %d and %q…", code, errOut.String(), cmdline.ExitError, want)
	}
	if err := localfile.CheckWritable(dir); err == nil {
		t.Error("directory in place of a file: got no error")
	}
	file := filepath.Join(dir, "new.cassette.jsonl")
	if err := localfile.CheckWritable(file); err != nil {
		t.Errorf("writable file: got %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("got files %v, error %v; want none", left, err)
	}
}
