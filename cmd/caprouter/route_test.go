package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/cli/routerflags"
)

func TestRouteFlags_NewRequest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "app.py")
	if err := os.WriteFile(file, []byte("print(\"olá\")\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := routeFlags{
		inputs: []string{"code=@" + file, "empty=", "eq=a=b"},
		agent:  "quality_agent", locale: "pt-BR", timeout: 1500 * time.Millisecond, dryRun: true,
		session: "s1", choose: "r=1=2", fallback: "B",
	}
	got, err := flags.newRequest(&cobra.Command{}, "revise")
	if err != nil {
		t.Fatal(err)
	}
	agent, policy := "quality_agent", "B"
	want := &contract.Request{
		Content: contract.Content{Prompt: "revise", Inputs: map[string]json.RawMessage{
			"code": json.RawMessage(`"print(\"olá\")\n"`), "empty": json.RawMessage(`""`), "eq": json.RawMessage(`"a=b"`),
		}},
		Metadata:      contract.Metadata{Locale: "pt-BR"},
		AgentID:       &agent,
		SessionID:     "s1",
		Clarification: &contract.ClarificationChoice{RequestID: "r", OptionID: "1=2"},
		Options:       contract.Options{DryRun: true, TimeoutMS: 1500, Fallback: &policy},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

func TestReadPrompt(t *testing.T) {
	long := strings.Repeat("é", contract.MaxPromptBytes/2)
	tests := []struct {
		name, arg, stdin string
		want, err        string
	}{
		{name: "argument", arg: "review", want: "review"},
		{name: "standard input", arg: "-", stdin: "review\nthis\n", want: "review\nthis\n"},
		{name: "longest", arg: "-", stdin: long, want: long},
		{name: "too long", arg: "-", stdin: long + "é", err: "longer than 64 KiB: pass long material with --input NAME=@FILE"},
		{name: "argument too long", arg: long + "é", err: "longer than 64 KiB"},
		{name: "not UTF-8", arg: "-", stdin: "a\xff", err: "is not UTF-8"},
		{name: "empty", arg: "", err: "the text is empty"},
		{name: "spaces", arg: "-", stdin: " \n", err: "the text is empty"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cmd := &cobra.Command{}
			cmd.SetIn(strings.NewReader(tt.stdin))
			got, err := readPrompt(cmd, tt.arg)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got error %v, want %q in it", err, tt.err)
				}
				return
			}
			if err != nil || got != tt.want {
				t.Errorf("got %.20q, %v, want %.20q", got, err, tt.want)
			}
		})
	}
	cmd := &cobra.Command{}
	broken := errors.New("unplugged")
	cmd.SetIn(iotest.ErrReader(broken))
	if _, err := readPrompt(cmd, "-"); !errors.Is(err, broken) {
		t.Errorf("got %v, want it to be %v", err, broken)
	}
}

func TestParseInputs_ReadsFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return "x=@" + path
	}
	tests := []struct {
		name, arg, err string
	}{
		{"largest", write("largest", bytes.Repeat([]byte("a"), contract.MaxBodyBytes)), ""},
		{"too large", write("large", bytes.Repeat([]byte("a"), contract.MaxBodyBytes+1)), "is larger than 1024 KiB"},
		{"not text", write("binary", []byte("\xff\xfe")), "--input x: it is not UTF-8 text"},
		{"missing", "x=@" + filepath.Join(dir, "missing"), "missing: no such file or directory"},
	}
	for _, tt := range tests {
		_, err := parseInputs(&cobra.Command{}, []string{tt.arg})
		if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("%s: got error %v, want %q", tt.name, err, tt.err)
		}
	}
}

func TestTeachCommand(t *testing.T) {
	for _, tt := range []struct {
		flags              routerflags.Config
		prompt, base, want string
	}{
		{prompt: " my account is locked\n", want: `caprouter teach "my account is locked"`},
		{prompt: `it's "locked"`, want: `caprouter teach 'it'\''s "locked"'`},
		{prompt: "costs $5", want: `caprouter teach 'costs $5'`},
		{prompt: "two\nlines", want: `caprouter teach "…"`},
		{prompt: "\x1b[1mbold", want: `caprouter teach "…"`},
		{prompt: strings.Repeat("long ", 20), want: `caprouter teach "…"`},
		{flags: routerflags.Config{ConfigFile: "c.yaml", RegistryFile: "my registry.yaml"}, prompt: "x", want: `caprouter teach "x" --config c.yaml --registry 'my registry.yaml'`},
		{prompt: "x", base: "http://127.0.0.1:8080", want: `caprouter teach "x" (where the registry file of the router is; if the agent registers itself, add the text to the examples of its registration)`},
	} {
		if got := (&routeFlags{Config: tt.flags}).teachCommand(tt.prompt, tt.base); got != tt.want {
			t.Errorf("%q: got %s, want %s", tt.prompt, got, tt.want)
		}
	}
}
