package main

import (
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/routerflags"
	"github.com/caprouter/caprouter/internal/cli/ticketreport"
)

// maxRankedTickets is higher than the number of open tickets that a router stores.
const maxRankedTickets = 100_000

func newTicketsDemandCommand() *cobra.Command {
	var flags routerflags.Server
	limit := 20
	cmd := &cobra.Command{
		Use:   "demand",
		Short: "Rank the open tickets: which agent to build next",
		Long: "Rank the open tickets by demand: the requests of the last 30 days, with a half-life of two weeks.\n" +
			"COUNT is the number of requests, FROM the number of callers, SHARE the ticket's share of the demand,\n" +
			"and TREND compares the last seven days with the seven before.",
		Example: `  caprouter tickets demand
  caprouter tickets demand --limit 3 --json`,
		Args: cmdline.ArgsBetween("no arguments", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := flags.NewClient(cmd)
			if err != nil {
				return err
			}
			list, err := c.ListTickets(cmd.Context(), string(contract.TicketOpen), maxRankedTickets)
			if err != nil {
				return err
			}
			ranked := ticketreport.RankDemand(list, time.Now())
			ranked = ranked[:min(len(ranked), limit)]
			output := struct {
				Demand []ticketreport.RankedTicket `json:"demand"`
			}{ranked}
			return cmdline.PrintOutput(cmd, flags.AsJSON, output, func(out io.Writer) error { return ticketreport.PrintDemand(out, ranked) })
		},
	}
	flags.Register(cmd)
	cmdline.AddJSONFlag(cmd, &flags.AsJSON)
	cmdline.AddCountFlag(cmd, &limit, "limit", 1, 0, "maximum number `N` of tickets")
	return cmd
}
