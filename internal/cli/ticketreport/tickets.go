// Package ticketreport prints tickets for people, and ranks the open ones by demand: which
// agent to build next.
package ticketreport

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/cli/terminal"
)

// FormatTickets returns two lines per ticket that fit 80 columns, except for long titles,
// which are cut at the width of the output.
func FormatTickets(list []contract.Ticket, opts terminal.Options) string {
	p := terminal.NewPrinter(opts)
	var rows []terminal.Row
	for i := range list {
		t := &list[i]
		title := t.Title
		if intent := suggestedIntent(t); intent != "" {
			title = intent + ": " + title
		}
		rows = append(rows, terminal.Row{
			Cells: []terminal.Cell{
				{Text: terminal.FormatDate(t.LastAt)},
				{Text: t.TicketID},
				{Text: string(t.Status)},
				{Text: strconv.Itoa(t.Count), Right: true},
				{Text: formatCallers(t.Callers)},
			},
			Below: []terminal.Cell{{Text: terminal.Truncate(terminal.OneLine(title), min(opts.Width, terminal.ListWidth)-len("2006-01-02")-len(terminal.ColumnGap))}},
		})
	}
	p.WriteRecords([]string{"LAST (UTC)", "TICKET", "STATUS", "REQUESTS", "CALLERS"}, rows)
	return p.String()
}

// maxCallers is the number of callers that a ticket distinguishes.
const maxCallers = 100

func formatCallers(n int) string {
	if n >= maxCallers {
		return strconv.Itoa(maxCallers) + "+"
	}
	return strconv.Itoa(n)
}

// suggestedIntent returns the intents of the agent that the ticket suggests.
func suggestedIntent(t *contract.Ticket) string {
	s, err := capabilities.Parse("suggestion", []byte(t.SuggestedYAML))
	if err != nil || len(s.Catalogue.Intents) == 0 {
		return ""
	}
	return strings.Join(s.Catalogue.Intents, ",")
}

// PrintTicket prints a ticket with its examples and the suggested registry.
func PrintTicket(out io.Writer, t *contract.Ticket) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	field := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%s\t%s\n", name, terminal.OneLine(fmt.Sprintf(format, args...)))
	}
	field("ticket", "%s", t.TicketID)
	field("status", "%s", t.Status)
	if t.Note != "" {
		field("note", "%s", t.Note)
	}
	if t.Tenant != "" {
		field("tenant", "%s", t.Tenant)
	}
	field("title", "%s", t.Title)
	field("requests", "%d, from %s to %s", t.Count, terminal.FormatMinute(t.CreatedAt), terminal.FormatMinute(t.LastAt))
	field("callers", "%s", formatCallers(t.Callers))
	for _, n := range t.Nearest {
		field("nearest", "%s %.2f: %s", n.AgentID, n.Score, formatMissing(&n))
	}
	if r := t.NearestReading; r != nil {
		field("reading", "%s of %s, confidence %.2f: if the agent serves such requests, teach them (caprouter teach)", r.Intent, r.AgentID, r.Confidence)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	section := func(name string, lines []string) {
		if len(lines) == 0 {
			return
		}
		fmt.Fprintf(out, "\n%s\n", name)
		for _, line := range lines {
			fmt.Fprintf(out, "  - %s\n", terminal.OneLine(line))
		}
	}
	var prompts []string
	for _, e := range t.Examples {
		prompts = append(prompts, e.Prompt)
	}
	section("examples", prompts)
	section("requirements", t.Requirements)
	section("risks", t.Risks)
	_, err := fmt.Fprintf(out, "\nsuggested registry\n\n%s", terminal.Printable(t.SuggestedYAML))
	return err
}

// formatMissing returns why the nearest agent was not eligible.
func formatMissing(n *contract.NearestMiss) string {
	switch {
	case n.MissingScore > 0:
		return fmt.Sprintf("%.2f short", n.MissingScore)
	case len(n.Gates) > 0:
		return n.Gates[0].Reason
	}
	return "-"
}
