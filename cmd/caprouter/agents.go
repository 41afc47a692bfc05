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
	cmd := &cobra.Command{
		Use:   "agents",
		Short: "Look at the agents of a running router, or let one register itself",
		Args:  onlySubcommands,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newAgentsListCommand(), newAgentsTokenCommand())
	return cmd
}

func newAgentsListCommand() *cobra.Command {
	var flags serverFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the agents with their live state",
		Long: "List the agents of a running router with their live state: whether the matcher may choose them, the\n" +
			"state of their breaker and the tasks they are working on.",
		Example: `  caprouter agents list
  caprouter agents list --url http://127.0.0.1:8080 --json`,
		Args: takes("no arguments", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := newClient(cmp.Or(flags.server(cmd), defaultURL), flags.tokenEnv)
			if err != nil {
				return err
			}
			var list rest.AgentList
			if err := c.get(cmd.Context(), "/api/v1/agents", nil, &list); err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), list)
			}
			return printAgents(cmd.OutOrStdout(), list.Agents)
		},
	}
	flags.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
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
			a.InFlight, a.MaxInFlight, names(a.Entry.Endpoint.Protocol), names(a.Entry.Match.Intent...), names(a.Entry.Match.Domains...))
	}
	return w.Flush()
}

// names is a list in one column, "-" when there is nothing.
func names(list ...string) string { return cmp.Or(oneLine(strings.Join(list, ",")), "-") }
