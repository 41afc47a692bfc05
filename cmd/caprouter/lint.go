package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/internal/app"
	"github.com/caprouter/caprouter/internal/lint"
)

func newLintCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "lint [FILE]",
		Short: "Find probable mistakes in a valid registry",
		Long: "Find probable mistakes in a valid registry, for example unreachable agents, pairs of agents that always\n" +
			"tie, and overlapping examples. Each example is routed as without a model, and those that do not reach their\n" +
			"agent are listed. The last line reports how many examples there are in which languages, and the accuracy\n" +
			"to expect from them. FILE defaults to capabilities.yaml. Exit code 1 if there are warnings, 0 if there are\n" +
			"only remarks.",
		Example: `  caprouter lint
  caprouter lint capabilities.yaml --json`,
		Args:              argsBetween("one FILE", 0, 1),
		ValidArgsFunction: completeYAML,
		RunE: func(cmd *cobra.Command, args []string) error {
			file := app.DefaultRegistryFile
			if len(args) == 1 {
				file = args[0]
			}
			s, err := readRegistry(file)
			if err != nil {
				return err
			}
			report, err := checkRegistry(cmd, s)
			if err != nil {
				return err
			}
			findings := report.Findings
			if err := printOutput(cmd, asJSON, findings, func(out io.Writer) error { return printFindings(out, file, report) }); err != nil {
				return err
			}
			if slices.ContainsFunc(findings, func(f capabilities.Finding) bool { return f.Severity == capabilities.SeverityWarning }) {
				return silentError{}
			}
			return nil
		},
	}
	addJSONFlag(cmd, &asJSON)
	return cmd
}

// checkRegistry shows progress on a terminal.
func checkRegistry(cmd *cobra.Command, s *capabilities.Snapshot) (*lint.Report, error) {
	progress := newProgressLine(cmd.ErrOrStderr())
	defer progress.clear()
	return lint.Check(cmd.Context(), s, lint.Config{Progress: func(done, total int) {
		if done%100 == 0 {
			progress.print("routing examples", done, total)
		}
	}})
}

// maxFindingsOfRule bounds the lines of one rule; --json has all findings.
const maxFindingsOfRule = 10

func printFindings(out io.Writer, file string, report *lint.Report) error {
	if len(report.Findings) == 0 {
		fmt.Fprintf(out, "%s: nothing found\n", file)
	}
	counts := map[string]int{}
	for _, f := range report.Findings {
		counts[f.Rule]++
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	printed := map[string]int{}
	for _, f := range report.Findings {
		printed[f.Rule]++
		switch more := counts[f.Rule] - maxFindingsOfRule; {
		case printed[f.Rule] <= maxFindingsOfRule:
			fmt.Fprintf(w, "%s\t%s\t%s\n", f.Severity, f.Rule, oneLine(f.Message))
		case printed[f.Rule] == maxFindingsOfRule+1:
			fmt.Fprintf(w, "%s\t%s\t… and %d more: --json lists all\n", f.Severity, f.Rule, more)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "%s: %s\n", file, oneLine(report.Learning.String()))
	return err
}
