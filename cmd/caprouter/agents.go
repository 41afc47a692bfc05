package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/internal/rest"
)

func newAgentsCommand() *cobra.Command {
	return newGroupCommand(&cobra.Command{
		Use:   "agents",
		Short: "List the agents of a running router, or mint a token for one",
	}, newAgentsListCommand(), newAgentsTokenCommand())
}

func newAgentsListCommand() *cobra.Command {
	var flags serverFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the agents with their live state",
		Long: "List the agents of a running router with their live state: whether they are eligible, the state of\n" +
			"their circuit breaker and the tasks in flight.",
		Example: `  caprouter agents list
  caprouter agents list --url http://127.0.0.1:8080 --json`,
		Args: argsBetween("no arguments", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := flags.newClient(cmd)
			if err != nil {
				return err
			}
			var list rest.AgentList
			if err := c.getResource(cmd.Context(), "/api/v1/agents", nil, &list); err != nil {
				return err
			}
			return printOutput(cmd, flags.asJSON, list, func(out io.Writer) error { return printAgents(out, list.Agents) })
		},
	}
	flags.register(cmd)
	addJSONFlag(cmd, &flags.asJSON)
	return cmd
}

func printAgents(out io.Writer, agents []rest.Agent) error {
	if len(agents) == 0 {
		_, err := fmt.Fprintln(out, "no agents")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "AGENT\tSTATE\tBREAKER\tIN FLIGHT\tPROTOCOL\tINTENTS\tDOMAINS")
	for i := range agents {
		a := &agents[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%d/%d\t%s\t%s\t%s\n", oneLine(a.ID), oneLine(a.State), oneLine(a.Breaker.State),
			a.InFlight, a.MaxInFlight, dashIfEmpty(a.Entry.Endpoint.Protocol), dashIfEmpty(a.Entry.Match.Intent...), dashIfEmpty(a.Entry.Match.Domains...))
	}
	return w.Flush()
}

func dashIfEmpty(list ...string) string { return cmp.Or(oneLine(strings.Join(list, ",")), "-") }
