package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/golden"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/explain"
	"github.com/caprouter/caprouter/internal/cli/routerflags"
	"github.com/caprouter/caprouter/internal/cli/terminal"
)

func newDecisionsCommand() *cobra.Command {
	var flags routerflags.Log
	var filter routerflags.DecisionFilter
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
			query, err := filter.NewQuery(cmd)
			if err != nil {
				return err
			}
			if err := flags.Check(cmd); err != nil {
				return err
			}
			list, err := flags.ReadDecisions(cmd, query)
			if err != nil {
				return err
			}
			if err := cmdline.PrintList(cmd, flags.AsJSON, list, "decisions", formatDecisions); err != nil {
				return err
			}
			if len(list) == 0 && query.Agent != "" {
				flags.HintUnknownAgent(cmd, query.Agent)
			}
			return nil
		},
	}
	flags.Register(cmd)
	filter.Register(cmd)
	return cmd
}

// formatDecisions returns three lines per decision that fit 80 columns, and one for each
// feedback.
func formatDecisions(list []contract.DecisionEntry, opts terminal.Options) string {
	opts.Width = min(opts.Width, terminal.ListWidth)
	p := terminal.NewPrinter(opts)
	var rows []terminal.Row
	for i := range list {
		e := &list[i]
		row := terminal.Row{Cells: []terminal.Cell{
			{Text: terminal.FormatRowTime(e.At)}, {Text: e.RequestID}, {Text: "-"}, {Text: "-"}, {Text: outcomeName(e)},
		}}
		lines := []string{"(erased)"}
		if d := e.Decision; d != nil {
			row.Cells[2].Text = fmt.Sprintf("%.2f", d.Classification.Confidence)
			row.Cells[3].Text = string(d.Classification.Source)
			lines = []string{e.Prompt, formatReading(d)}
		}
		for i := range e.Feedback {
			lines = append(lines, "feedback: "+explain.FormatVerdict(&e.Feedback[i]))
		}
		for _, line := range lines {
			row.Below = append(row.Below, terminal.Cell{Text: terminal.Truncate(terminal.OneLine(line), opts.Width-terminal.TimeWidth-len(terminal.ColumnGap))})
		}
		rows = append(rows, row)
	}
	p.WriteRecords([]string{terminal.TimeHeader, "REQUEST", "CONF", "SOURCE", "OUTCOME"}, rows)
	return p.String()
}

// formatReading returns intent, domains and agents: "code_review · python → quality_agent". The
// intent is tied if the agent serves several that are about as likely, and the confidences in
// them were added up.
func formatReading(d *contract.Decision) string {
	text := explain.FormatIntent(d.Classification.Intent, d.Classification.Domains)
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
