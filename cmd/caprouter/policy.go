package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/localfile"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/plaintext"
	"github.com/caprouter/caprouter/orchestrator/policy"
)

func newPolicyCommand() *cobra.Command {
	return cmdline.NewGroupCommand(&cobra.Command{
		Use:   "policy",
		Short: "Test the policy of orchestrations",
		Long: "Test the policy file of orchestrations, which decides about the calls of tools. docs/policy.md describes\n" +
			"the file.",
		Example: `  caprouter policy test policy.yaml`,
	}, newPolicyTestCommand())
}

func newPolicyTestCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "test FILE",
		Short: "Check a policy file and run its tests",
		Long: "Check a policy file, report every mistake with its position, and run the tests in it. No tool is called.\n" +
			"Exit code 1 if the file has a mistake or a test fails.",
		Example: `  caprouter policy test policy.yaml
  caprouter policy test policy.yaml --json`,
		Args:              cmdline.ArgsBetween("one FILE", 1, 1),
		ValidArgsFunction: cmdline.CompleteYAML,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := policy.Load(args[0])
			if err != nil {
				return localfile.ShortenError(err)
			}
			results := p.RunTests()
			if err := cmdline.PrintOutput(cmd, asJSON, results, func(out io.Writer) error { return printPolicyTests(out, args[0], results) }); err != nil {
				return err
			}
			if slices.ContainsFunc(results, func(r policy.TestResult) bool { return !r.Passed }) {
				return cmdline.SilentError{}
			}
			return nil
		},
	}
	cmdline.AddJSONFlag(cmd, &asJSON)
	return cmd
}

func printPolicyTests(out io.Writer, file string, results []policy.TestResult) error {
	rows := make([]terminal.Row, len(results))
	passed := 0
	for i, r := range results {
		word, style, decided := "FAIL", terminal.Red, describeVerdict(&r.Verdict)
		if r.Passed {
			passed++
			word, style = "ok", terminal.Green
		}
		rows[i].Cells = []terminal.Cell{{Text: word, Style: style}, {Text: terminal.OneLine(r.ID), Style: terminal.Bold}, {Text: decided}}
		if !r.Passed {
			rows[i].Below = []terminal.Cell{{Text: "want " + describeExpectation(&r.Want), Style: terminal.Dim}, {Text: terminal.OneLine(r.Verdict.Reason), Style: terminal.Dim}}
		}
	}
	p := terminal.NewPrinter(terminal.DetectLineOptions(out))
	p.Margin = 0
	if len(rows) > 0 {
		p.WriteTable("", rows)
	}
	summary := fmt.Sprintf("%s: %d of %s passed", file, passed, plaintext.CountNoun(len(results), "test"))
	if len(results) == 0 {
		summary = file + " is valid, and has no tests"
	}
	p.WriteParagraph(terminal.Plain, summary)
	_, err := io.WriteString(out, p.String())
	return err
}

// describeVerdict returns the effect with the rule and the category.
func describeVerdict(v *policy.Verdict) string {
	if v.Rule == "" {
		return string(v.Effect) + ", no rule matches"
	}
	return fmt.Sprintf("%s by %s (%s)", v.Effect, v.Rule, v.Category)
}

func describeExpectation(want *policy.TestExpect) string {
	var b strings.Builder
	b.WriteString(string(want.Effect))
	if want.Rule != "" {
		b.WriteString(" by " + want.Rule)
	}
	if want.Category != "" {
		fmt.Fprintf(&b, " (%s)", want.Category)
	}
	return b.String()
}
