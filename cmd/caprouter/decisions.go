package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/golden"
)

const decisionsPath = "/api/v1/decisions"

func newDecisionsCommand() *cobra.Command {
	var flags serverFlags
	var filter decisionFilter
	cmd := &cobra.Command{
		Use:   "decisions",
		Short: "List the decisions of a running router, for example uncertain ones",
		Long: "List the newest decisions of a running router: time (UTC), request, confidence, source of the\n" +
			"classification, outcome, masked prompt, and reading → agents. Continue with `caprouter golden add\n" +
			"REQUEST`, which turns a decision into a test, or `caprouter teach`.",
		Example: `  caprouter decisions --below 0.7
  caprouter decisions --fallback --since 24h
  caprouter decisions --agent quality_agent --source llm --json`,
		Args: argsBetween("no arguments", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			query, err := filter.newQuery(cmd)
			if err != nil {
				return err
			}
			c, err := flags.newClient(cmd)
			if err != nil {
				return err
			}
			list, err := c.listDecisions(cmd.Context(), query, filter.limit)
			if err != nil {
				return err
			}
			return printOutput(cmd, flags.asJSON, list, func(out io.Writer) error {
				text := "no decisions\n"
				if len(list) > 0 {
					text = formatDecisions(list, detectOutput(out))
				}
				_, err := io.WriteString(out, text)
				return err
			})
		},
	}
	flags.register(cmd)
	addJSONFlag(cmd, &flags.asJSON)
	filter.register(cmd)
	return cmd
}

// decisionFilter selects entries of the decision log.
type decisionFilter struct {
	below                                    float64
	agent, intent, source, fallback, outcome string
	since                                    string
	limit                                    int
}

func (f *decisionFilter) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Float64Var(&f.below, "below", 0, "only with a lower confidence than `NUMBER`, e.g. 0.7")
	flags.StringVar(&f.agent, "agent", "", "only those for which the agent with this `ID` was chosen or tried")
	flags.StringVar(&f.intent, "intent", "", "only those read as `INTENT`, or unknown")
	flags.StringVar(&f.source, "source", "", "only classifications of this `SOURCE`: "+strings.Join(sourceNames(), ", "))
	flags.StringVar(&f.fallback, "fallback", "", "only those that a fallback policy answered, or with =`POLICY` that one: A, B or C")
	flags.StringVar(&f.outcome, "outcome", "", "only those that ended in this `STATUS`, e.g. clarification_required")
	flags.StringVar(&f.since, "since", "7d", "only those from this `TIME` on: 12h or 7d ago, or 2026-01-02T15:04:05Z")
	flags.IntVar(&f.limit, "limit", 100, "maximum number of decisions")
	flags.Lookup("fallback").NoOptDefVal = contract.AnyFallback
	mustSucceed(cmd.RegisterFlagCompletionFunc("source", cobra.FixedCompletions(sourceNames(), cobra.ShellCompDirectiveNoFileComp)))
}

// selects reports whether the filter restricts the decisions, except by time and number.
func (f *decisionFilter) selects() bool {
	return f.below != 0 || f.agent != "" || f.intent != "" || f.source != "" || f.fallback != "" || f.outcome != ""
}

func sourceNames() []string {
	return []string{
		string(contract.SourceLLM), string(contract.SourceLexical), string(contract.SourceCache), string(contract.SourcePinned),
	}
}

// newQuery returns the parameters of the REST interface.
func (f *decisionFilter) newQuery(cmd *cobra.Command) (url.Values, error) {
	query := url.Values{}
	for name, value := range map[string]string{
		"agent": f.agent, "intent": f.intent, "source": f.source, "fallback": f.fallback, "outcome": f.outcome,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	since, err := parseSince(f.since, time.Now())
	switch {
	case err != nil:
		return nil, usageErrorf(cmd, "--since %w", err)
	case cmd.Flags().Changed("below") && !(f.below > 0 && f.below <= 1):
		return nil, usageErrorf(cmd, "--below is a confidence above 0 and up to 1, not %v", f.below)
	case f.agent != "" && !contract.ValidAgentID(f.agent):
		return nil, usageErrorf(cmd, "--agent %q is not the id of an agent", f.agent)
	case f.source != "" && !slices.Contains(sourceNames(), f.source):
		return nil, usageErrorf(cmd, "--source is %s, not %q", strings.Join(sourceNames(), ", "), f.source)
	case f.fallback != "" && !slices.Contains([]string{contract.AnyFallback, "A", "B", "C"}, f.fallback):
		return nil, usageErrorf(cmd, "--fallback takes no value, or =A, =B or =C, not %q", f.fallback)
	case f.limit < 1:
		return nil, usageErrorf(cmd, "--limit is 1 or more, not %d", f.limit)
	}
	if f.below > 0 {
		query.Set("below", strconv.FormatFloat(f.below, 'g', -1, 64))
	}
	query.Set("since", since.UTC().Format(time.RFC3339Nano))
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

// listDecisions returns the newest entries that the query selects, newest first. The
// REST interface returns the oldest first, so it reads all pages.
func (c *client) listDecisions(ctx context.Context, query url.Values, limit int) ([]contract.DecisionEntry, error) {
	const pageSize = "200" // prompts of 64 KiB fit the limit of an answer
	list := []contract.DecisionEntry{}
	query.Set("limit", pageSize)
	for {
		var page contract.DecisionPage
		if err := c.getResource(ctx, decisionsPath, query, &page); err != nil {
			return nil, err
		}
		list = append(list, page.Decisions...)
		list = slices.Delete(list, 0, max(len(list)-limit, 0))
		if page.NextCursor == query.Get("cursor") {
			slices.Reverse(list)
			return list, nil
		}
		query.Set("cursor", page.NextCursor)
	}
}

// formatDecisions returns three lines per decision that fit 80 columns.
func formatDecisions(list []contract.DecisionEntry, opts outputOptions) string {
	const timeLayout = "01-02 15:04"
	opts.width = min(opts.width, defaultTableWidth)
	p := newPrinter(opts)
	var rows []tableRow
	for i := range list {
		e := &list[i]
		row := tableRow{cells: []tableCell{
			{text: e.At.UTC().Format(timeLayout)}, {text: e.RequestID}, {text: "-"}, {text: "-"}, {text: outcomeName(e)},
		}}
		lines := []string{"(erased)"}
		if d := e.Decision; d != nil {
			row.cells[2].text = fmt.Sprintf("%.2f", d.Classification.Confidence)
			row.cells[3].text = string(d.Classification.Source)
			lines = []string{e.Prompt, formatReading(d)}
		}
		for _, line := range lines {
			row.below = append(row.below, tableCell{text: truncate(oneLine(line), opts.width-len(timeLayout)-len(columnGap))})
		}
		rows = append(rows, row)
	}
	p.writeRecords([]string{"TIME", "REQUEST", "CONF", "SOURCE", "OUTCOME"}, rows)
	return p.String()
}

// formatReading returns intent, domains and agents: "code_review · python → quality_agent".
func formatReading(d *contract.Decision) string {
	text := formatIntent(d.Classification.Intent, d.Classification.Domains)
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
