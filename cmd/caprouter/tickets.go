package main

import (
	"fmt"
	"io"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/restclient"
	"github.com/caprouter/caprouter/internal/cli/routerflags"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/cli/ticketreport"
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
			return cmdline.PrintList(cmd, flags.AsJSON, list, "tickets", ticketreport.FormatTickets)
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
			return cmdline.PrintOutput(cmd, flags.AsJSON, t, func(out io.Writer) error { return ticketreport.PrintTicket(out, &t) })
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
