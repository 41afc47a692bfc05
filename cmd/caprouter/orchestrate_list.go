package main

import (
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/restclient"
	"github.com/caprouter/caprouter/internal/cli/routerflags"
	"github.com/caprouter/caprouter/internal/cli/terminal"
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
			return cmdline.PrintList(cmd, flags.AsJSON, list, "orchestrations", formatRuns)
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
			return cmdline.PrintOutput(cmd, flags.AsJSON, &run, func(out io.Writer) error { return printStoredRun(out, &run) })
		},
	}
	flags.Register(cmd)
	cmdline.AddJSONFlag(cmd, &flags.AsJSON)
	return cmd
}

// formatRuns returns two lines or more per orchestration that fit 80 columns.
func formatRuns(list []contract.RunSummary, opts terminal.Options) string {
	const timeLayout = "01-02 15:04"
	opts.Width = min(opts.Width, terminal.ListWidth)
	p := terminal.NewPrinter(opts)
	var rows []terminal.Row
	for i := range list {
		r := &list[i]
		row := terminal.Row{Cells: []terminal.Cell{
			{Text: r.CreatedAt.UTC().Format(timeLayout)}, {Text: r.OrchestrationID}, {Text: string(r.Status)},
		}}
		lines := []string{r.Goal}
		if r.Reason != "" {
			lines = append(lines, "reason: "+string(r.Reason))
		}
		for k := range r.Gates {
			lines = append(lines, "waits: "+formatGate(&r.Gates[k]))
		}
		for _, line := range lines {
			row.Below = append(row.Below, terminal.Cell{Text: terminal.Truncate(terminal.OneLine(line), opts.Width-len(timeLayout)-len(terminal.ColumnGap))})
		}
		rows = append(rows, row)
	}
	p.WriteRecords([]string{"CREATED", "ORCHESTRATION", "STATUS"}, rows)
	return p.String()
}

// formatGate returns the step and the call that wait, and until when.
func formatGate(g *contract.ApprovalGate) string {
	return fmt.Sprintf("step %s, %s, until %s (%s)", g.StepID, g.Action, formatMinute(g.ExpiresAt), g.Rule)
}

// printStoredRun prints an orchestration: its goal, its events as they are printed while it
// runs, its result, and the approvals that it waits for.
func printStoredRun(out io.Writer, run *contract.Orchestration) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	field := func(name, text string) { fmt.Fprintf(w, "%s\t%s\n", name, terminal.OneLine(text)) }
	field("orchestration", run.OrchestrationID)
	field("goal", run.Goal)
	field("created", formatMinute(run.CreatedAt))
	if !run.EndedAt.IsZero() {
		field("ended", formatMinute(run.EndedAt))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for i := range run.AuditTrail {
		fmt.Fprintln(out, formatRunEvent(&run.AuditTrail[i]))
	}
	if err := printRun(out, run); err != nil {
		return err
	}
	for i := range run.Gates {
		if g := &run.Gates[i]; g.Decision == "" && !run.Status.Terminal() {
			_, err := fmt.Fprintf(out, "  waits: %s\n    %s\n    caprouter orchestrate approve %s %s\n",
				terminal.Printable(formatGate(g)), terminal.Printable(g.Reason), terminal.Printable(run.OrchestrationID), terminal.Printable(g.StepID))
			if err != nil {
				return err
			}
		}
	}
	return nil
}
