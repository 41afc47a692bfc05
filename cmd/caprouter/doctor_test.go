package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/internal/cli/routerflags"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/doctor"
)

func TestFormatFinding(t *testing.T) {
	tests := []struct {
		name    string
		finding doctor.Finding
		opts    terminal.Options
		want    string
	}{
		{
			"well",
			doctor.Finding{Check: "listen", Level: doctor.LevelOK, Detail: "127.0.0.1:8080 is free"},
			terminal.Options{Width: terminal.DefaultWidth},
			"  ✓ listen          127.0.0.1:8080 is free\n",
		},
		{
			"warning with its fix",
			doctor.Finding{Check: "classifier", Level: doctor.LevelWarn, Detail: "lexical", Fix: "export GEMINI_API_KEY=…"},
			terminal.Options{Width: terminal.DefaultWidth},
			"  ! classifier      lexical\n                    → export GEMINI_API_KEY=…\n",
		},
		{
			"skipped",
			doctor.Finding{Check: "model", Level: doctor.LevelSkip, Detail: "none is configured"},
			terminal.Options{Width: terminal.DefaultWidth},
			"  - model           none is configured\n",
		},
		{
			"failure, wrapped",
			doctor.Finding{Check: "model", Level: doctor.LevelFail, Detail: "llm_unauthorized: the server does not take the key", Fix: "make a new key"},
			terminal.Options{Width: terminal.MinWidth},
			"  ✗ model           llm_unauthorized: the server\n                    does not take the key\n                    → make a new key\n",
		},
		{
			"colour",
			doctor.Finding{Check: "model", Level: doctor.LevelFail, Detail: "no", Fix: "yes"},
			terminal.Options{Width: terminal.DefaultWidth, Color: true},
			"  \x1b[31m✗\x1b[0m model           no\n                    \x1b[31m→ yes\x1b[0m\n",
		},
		{
			"escape sequences, unknown level",
			doctor.Finding{Check: "a check with a long name\x1b", Level: "odd", Detail: "\x1b[2J\nthere"},
			terminal.Options{Width: terminal.DefaultWidth},
			"  ✗ a check with …  \ufffd[2J; there\n",
		},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, formatFinding(&tt.finding, tt.opts)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestSummarizeFindings(t *testing.T) {
	of := func(levels ...string) (list []doctor.Finding) {
		for _, l := range levels {
			list = append(list, doctor.Finding{Level: l})
		}
		return list
	}
	tests := []struct {
		findings []doctor.Finding
		want     string
	}{
		{of(doctor.LevelOK, doctor.LevelSkip), "ready to serve"},
		{of(doctor.LevelOK, doctor.LevelWarn), "ready to serve, with 1 warning"},
		{of(doctor.LevelFail, doctor.LevelFail), "2 checks failed"},
		{of(doctor.LevelFail, doctor.LevelWarn, doctor.LevelWarn), "1 check failed, 2 warnings"},
	}
	for _, tt := range tests {
		if got := summarizeFindings(tt.findings); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

// TestFindingPrinter_ShowsProgressOnTerminals checks that a terminal shows a line while checks are
// running, which is erased before other output.
func TestFindingPrinter_ShowsProgressOnTerminals(t *testing.T) {
	const eraseLine = "\r\x1b[K"
	const line, waiting = "  ✓ a               b\n", eraseLine + terminal.Indent + "… checking"
	for want, onTerminal := range map[string]bool{
		line + "\nready to serve\n": false,
		waiting + eraseLine + line + waiting + eraseLine + "\nready to serve\n": true,
	} {
		var out bytes.Buffer
		p := findingPrinter{&terminal.ProgressLine{Out: &out, Terminal: onTerminal}, terminal.Options{Width: terminal.DefaultWidth}}
		p.printWaiting()
		findings := []doctor.Finding{{Check: "a", Level: doctor.LevelOK, Detail: "b"}}
		p.printFinding(&findings[0])
		if err := p.printSummary(findings); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); got != want {
			t.Errorf("terminal %v: got %q, want %q", onTerminal, got, want)
		}
	}
}

func TestConfigSource(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("CAPROUTER_CONFIG", "")
	flags := &routerflags.Config{}
	if got := configSource(flags); !strings.HasPrefix(got, "the defaults") {
		t.Errorf("no file: got %q, want the defaults", got)
	}
	if err := os.WriteFile(config.DefaultFile, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := configSource(flags); got != config.DefaultFile {
		t.Errorf("default file: got %q", got)
	}
	t.Setenv("CAPROUTER_CONFIG", "env.yaml")
	if got := configSource(flags); got != "env.yaml" {
		t.Errorf("environment: got %q", got)
	}
	flags.ConfigFile = "flag.yaml"
	if got := configSource(flags); got != "flag.yaml" {
		t.Errorf("flag: got %q", got)
	}
}
