package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/golden"
	"github.com/caprouter/caprouter/internal/app"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/goldenreport"
	"github.com/caprouter/caprouter/internal/cli/localfile"
	"github.com/caprouter/caprouter/internal/cli/routerflags"
	"github.com/caprouter/caprouter/internal/cli/teach"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/plaintext"
)

// maxCandidateDecisions bounds the decisions in which candidates are searched.
const maxCandidateDecisions = 5000

type candidatesFlags struct {
	routerflags.Config
	routerflags.Log

	since string
	limit int
	write bool
}

func newGoldenCandidatesCommand() *cobra.Command {
	var flags candidatesFlags
	cmd := &cobra.Command{
		Use:   "candidates",
		Short: "Find requests that would be useful examples of the registry",
		Long: "Find requests in the decisions of a running router, or of a data directory, that would improve the\n" +
			"routing without a model as examples of the registry. The right agent of a request is known from feedback,\n" +
			"or from a model with a confidence of at least 0.8 if the agent succeeded. Such a request is a candidate if\n" +
			"it is not routed to this agent without a model, and if as an example it sends fewer others elsewhere.\n" +
			"Requests for several agents, and those with masked text, are left out: see `caprouter teach`.\n\n" +
			"Read the candidates before you write them: they are texts of callers, and a model can be wrong.",
		Example: `  caprouter golden candidates
  caprouter golden candidates --since 30d --limit 50
  caprouter golden candidates --write`,
		Args: cmdline.ArgsBetween("no arguments", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return goldenCandidates(cmd, &flags) },
	}
	routerflags.AddConfigFlag(cmd, &flags.ConfigFile)
	routerflags.AddRegistryFlag(cmd, &flags.RegistryFile)
	flags.Log.Register(cmd)
	cmd.Flags().StringVar(&flags.since, "since", "30d", "decisions from this `TIME` on: 12h or 7d ago, or 2026-01-02T15:04:05Z")
	flags.limit = 20
	cmdline.AddCountFlag(cmd, &flags.limit, "limit", 1, 0, "maximum number `N` of candidates")
	cmd.Flags().BoolVar(&flags.write, "write", false, "write the candidates as examples into the registry file")
	return cmd
}

func goldenCandidates(cmd *cobra.Command, flags *candidatesFlags) error {
	since, err := routerflags.ParseSince(flags.since, time.Now())
	if err != nil {
		return cmdline.UsageErrorf(cmd, "--since %w", err)
	}
	if err := flags.Check(cmd); err != nil {
		return err
	}
	cfg, err := flags.LoadConfig()
	if err != nil {
		return err
	}
	file := routerflags.RegistryFile(&cfg)
	data, err := localfile.ReadForEdit(file)
	if err != nil {
		return err
	}
	g, err := app.OpenGolden(cfg, app.Options{Version: buildVersion()}, app.GoldenLexical)
	if err != nil {
		return routerflags.ExplainMissingRegistry(err, &cfg)
	}
	defer g.Close()
	if flags.write {
		if err := localfile.CheckWritable(file); err != nil {
			return err
		}
	}
	decisions, err := flags.ReadDecisions(cmd, contract.DecisionQuery{Since: since, Limit: maxCandidateDecisions})
	if err != nil {
		return err
	}
	report, err := withProgress(cmd, "trying texts", &g.Config, func(ctx context.Context) (*golden.CandidateReport, error) {
		return golden.FindCandidates(ctx, g.Config, file, data, decisions, flags.limit)
	})
	if err != nil {
		return err
	}
	if err := cmdline.PrintOutput(cmd, flags.AsJSON, report, func(out io.Writer) error {
		_, err := io.WriteString(out, goldenreport.FormatCandidates(report, len(decisions), maxCandidateDecisions, terminal.DetectOptions(out)))
		return err
	}); err != nil || !flags.write || len(report.Candidates) == 0 {
		return err
	}
	return writeCandidates(cmd, localfile.Edit{Path: file, Before: data, After: report.File}, g.Config.Registry, len(report.Candidates))
}

// writeCandidates writes the registry file and prints the findings of lint that are new.
// With --json they go to standard error.
func writeCandidates(cmd *cobra.Command, edit localfile.Edit, before *capabilities.Snapshot, n int) error {
	if err := localfile.ApplyEdits(cmd.Context(), []localfile.Edit{edit}); err != nil {
		return err
	}
	out := cmd.ErrOrStderr()
	fmt.Fprintf(out, "wrote %s: %s\n", edit.Path, plaintext.CountNoun(n, "example"))
	return teach.PrintNewFindings(out, edit.Path, before, edit.After)
}
