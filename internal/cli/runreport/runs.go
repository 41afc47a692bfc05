// Package runreport prints orchestrations for people: their events as they happen, their
// results, and the approvals that they wait for.
package runreport

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// EventPrinter prints the events of an orchestration. One goroutine owns it.
type EventPrinter struct {
	Out     io.Writer
	Quiet   bool // print nothing
	started bool
}

// Print prints an event of the orchestration with the id.
func (p *EventPrinter) Print(id string, ev *contract.RunEvent) {
	if p.Quiet {
		return
	}
	if !p.started {
		fmt.Fprintf(p.Out, "orchestration %s\n", id)
		p.started = true
	}
	fmt.Fprintln(p.Out, formatRunEvent(ev))
	if ev.Event == "gate_opened" {
		fmt.Fprintf(p.Out, "          waiting: caprouter orchestrate approve %s %s\n", id, terminal.Printable(ev.StepID))
	}
}

// formatRunEvent returns the line of an event.
func formatRunEvent(ev *contract.RunEvent) string {
	text := strings.TrimSpace(ev.StepID + " " + ev.Action)
	if ev.Rule != "" {
		text += " (" + ev.Rule + ")"
	}
	if ev.Detail != "" {
		text += ": " + ev.Detail
	}
	line := fmt.Sprintf("%-9s %-19s %s", ev.State, ev.Event, terminal.Printable(strings.TrimPrefix(text, ": ")))
	return strings.TrimRight(line, " ")
}

// PrintResult prints the result of an orchestration.
func PrintResult(out io.Writer, run *contract.Orchestration) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s", run.Status)
	if run.Reason != "" {
		fmt.Fprintf(&b, " (%s)", run.Reason)
	}
	b.WriteByte('\n')
	for _, e := range run.Errors {
		fmt.Fprintf(&b, "  %s\n", terminal.Printable(strings.TrimSpace(e.StepID+" "+e.Message)))
		for _, d := range e.Details {
			fmt.Fprintf(&b, "    %s %s\n", terminal.Printable(d.Pointer), terminal.Printable(d.Detail))
		}
		if e.Suggestion != "" {
			fmt.Fprintf(&b, "    %s\n", terminal.Printable(e.Suggestion))
		}
	}
	if len(run.ToolOutputs) == 0 && run.Plan != nil {
		for _, s := range run.Plan.Steps {
			fmt.Fprintf(&b, "  %s  %s %s\n", terminal.Printable(s.ID), terminal.Printable(s.Action), terminal.Printable(string(s.Arguments)))
		}
	}
	if _, err := io.WriteString(out, b.String()); err != nil {
		return err
	}
	for i := range run.ToolOutputs {
		if o := &run.ToolOutputs[i]; o.Result != nil {
			if _, err := fmt.Fprintf(out, "  %s  %s\n", terminal.Printable(o.StepID), terminal.Printable(o.Action)); err != nil {
				return err
			}
			if err := PrintActionResult(out, o.Result); err != nil {
				return err
			}
		}
	}
	return nil
}

// FormatRuns returns two lines or more per orchestration that fit 80 columns.
func FormatRuns(list []contract.RunSummary, opts terminal.Options) string {
	opts.Width = min(opts.Width, terminal.ListWidth)
	p := terminal.NewPrinter(opts)
	var rows []terminal.Row
	for i := range list {
		r := &list[i]
		row := terminal.Row{Cells: []terminal.Cell{
			{Text: terminal.FormatRowTime(r.CreatedAt)}, {Text: r.OrchestrationID}, {Text: string(r.Status)},
		}}
		row.Below = append(row.Below, terminal.Cell{Text: terminal.Truncate(terminal.OneLine(r.Goal), opts.Width-terminal.TimeWidth-len(terminal.ColumnGap))})
		if r.Reason != "" {
			row.Below = append(row.Below, terminal.Cell{Text: "reason: " + string(r.Reason)})
		}
		for k := range r.Gates {
			row.Below = append(row.Below, terminal.Cell{Text: "waits: " + formatGate(&r.Gates[k])})
		}
		rows = append(rows, row)
	}
	p.WriteRecords([]string{terminal.TimeHeader, "ORCHESTRATION", "STATUS"}, rows)
	return p.String()
}

// formatGate returns the step and the call that wait, and until when.
func formatGate(g *contract.ApprovalGate) string {
	return fmt.Sprintf("step %s, %s, until %s (%s)", g.StepID, g.Action, terminal.FormatMinute(g.ExpiresAt), g.Rule)
}

// PrintRun prints an orchestration: its goal, its events as they are printed while it
// runs, its result, and the approvals that it waits for.
func PrintRun(out io.Writer, run *contract.Orchestration) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	field := func(name, text string) { fmt.Fprintf(w, "%s\t%s\n", name, terminal.OneLine(text)) }
	field("orchestration", run.OrchestrationID)
	field("goal", run.Goal)
	field("created", terminal.FormatMinute(run.CreatedAt))
	if !run.EndedAt.IsZero() {
		field("ended", terminal.FormatMinute(run.EndedAt))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for i := range run.AuditTrail {
		fmt.Fprintln(out, formatRunEvent(&run.AuditTrail[i]))
	}
	if err := PrintResult(out, run); err != nil {
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

// PrintActionResult prints a text as it is, and everything else as JSON.
func PrintActionResult(out io.Writer, result *contract.ActionResult) error {
	var text string
	switch {
	case result.Type == contract.ActionText && strictjson.Unmarshal(result.Content, &text) == nil:
		_, err := fmt.Fprintln(out, terminal.Printable(text))
		return err
	case result.Structured != nil:
		return printIndented(out, result.Structured)
	}
	return printIndented(out, result.Content)
}

func printIndented(out io.Writer, raw json.RawMessage) error {
	text, err := strictjson.MarshalIndent(raw)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, string(text))
	return err
}
