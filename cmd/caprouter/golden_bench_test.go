package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// benchRows writes a small labelled set and returns its path.
func benchRows(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const benchTrain = "turn on the lights\tlights_on\thome\nswitch the lamp on\tlights_on\thome\n" +
	"play some jazz\tplay_music\tmedia\nput on the new album\tplay_music\tmedia\n"

// goldenBench runs the command.
func goldenBench(t *testing.T, args ...string) (out, errOut string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := newGoldenBenchCommand()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	code = cmdline.ReportError(&stderr, cmd.ExecuteContext(t.Context()))
	return stdout.String(), stderr.String(), code
}

func TestGoldenBench(t *testing.T) {
	train := benchRows(t, "train.tsv", benchTrain)
	test := benchRows(t, "test.tsv", "switch on the lights\tlights_on\thome\nthe new jazz album\torder_food\tfood\n")
	out, errOut, code := goldenBench(t, "--train", train, "--test", test)
	if code != cmdline.ExitOK || errOut != "" {
		t.Fatalf("got exit code %d and %q, want 0 and no output on stderr, which is not a terminal", code, errOut)
	}
	for _, want := range []string{
		"2 intents", "4 examples", "2 in scope", "accuracy", "50.0 %", "unseen", "classify_us_p50", "order_food",
		"none", "too few examples to calibrate",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("got no %q in:\n%s", want, out)
		}
	}
	if strings.Contains(out, "oos_auroc") {
		t.Errorf("got a figure that does not apply:\n%s", out)
	}
}

func TestGoldenBench_JSON(t *testing.T) {
	train := benchRows(t, "train.tsv", benchTrain)
	out, errOut, code := goldenBench(t, "--train", train, "--test", train, "--json")
	if code != cmdline.ExitOK {
		t.Fatalf("got exit code %d: %s", code, errOut)
	}
	var got struct {
		N        int      `json:"n"`
		Accuracy float64  `json:"accuracy"`
		AUROC    *float64 `json:"oos_auroc"`
	}
	if err := strictjson.UnmarshalAllowUnknown([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if got.N != 4 || got.Accuracy != 1 || got.AUROC != nil || strings.Count(out, "\n") != 1 {
		t.Errorf("got %s", out)
	}
}

func TestGoldenBench_ReportsErrors(t *testing.T) {
	train := benchRows(t, "train.tsv", benchTrain)
	tests := []struct {
		name string
		args []string
		code int
		want string
	}{
		{"no files", nil, cmdline.ExitUsage, "--train T.tsv --test S.tsv"},
		{"argument", []string{"x"}, cmdline.ExitUsage, "takes no arguments"},
		{"tools and multi", []string{"--tools", "x", "--multi"}, cmdline.ExitUsage, "--tools ranks by description alone"},
		{"missing file", []string{"--train", train, "--test", "absent.tsv"}, cmdline.ExitError, "absent.tsv"},
		{"missing column", []string{"--train", train, "--test", benchRows(t, "test.tsv", "a\tb\tc\na\tb\n")}, cmdline.ExitError, "test.tsv:2: has no column domain"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, errOut, code := goldenBench(t, tt.args...)
			if code != tt.code || !strings.Contains(errOut, tt.want) || out != "" {
				t.Errorf("got exit code %d, %q, want %d, %q", code, errOut, tt.code, tt.want)
			}
		})
	}
}
