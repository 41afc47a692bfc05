package main

import (
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/restclient"
	"github.com/caprouter/caprouter/internal/cli/routerflags"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/plaintext"
)

func newTicketsCommand() *cobra.Command {
	return cmdline.NewListGroupCommand(&cobra.Command{
		Use:   "tickets",
		Short: "List tickets of unsupported requests, and which agent to build next",
		Long: "With fallback policy C, requests without an eligible agent become tickets. Similar requests share a\n" +
			"ticket, which counts them and suggests the registry entry of the missing agent.\n\n" +
			"Without a subcommand, list the open tickets, like caprouter tickets list.",
	}, newTicketsListCommand(), newTicketsShowCommand(), newTicketsCloseCommand(), newTicketsDemandCommand())
}

func newTicketsListCommand() *cobra.Command {
	var flags routerflags.Server
	var status string
	limit := 100
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the tickets, newest first",
		Example: `  caprouter tickets list
  caprouter tickets list --status all --limit 500 --json`,
		Args: cmdline.ArgsBetween("no arguments", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch contract.TicketStatus(status) {
			case contract.TicketOpen, contract.TicketClosed, restclient.AllStatuses:
			default:
				return cmdline.UsageErrorf(cmd, "--status is open, closed or all, not %q", status)
			}
			c, err := flags.NewClient(cmd)
			if err != nil {
				return err
			}
			list, err := c.ListTickets(cmd.Context(), status, limit)
			if err != nil {
				return err
			}
			return cmdline.PrintList(cmd, flags.AsJSON, list, "tickets", formatTickets)
		},
	}
	flags.Register(cmd)
	cmdline.AddJSONFlag(cmd, &flags.AsJSON)
	cmd.Flags().StringVar(&status, "status", string(contract.TicketOpen), "`STATUS` of the tickets: open, closed or all")
	cmdline.AddCountFlag(cmd, &limit, "limit", 1, 0, "maximum number `N` of tickets")
	cmdline.MustSucceed(cmd.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(
		[]cobra.Completion{string(contract.TicketOpen), string(contract.TicketClosed), restclient.AllStatuses}, cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

func newTicketsShowCommand() *cobra.Command {
	var flags routerflags.Server
	var yaml bool
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show a ticket with its examples and the suggested agent",
		Example: `  caprouter tickets show 0198c0de-0000-7000-8000-000000000001
  caprouter tickets show --yaml 0198c0de-0000-7000-8000-000000000001 > flight_agent.yaml`,
		Args: cmdline.ArgsBetween("the id of a ticket", 1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := flags.NewClient(cmd)
			if err != nil {
				return err
			}
			var t contract.Ticket
			if err := c.GetResource(cmd.Context(), ticketPath(args[0]), nil, &t); err != nil {
				return err
			}
			if yaml {
				_, err := io.WriteString(cmd.OutOrStdout(), terminal.Printable(t.SuggestedYAML))
				return err
			}
			return cmdline.PrintOutput(cmd, flags.AsJSON, t, func(out io.Writer) error { return printTicket(out, &t) })
		},
	}
	flags.Register(cmd)
	cmdline.AddJSONFlag(cmd, &flags.AsJSON)
	cmd.Flags().BoolVar(&yaml, "yaml", false, "print only the suggested registry")
	cmd.MarkFlagsMutuallyExclusive("json", "yaml")
	return cmd
}

func newTicketsCloseCommand() *cobra.Command {
	var flags routerflags.Server
	var note string
	cmd := &cobra.Command{
		Use:     "close ID",
		Short:   "Close a ticket; the next similar request opens a new one",
		Example: `  caprouter tickets close 0198c0de-0000-7000-8000-000000000001 --note "flight_agent serves these now"`,
		Args:    cmdline.ArgsBetween("the id of a ticket", 1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := flags.NewClient(cmd)
			if err != nil {
				return err
			}
			var t contract.Ticket
			body := struct {
				Note string `json:"note"`
			}{note}
			if err := c.Post(cmd.Context(), c.ResourceURL(ticketPath(args[0]), "close"), body, &t); err != nil {
				return err
			}
			return cmdline.PrintOutput(cmd, flags.AsJSON, t, func(out io.Writer) error {
				_, err := fmt.Fprintf(out, "closed %s, a ticket of %s: %s\n", terminal.OneLine(t.TicketID), plaintext.CountNoun(t.Count, "request"), terminal.OneLine(t.Title))
				return err
			})
		},
	}
	flags.Register(cmd)
	cmdline.AddJSONFlag(cmd, &flags.AsJSON)
	cmd.Flags().StringVar(&note, "note", "", "reason, stored in the ticket, as `TEXT`")
	return cmd
}

func ticketPath(id string) string { return restclient.TicketsPath + "/" + url.PathEscape(id) }

// formatTickets returns two lines per ticket that fit 80 columns, except for long titles,
// which are cut at the width of the output.
func formatTickets(list []contract.Ticket, opts terminal.Options) string {
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
				{Text: formatDate(t.LastAt)},
				{Text: t.TicketID},
				{Text: string(t.Status)},
				{Text: strconv.Itoa(t.Count), Right: true},
				{Text: formatCallers(t.Callers)},
			},
			Below: []terminal.Cell{{Text: terminal.Truncate(terminal.OneLine(title), min(opts.Width, terminal.ListWidth)-len("2006-01-02")-len(terminal.ColumnGap))}},
		})
	}
	p.WriteRecords([]string{"LAST", "TICKET", "STATUS", "REQUESTS", "CALLERS"}, rows)
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

func formatDate(at time.Time) string { return at.UTC().Format(time.DateOnly) }

func formatMinute(at time.Time) string { return at.UTC().Format("2006-01-02 15:04") }

// suggestedIntent returns the intents of the agent that the ticket suggests.
func suggestedIntent(t *contract.Ticket) string {
	s, err := capabilities.Parse("suggestion", []byte(t.SuggestedYAML))
	if err != nil || len(s.Catalogue.Intents) == 0 {
		return ""
	}
	return strings.Join(s.Catalogue.Intents, ",")
}

func printTicket(out io.Writer, t *contract.Ticket) error {
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
	field("requests", "%d, from %s to %s", t.Count, formatMinute(t.CreatedAt), formatMinute(t.LastAt))
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
