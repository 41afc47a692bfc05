package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/internal/app"
)

func newLintCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "lint [FILE]",
		Short: "Find probable mistakes in a valid registry",
		Long: "Find probable mistakes in a valid registry, for example unreachable agents, pairs of agents that always\n" +
			"tie, and overlapping examples. FILE defaults to capabilities.yaml. Exit code 1 if there are warnings, 0\n" +
			"if there are only remarks.",
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
			findings := capabilities.Lint(s)
			if err := printOutput(cmd, asJSON, findings, func(out io.Writer) error { return printFindings(out, file, findings) }); err != nil {
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

func printFindings(out io.Writer, file string, findings []capabilities.Finding) error {
	if len(findings) == 0 {
		_, err := fmt.Fprintf(out, "%s: nothing found\n", file)
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, f := range findings {
		fmt.Fprintf(w, "%s\t%s\t%s\n", f.Severity, f.Rule, oneLine(f.Message))
	}
	return w.Flush()
}
