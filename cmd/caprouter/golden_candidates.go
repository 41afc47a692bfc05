package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/golden"
	"github.com/caprouter/caprouter/internal/app"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
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
		_, err := io.WriteString(out, formatCandidates(report, len(decisions), terminal.DetectOptions(out)))
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

// formatCandidates returns the candidates, the counts, and what was left out.
func formatCandidates(r *golden.CandidateReport, decisions int, opts terminal.Options) string {
	opts.Width = min(opts.Width, terminal.ListWidth)
	p := terminal.NewPrinter(opts)
	var rows []terminal.Row
	for i := range r.Candidates {
		c := &r.Candidates[i]
		rows = append(rows, terminal.Row{
			Cells: []terminal.Cell{{Text: strconv.Itoa(i + 1), Right: true}, {Text: c.Agent}, {Text: c.Intent}, {Text: string(c.Origin)}},
			Below: []terminal.Cell{
				{Text: terminal.OneLine(c.Text)},
				{Text: "without a model: " + formatActual(&c.Without), Style: terminal.Dim},
			},
		})
	}
	if len(rows) > 0 {
		p.WriteRecords([]string{"", "AGENT", "INTENT", "KNOWN BY"}, rows)
		p.WriteByte('\n')
	}
	p.Margin = 0
	n := len(r.Candidates)
	p.WriteParagraph(terminal.Plain, fmt.Sprintf("the right agent is known of %s in %s", plaintext.CountNoun(r.All.Texts, "text"), plaintext.CountNoun(decisions, "decision")))
	switch {
	case n > 0:
		p.WriteParagraph(terminal.Plain, fmt.Sprintf("routed to it without a model: %d now, %d with %s", r.All.Before, r.All.After, plaintext.CountNoun(n, "new example")))
		if r.Others.Texts > 0 {
			p.WriteParagraph(terminal.Plain, fmt.Sprintf("of the other %s: %d now, %d then", plaintext.CountNoun(r.Others.Texts, "text"), r.Others.Before, r.Others.After))
		}
	case r.All.Texts > 0:
		p.WriteParagraph(terminal.Plain, fmt.Sprintf("routed to it without a model: %d", r.All.Before))
	}
	if r.NoGain > 0 {
		p.WriteParagraph(terminal.Plain, plaintext.CountNoun(r.NoGain, "text")+" would send as many others elsewhere as an example: check the agents of both")
	}
	for _, reason := range slices.Sorted(maps.Keys(r.LeftOut)) {
		p.WriteParagraph(terminal.Plain, fmt.Sprintf("left out %s: %s", plaintext.CountNoun(r.LeftOut[reason], "request"), describeLeftOut(reason)))
	}
	if r.More {
		p.WriteParagraph(terminal.Yellow, "there may be more: write these, or choose a higher --limit")
	}
	if decisions == maxCandidateDecisions {
		p.WriteParagraph(terminal.Yellow, fmt.Sprintf("only the newest %d decisions were read", decisions))
	}
	return p.String()
}

// formatActual returns how a request was routed: "code_review 0.83 → a question to the caller".
func formatActual(a *golden.Actual) string {
	to := cmp.Or(strings.Join(a.Agents, ", "), string(a.Outcome))
	if a.Outcome == golden.Clarify {
		to = "a question to the caller"
	}
	return fmt.Sprintf("%s %.2f → %s", a.Intent, a.Confidence, to)
}

// describeLeftOut returns why requests are no candidates.
func describeLeftOut(reason string) string {
	switch reason {
	case golden.LeftMasked:
		return "the text is masked (teach asks for invented values)"
	case golden.LeftNone:
		return "the feedback expects no agent (no example may send it to one)"
	case golden.LeftSeveral:
		return "the feedback expects several agents"
	case golden.LeftUndeclared:
		return "the registry file does not declare the agent, or not with this intent"
	case golden.LeftIntent:
		return "none of the intents of the agent was near (teach asks for one)"
	case golden.LeftInvalid:
		return "the registry does not accept the text as an example, for example because it is too long"
	}
	return reason
}
