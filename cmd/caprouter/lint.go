package main

import (
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/routerflags"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/lint"
)

func newLintCommand() *cobra.Command {
	var flags routerflags.Config
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "lint [FILE]",
		Short: "Find probable mistakes in a valid registry",
		Long: "Find probable mistakes in a valid registry, for example unreachable agents, pairs of agents that always\n" +
			"tie, and overlapping examples. Each example is routed as without a model, and those that do not reach their\n" +
			"agent are listed. The last line reports how many examples there are in which languages, and the accuracy\n" +
			"of the best intent. FILE defaults to the registry of the configuration, which also states whether there\n" +
			"is a model for fallback policy A. Exit code 1 if there are warnings, 0 if all findings have severity info.",
		Example: `  caprouter lint
  caprouter lint capabilities.yaml --json`,
		Args:              cmdline.ArgsBetween("one FILE", 0, 1),
		ValidArgsFunction: cmdline.CompleteYAML,
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, s, err := flags.LoadRegistry(args)
			if err != nil {
				return err
			}
			file := routerflags.RegistryFile(&cfg)
			report, err := checkRegistry(cmd, s, !cfg.LLM.IsConfigured(os.LookupEnv))
			if err != nil {
				return err
			}
			findings := report.Findings
			if err := cmdline.PrintOutput(cmd, asJSON, findings, func(out io.Writer) error { return printFindings(out, file, report) }); err != nil {
				return err
			}
			if slices.ContainsFunc(findings, func(f capabilities.Finding) bool { return f.Severity == capabilities.SeverityWarning }) {
				return cmdline.SilentError{}
			}
			return nil
		},
	}
	routerflags.AddConfigFlag(cmd, &flags.ConfigFile)
	cmdline.AddJSONFlag(cmd, &asJSON)
	return cmd
}

// checkRegistry shows progress on a terminal.
func checkRegistry(cmd *cobra.Command, s *capabilities.Snapshot, noModel bool) (*lint.Report, error) {
	progress := terminal.NewProgressLine(cmd.ErrOrStderr())
	defer progress.Clear()
	return lint.Check(showTraining(cmd), s, lint.Config{NoModel: noModel, Progress: func(done, total int) {
		if done%100 == 0 {
			progress.PrintProgress("routing examples", done, total)
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
	var rows []terminal.Row
	printed := map[string]int{}
	for _, f := range report.Findings {
		printed[f.Rule]++
		message := terminal.OneLine(f.Message)
		switch more := counts[f.Rule] - maxFindingsOfRule; {
		case printed[f.Rule] > maxFindingsOfRule+1:
			continue
		case printed[f.Rule] > maxFindingsOfRule:
			message = fmt.Sprintf("… and %d more: --json lists all", more)
		}
		rows = append(rows, terminal.Row{Cells: []terminal.Cell{
			{Text: f.Severity, Style: severityStyle(f.Severity)}, {Text: f.Rule, Style: terminal.Bold}, {Text: message},
		}})
	}
	p := terminal.NewPrinter(terminal.DetectLineOptions(out))
	p.Margin = 0
	p.WriteTable("", rows)
	p.WriteParagraph(terminal.Plain, fmt.Sprintf("%s: %s", file, report.Learning))
	for _, text := range []string{report.Learning.ExplainAccuracy(), report.Learning.Advice()} {
		if text != "" {
			p.WriteParagraph(terminal.Dim, text)
		}
	}
	_, err := io.WriteString(out, p.String())
	return err
}

func severityStyle(severity string) terminal.Style {
	if severity == capabilities.SeverityWarning {
		return terminal.Yellow
	}
	return terminal.Dim
}
