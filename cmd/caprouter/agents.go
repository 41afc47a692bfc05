package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/restclient"
	"github.com/caprouter/caprouter/internal/cli/routerflags"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/rest"
)

func newAgentsCommand() *cobra.Command {
	return cmdline.NewListGroupCommand(&cobra.Command{
		Use:   "agents",
		Short: "List the agents of a running router, change their state, or mint a token for one",
		Long:  "Without a subcommand, list the agents of a running router, like caprouter agents list.",
	}, newAgentsListCommand(), newAgentsShowCommand(), newAgentsExportCommand(), newAgentsDrainCommand(),
		newAgentsSwitchCommand("disable", "Take an agent out of routing, until it is enabled", "gets no new tasks"),
		newAgentsSwitchCommand("enable", "Take a disabled agent back into routing", "may get tasks again"),
		newAgentsTokenCommand())
}

func newAgentsListCommand() *cobra.Command {
	var flags routerflags.Server
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the agents with their live state",
		Long: "List the agents of a running router with their live state: whether they are eligible, the state of\n" +
			"their circuit breaker and the tasks in flight.",
		Example: `  caprouter agents list
  caprouter agents list --url http://127.0.0.1:8080 --json`,
		Args: cmdline.ArgsBetween("no arguments", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := flags.NewClient(cmd)
			if err != nil {
				return err
			}
			var list rest.AgentList
			if err := c.GetResource(cmd.Context(), restclient.AgentsPath, nil, &list); err != nil {
				return err
			}
			return cmdline.PrintOutput(cmd, flags.AsJSON, list, func(out io.Writer) error { return printAgents(out, list.Agents, time.Now()) })
		},
	}
	flags.Register(cmd)
	cmdline.AddJSONFlag(cmd, &flags.AsJSON)
	return cmd
}

func printAgents(out io.Writer, agents []rest.Agent, now time.Time) error {
	if len(agents) == 0 {
		_, err := fmt.Fprintln(out, "no agents")
		return err
	}
	p := terminal.NewPrinter(terminal.DetectOptions(out))
	rows := make([]terminal.Row, len(agents))
	for i := range agents {
		a := &agents[i]
		rows[i] = terminal.Row{
			Cells: []terminal.Cell{
				{Text: a.ID, Style: terminal.Bold},
				{Text: formatListState(a, now)},
				{Text: a.Breaker.State},
				{Text: fmt.Sprintf("%d/%d", a.InFlight, a.MaxInFlight), Right: true},
				{Text: cmp.Or(a.Entry.Endpoint.Protocol, "-")},
			},
			Below: []terminal.Cell{{Text: strings.Join(a.Entry.Match.Intent, ", ") + " · " + strings.Join(a.Entry.Match.Domains, ", ")}},
		}
	}
	p.WriteRecords([]string{"AGENT", "STATE", "BREAKER", "IN FLIGHT", "PROTOCOL"}, rows)
	_, err := io.WriteString(out, p.String())
	return err
}
