package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/explain"
	"github.com/caprouter/caprouter/internal/cli/localfile"
	"github.com/caprouter/caprouter/internal/cli/routerflags"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/internal/plaintext"
	"github.com/caprouter/caprouter/internal/replay"
)

// replayFlags are the flags of replay.
type replayFlags struct {
	routerflags.Log
	since        string
	limit        int
	failOnChange bool
}

func newReplayCommand() *cobra.Command {
	var flags replayFlags
	cmd := &cobra.Command{
		Use:   "replay FILE",
		Short: "Replay recorded decisions with a changed registry",
		Long: "Replay the decisions of a running router, or of a data directory, with the registry FILE, and list the\n" +
			"requests that would go elsewhere, and why. No agent and no model is called. A classification by a model is\n" +
			"replayed as recorded, a lexical one is made anew from the masked prompt. Decisions are replayed from --since\n" +
			"on, oldest first, until --limit.\n\n" +
			"Exit code 1 if --fail-on-change is set and there are changes.",
		Example: `  caprouter replay new.yaml --since 24h
  caprouter replay new.yaml --fail-on-change --json
  caprouter replay new.yaml --data-dir /var/lib/caprouter --limit 10000`,
		Args:              cmdline.ArgsBetween("one FILE", 1, 1),
		ValidArgsFunction: cmdline.CompleteYAML,
		RunE:              func(cmd *cobra.Command, args []string) error { return replayDecisions(cmd, args[0], &flags) },
	}
	flags.Register(cmd)
	cmd.Flags().StringVar(&flags.since, "since", "7d", "decisions from this `TIME` on: 12h or 7d ago, or 2026-01-02T15:04:05Z")
	flags.limit = replay.DefaultLimit
	cmdline.AddCountFlag(cmd, &flags.limit, "limit", 1, replay.MaxLimit, fmt.Sprintf("maximum number `N` of decisions, up to %d", replay.MaxLimit))
	cmd.Flags().BoolVar(&flags.failOnChange, "fail-on-change", false, "exit code 1 if a request would go elsewhere")
	return cmd
}

func replayDecisions(cmd *cobra.Command, file string, flags *replayFlags) error {
	since, err := routerflags.ParseSince(flags.since, time.Now())
	if err != nil {
		return cmdline.UsageErrorf(cmd, "--since %w", err)
	}
	if err := flags.Check(cmd); err != nil {
		return err
	}
	candidate, err := routerflags.ReadRegistry(file)
	if err != nil {
		return err
	}
	var report *replay.Report
	if flags.DataDir != "" {
		report, err = replayFiles(cmd, candidate, flags, since)
	} else {
		report, err = replayRemotely(cmd, file, flags, since)
	}
	if err != nil {
		return err
	}
	if err := cmdline.PrintOutput(cmd, flags.AsJSON, report, func(out io.Writer) error {
		_, err := io.WriteString(out, formatReplay(report, terminal.DetectOptions(out)))
		return err
	}); err != nil {
		return err
	}
	if flags.failOnChange && report.Changed > 0 {
		return cmdline.SilentError{}
	}
	return nil
}

// replayFiles replays the log of a data directory, and shows progress on a terminal.
func replayFiles(cmd *cobra.Command, candidate *capabilities.Snapshot, flags *replayFlags, since time.Time) (*replay.Report, error) {
	log, _, err := flags.OpenFiles(cmd.Context())
	if err != nil {
		return nil, err
	}
	defer log.Close()
	progress := terminal.NewProgressLine(cmd.ErrOrStderr())
	defer progress.Clear()
	return replay.Run(showTraining(cmd), replay.Config{
		Candidate: candidate, Reader: &contract.Caller{AllScopes: true, AllAgents: true}, Since: since, Limit: flags.limit,
		Progress: func(done, limit int) {
			if done%100 == 0 {
				progress.PrintProgress("replaying decisions", done, limit)
			}
		},
	}, func(ctx context.Context, q contract.DecisionQuery) (*contract.DecisionPage, error) {
		return history.ReadDecisions(ctx, log, nil, q)
	})
}

// replayRemotely sends the file to the router of the flags.
func replayRemotely(cmd *cobra.Command, file string, flags *replayFlags, since time.Time) (*replay.Report, error) {
	c, err := flags.NewClient(cmd)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, localfile.ShortenError(err)
	}
	at := c.ResourceURL("/api/v1/registry/diff")
	at.RawQuery = url.Values{
		"since": {since.UTC().Format(time.RFC3339Nano)}, "limit": {strconv.Itoa(flags.limit)},
	}.Encode()
	var report replay.Report
	if err := c.PostContent(cmd.Context(), at, "application/yaml", text, &report); err != nil {
		return nil, err
	}
	return &report, nil
}

// formatReplay returns the changes and the counts in 80 columns.
func formatReplay(r *replay.Report, opts terminal.Options) string {
	opts.Width = min(opts.Width, terminal.ListWidth)
	p := terminal.NewPrinter(opts)
	var rows []terminal.Row
	for i := range r.Changes {
		c := &r.Changes[i]
		row := terminal.Row{Cells: []terminal.Cell{
			{Text: terminal.FormatRowTime(c.At)}, {Text: c.RequestID}, {Text: strings.Join(c.What, ", ")},
		}}
		lines := append([]string{
			terminal.Truncate(terminal.OneLine(c.Prompt), opts.Width-terminal.TimeWidth-len(terminal.ColumnGap)),
			"before: " + formatReplayed(&c.Before), "after: " + formatReplayed(&c.After),
		}, c.Because...)
		for _, line := range lines {
			row.Below = append(row.Below, terminal.Cell{Text: line})
		}
		rows = append(rows, row)
	}
	if len(rows) > 0 {
		p.WriteRecords([]string{terminal.TimeHeader, "REQUEST", "CHANGED"}, rows)
		p.WriteByte('\n')
	}
	p.Margin = 0
	if more := r.Changed - len(r.Changes); more > 0 {
		p.WriteParagraph(terminal.Plain, fmt.Sprintf("… and %d more changes", more))
	}
	p.WriteParagraph(terminal.Plain, fmt.Sprintf("%s replayed: %d would go elsewhere (registry %s)",
		plaintext.CountNoun(r.Replayed, "decision"), r.Changed, explain.ShortenVersion(r.Registry)))
	for _, n := range r.NotReplayable {
		p.WriteParagraph(terminal.Plain, fmt.Sprintf("%s not replayed: %s", plaintext.CountNoun(n.Count, "decision"), n.Reason.Describe()))
	}
	if r.NextCursor != "" {
		p.WriteParagraph(terminal.Yellow, "there are later decisions: choose a later --since, or a higher --limit")
	}
	return p.String()
}

// formatReplayed returns the classification and where the request goes.
func formatReplayed(o *replay.Outcome) string {
	to := strings.Join(o.Agents, ", ")
	switch {
	case o.Fallback != nil:
		to = "fallback " + *o.Fallback
	case o.Outcome == replay.OutcomeClarify:
		to = "a question to the caller"
	case to == "":
		to = o.Outcome
	}
	return explain.FormatIntent(o.Intent, o.Domains) + " → " + to
}
