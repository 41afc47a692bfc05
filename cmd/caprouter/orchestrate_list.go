package main

import (
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/restclient"
	"github.com/caprouter/caprouter/internal/cli/routerflags"
	"github.com/caprouter/caprouter/internal/cli/runreport"
)

// runStatuses are the values of --status.
func runStatuses() []string {
	return []string{
		restclient.AllStatuses, string(contract.OrchestrationRunning), string(contract.OrchestrationWaiting), string(contract.OrchestrationDone),
		string(contract.OrchestrationFailed), string(contract.OrchestrationBlocked), string(contract.OrchestrationDegraded),
	}
}

func newListRunsCommand() *cobra.Command {
	var flags routerflags.Server
	var status string
	limit := 100
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the orchestrations, newest first",
		Long: "List the orchestrations of the caller, or those of its tenant if it may approve: time (UTC), id, status, goal,\n" +
			"and the steps that wait for an approval.",
		Example: `  caprouter orchestrate list --status waiting_approval
  caprouter orchestrate list --limit 500 --json`,
		Args: cmdline.ArgsBetween("no arguments", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			known := runStatuses()
			i := slices.IndexFunc(known, func(s string) bool { return strings.EqualFold(s, status) })
			if i < 0 {
				return cmdline.UsageErrorf(cmd, "--status is one of %s, not %q", strings.Join(known, ", "), status)
			}
			c, err := flags.NewClient(cmd)
			if err != nil {
				return err
			}
			list, err := c.ListRuns(cmd.Context(), known[i], limit)
			if err != nil {
				return err
			}
			return cmdline.PrintList(cmd, flags.AsJSON, list, "orchestrations", runreport.FormatRuns)
		},
	}
	flags.Register(cmd)
	cmdline.AddJSONFlag(cmd, &flags.AsJSON)
	cmd.Flags().StringVar(&status, "status", restclient.AllStatuses, "only those in this `STATUS`: "+strings.Join(runStatuses()[1:], ", "))
	cmdline.AddCountFlag(cmd, &limit, "limit", 1, 0, "maximum number `N` of orchestrations")
	cmdline.MustSucceed(cmd.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(runStatuses(), cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

func newShowRunCommand() *cobra.Command {
	var flags routerflags.Server
	cmd := &cobra.Command{
		Use:     "show ID",
		Short:   "Show an orchestration: its events, outputs and open approvals",
		Example: `  caprouter orchestrate show 01980c1a-7c00-7a3e-9d41-5f2b6c7d8e90`,
		Args:    cmdline.ArgsBetween("the id of an orchestration", 1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := flags.NewClient(cmd)
			if err != nil {
				return err
			}
			var run contract.Orchestration
			if err := c.GetResource(cmd.Context(), restclient.RunsPath+"/"+url.PathEscape(args[0]), nil, &run); err != nil {
				return err
			}
			return cmdline.PrintOutput(cmd, flags.AsJSON, &run, func(out io.Writer) error { return runreport.PrintRun(out, &run) })
		},
	}
	flags.Register(cmd)
	cmdline.AddJSONFlag(cmd, &flags.AsJSON)
	return cmd
}
