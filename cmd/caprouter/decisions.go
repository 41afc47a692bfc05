package main

import (
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/golden"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/restclient"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/feedback"
	"github.com/caprouter/caprouter/internal/history"
)

func newDecisionsCommand() *cobra.Command {
	var flags logFlags
	var filter decisionFilter
	cmd := &cobra.Command{
		Use:   "decisions",
		Short: "List decisions, for example uncertain ones",
		Long: "List the newest decisions of a running router, or of a data directory: time (UTC), request, confidence,\n" +
			"source of the classification, outcome, masked prompt, reading → agents, and feedback. A router may use the\n" +
			"data directory meanwhile. Continue with `caprouter golden add REQUEST`, which turns a decision into a test,\n" +
			"or `caprouter teach`.",
		Example: `  caprouter decisions --below 0.7
  caprouter decisions --fallback --since 24h
  caprouter decisions --agent quality_agent --source llm --json
  caprouter decisions --feedback misroute
  caprouter decisions --feedback misroute --data-dir /var/lib/caprouter`,
		Args: cmdline.ArgsBetween("no arguments", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			query, err := filter.newQuery(cmd)
			if err != nil {
				return err
			}
			if err := flags.check(cmd); err != nil {
				return err
			}
			list, err := readDecisionLog(cmd, &flags, query)
			if err != nil {
				return err
			}
			if err := cmdline.PrintList(cmd, flags.asJSON, list, "decisions", formatDecisions); err != nil {
				return err
			}
			if len(list) == 0 && query.Agent != "" {
				flags.hintUnknownAgent(cmd, query.Agent)
			}
			return nil
		},
	}
	flags.register(cmd)
	filter.register(cmd)
	return cmd
}

// readDecisionLog reads the log that the flags select.
func readDecisionLog(cmd *cobra.Command, flags *logFlags, query contract.DecisionQuery) ([]contract.DecisionEntry, error) {
	if flags.dataDir == "" {
		c, err := flags.newClient(cmd)
		if err != nil {
			return nil, err
		}
		return c.ListDecisions(cmd.Context(), query)
	}
	log, keys, err := flags.openFiles(cmd.Context())
	if err != nil {
		return nil, err
	}
	defer log.Close()
	verdicts, err := feedback.ReadFiles(cmd.Context(), flags.dataDir, keys, slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)))
	if err != nil {
		return nil, err
	}
	return restclient.CollectDecisions(query, func(q contract.DecisionQuery) (*contract.DecisionPage, error) {
		return history.ReadDecisions(cmd.Context(), log, verdicts, q)
	})
}

// decisionFilter selects entries of the decision log.
type decisionFilter struct {
	below                                    float64
	agent, intent, source, fallback, outcome string
	feedback                                 string
	since                                    string
	limit                                    int
}

func (f *decisionFilter) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	cmdline.AddShareFlag(cmd, &f.below, "below", "only with a lower confidence than `NUMBER`, e.g. 0.7")
	flags.StringVar(&f.agent, "agent", "", "only those for which the agent with this `ID` was chosen or tried")
	flags.StringVar(&f.intent, "intent", "", "only those read as `INTENT`, or unknown")
	flags.StringVar(&f.source, "source", "", "only classifications of this `SOURCE`: "+strings.Join(sourceNames(), ", "))
	flags.StringVar(&f.fallback, "fallback", "", "only those that a fallback policy answered, or the `POLICY` A, B or C")
	flags.StringVar(&f.outcome, "outcome", "", "only those that ended in this `STATUS`, e.g. clarification_required")
	flags.StringVar(&f.feedback, "feedback", "", "only those with feedback of this `VERDICT`: correct or misroute")
	flags.StringVar(&f.since, "since", "7d", "only those from this `TIME` on: 12h or 7d ago, or 2026-01-02T15:04:05Z")
	f.limit = 100
	cmdline.AddCountFlag(cmd, &f.limit, "limit", 1, 0, "maximum number `N` of decisions")
	flags.Lookup("fallback").NoOptDefVal = contract.AnyFallback
	cmdline.MustSucceed(cmd.RegisterFlagCompletionFunc("source", cobra.FixedCompletions(sourceNames(), cobra.ShellCompDirectiveNoFileComp)))
}

// selects reports whether the filter restricts the decisions, except by time and number.
func (f *decisionFilter) selects() bool {
	return f.below != 0 || f.agent != "" || f.intent != "" || f.source != "" || f.fallback != "" || f.outcome != "" || f.feedback != ""
}

func sourceNames() []string {
	return []string{
		string(contract.SourceLLM), string(contract.SourceLexical), string(contract.SourceCache), string(contract.SourcePinned),
	}
}

// newQuery checks the flags. The limit is that of the list, not of a page.
func (f *decisionFilter) newQuery(cmd *cobra.Command) (contract.DecisionQuery, error) {
	query := contract.DecisionQuery{
		Below: f.below, Agent: f.agent, Intent: f.intent, Source: contract.Source(f.source),
		Fallback: f.fallback, Outcome: contract.Status(f.outcome), Feedback: contract.Verdict(f.feedback), Limit: f.limit,
	}
	var err error
	query.Since, err = parseSince(f.since, time.Now())
	switch {
	case err != nil:
		return query, cmdline.UsageErrorf(cmd, "--since %w", err)
	case f.agent != "" && !contract.ValidAgentID(f.agent):
		return query, cmdline.UsageErrorf(cmd, "--agent %q is not the id of an agent", f.agent)
	case f.source != "" && !slices.Contains(sourceNames(), f.source):
		return query, cmdline.UsageErrorf(cmd, "--source is %s, not %q", strings.Join(sourceNames(), ", "), f.source)
	case f.fallback != "" && !slices.Contains([]string{contract.AnyFallback, "A", "B", "C"}, f.fallback):
		return query, cmdline.UsageErrorf(cmd, "--fallback takes no value, or =A, =B or =C, not %q", f.fallback)
	case f.feedback != "" && !contract.ValidVerdict(query.Feedback):
		return query, cmdline.UsageErrorf(cmd, "--feedback is correct or misroute, not %q", f.feedback)
	case f.outcome != "" && !query.Outcome.Terminal():
		return query, cmdline.UsageErrorf(cmd, "--outcome is the status of a request that has ended, e.g. completed, not %q", f.outcome)
	}
	return query, nil
}

// parseSince returns the time that the text specifies: how long ago, or when.
func parseSince(text string, now time.Time) (time.Time, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return now.AddDate(0, 0, -int(n)), nil
		}
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("is 12h, 7d, 2026-01-02 or 2026-01-02T15:04:05Z, not %q", text)
}

// formatDecisions returns three lines per decision that fit 80 columns, and one for each
// feedback.
func formatDecisions(list []contract.DecisionEntry, opts terminal.Options) string {
	const timeLayout = "01-02 15:04"
	opts.Width = min(opts.Width, terminal.ListWidth)
	p := terminal.NewPrinter(opts)
	var rows []terminal.Row
	for i := range list {
		e := &list[i]
		row := terminal.Row{Cells: []terminal.Cell{
			{Text: e.At.UTC().Format(timeLayout)}, {Text: e.RequestID}, {Text: "-"}, {Text: "-"}, {Text: outcomeName(e)},
		}}
		lines := []string{"(erased)"}
		if d := e.Decision; d != nil {
			row.Cells[2].Text = fmt.Sprintf("%.2f", d.Classification.Confidence)
			row.Cells[3].Text = string(d.Classification.Source)
			lines = []string{e.Prompt, formatReading(d)}
		}
		for i := range e.Feedback {
			lines = append(lines, "feedback: "+formatVerdict(&e.Feedback[i]))
		}
		for _, line := range lines {
			row.Below = append(row.Below, terminal.Cell{Text: terminal.Truncate(terminal.OneLine(line), opts.Width-len(timeLayout)-len(terminal.ColumnGap))})
		}
		rows = append(rows, row)
	}
	p.WriteRecords([]string{"TIME", "REQUEST", "CONF", "SOURCE", "OUTCOME"}, rows)
	return p.String()
}

// formatReading returns intent, domains and agents: "code_review · python → quality_agent". The
// intent is tied if the agent serves several that are about as likely, and the confidences in
// them were added up.
func formatReading(d *contract.Decision) string {
	text := formatIntent(d.Classification.Intent, d.Classification.Domains)
	if d.Classification.Tied {
		text += " (tied)"
	}
	if len(d.Chosen) > 0 {
		text += " → " + strings.Join(d.Chosen, ", ")
	}
	return text
}

// outcomeName returns the outcome in the words of golden cases if no agent got the
// request, else its status.
func outcomeName(e *contract.DecisionEntry) string {
	switch {
	case e.Status == contract.StatusClarify:
		return string(golden.Clarify)
	case e.Decision != nil && e.Decision.FallbackUsed != nil:
		return "fallback_" + strings.ToLower(*e.Decision.FallbackUsed)
	}
	return string(e.Status)
}
