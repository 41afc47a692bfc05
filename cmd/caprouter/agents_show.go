package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/restclient"
	"github.com/caprouter/caprouter/internal/cli/routerflags"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/rest"
)

func agentPath(id string) string { return restclient.AgentsPath + "/" + url.PathEscape(id) }

func newAgentsShowCommand() *cobra.Command {
	var flags routerflags.Server
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show an agent with its instances and leases",
		Example: `  caprouter agents show word_counter
  caprouter agents show word_counter --json`,
		Args: cmdline.ArgsBetween("the id of an agent", 1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := flags.NewClient(cmd)
			if err != nil {
				return err
			}
			var agent rest.Agent
			if err := c.GetResource(cmd.Context(), agentPath(args[0]), nil, &agent); err != nil {
				return explainUnknownAgent(cmd.Context(), c, args[0], err)
			}
			return cmdline.PrintOutput(cmd, flags.AsJSON, agent, func(out io.Writer) error { return printAgent(out, &agent, time.Now()) })
		},
	}
	flags.Register(cmd)
	cmdline.AddJSONFlag(cmd, &flags.AsJSON)
	return cmd
}

// explainUnknownAgent adds the nearest id to the error of an agent that the router does not
// have. Other errors are returned as they are.
func explainUnknownAgent(ctx context.Context, c *restclient.Client, id string, err error) error {
	problem, ok := errors.AsType[*contract.Error](err)
	if !ok || problem.Code != contract.CodeNotFound {
		return err
	}
	hint, unknown := c.SuggestAgent(ctx, id)
	if !unknown {
		return err
	}
	explained := *problem
	explained.Message += hint
	return &explained
}

func printAgent(out io.Writer, a *rest.Agent, now time.Time) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	field := func(name, text string) {
		if text != "" {
			fmt.Fprintf(w, "%s\t%s\n", name, terminal.OneLine(text))
		}
	}
	field("agent", a.ID)
	field("origin", a.Origin)
	field("state", formatState(a))
	if a.Polling != nil {
		field("workers", formatPolling(a.Polling, now))
	}
	field("in flight", fmt.Sprintf("%d of %d", a.InFlight, a.MaxInFlight))
	field("breaker", a.Breaker.State)
	field("description", a.Entry.Description)
	field("intents", strings.Join(a.Entry.Match.Intent, ", "))
	field("domains", strings.Join(a.Entry.Match.Domains, ", "))
	field("protocol", a.Entry.Endpoint.Protocol)
	if len(a.Instances) == 0 {
		field("url", a.Entry.Endpoint.URL)
	}
	field("action", a.Entry.Endpoint.Action)
	field("missing capabilities", strings.Join(a.Missing, ", "))
	for _, sentence := range a.Refused {
		field("refused", sentence)
	}
	if err := w.Flush(); err != nil || len(a.Instances) == 0 {
		return err
	}
	fmt.Fprintln(out)
	p := terminal.NewPrinter(terminal.DetectOptions(out))
	rows := make([]terminal.Row, len(a.Instances))
	for i := range a.Instances {
		n := &a.Instances[i]
		rows[i] = terminal.Row{
			Cells: []terminal.Cell{
				{Text: n.Name, Style: terminal.Bold},
				{Text: string(n.State)},
				{Text: formatLease(n.ExpiresAt, now)},
				{Text: n.Breaker.State},
				{Text: fmt.Sprintf("%d/%d", n.InFlight, n.MaxInFlight), Right: true},
			},
		}
		if n.URL != "" { // an instance that pulls its tasks has none
			rows[i].Below = []terminal.Cell{{Text: n.URL}}
		}
	}
	p.WriteRecords([]string{"INSTANCE", "STATE", "LEASE", "BREAKER", "IN FLIGHT"}, rows)
	_, err := io.WriteString(out, p.String())
	return err
}

// formatState returns the state with its reasons: "degraded (breaker_open)".
func formatState(a *rest.Agent) string {
	if len(a.Reasons) == 0 {
		return string(a.State)
	}
	return fmt.Sprintf("%s (%s)", a.State, strings.Join(a.Reasons, ", "))
}

// formatListState returns the state and, for an agent that pulls while no poll waits, when
// its latest poll was.
func formatListState(a *rest.Agent, now time.Time) string {
	if a.Polling == nil || a.Polling.Polls > 0 {
		return formatState(a)
	}
	return formatState(a) + ", " + formatPolling(a.Polling, now)
}

// formatPolling returns what the router has seen of the workers of an agent that pulls.
func formatPolling(p *rest.Polling, now time.Time) string {
	switch {
	case p.Polls > 0:
		return fmt.Sprintf("%d waiting", p.Polls)
	case p.LastPollAt == nil:
		return "no poll yet"
	}
	return fmt.Sprintf("last poll %s ago", max(now.Sub(*p.LastPollAt), 0).Round(time.Second))
}

// formatLease returns how long a lease is valid, or has ended.
func formatLease(expiresAt, now time.Time) string {
	left := expiresAt.Sub(now).Round(time.Second)
	if left > 0 {
		return left.String() + " left"
	}
	return "ended " + (-left).String() + " ago"
}

func newAgentsDrainCommand() *cobra.Command {
	var flags routerflags.Server
	var instance string
	cmd := &cobra.Command{
		Use:   "drain ID",
		Short: "Give an instance of a registered agent no new tasks",
		Long: "Give an instance of an agent that registered itself no new tasks. It finishes those in flight. When it\n" +
			"registers again, it gets tasks again: to take an agent out of routing, use caprouter agents disable.",
		Example: "  caprouter agents drain word_counter --instance pod-1",
		Args:    cmdline.ArgsBetween("the id of an agent", 1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := flags.NewClient(cmd)
			if err != nil {
				return err
			}
			var lease contract.Lease
			if err := c.Post(cmd.Context(), c.ResourceURL(agentPath(args[0]), "drain"), rest.InstanceName{Instance: instance}, &lease); err != nil {
				return explainUnknownAgent(cmd.Context(), c, args[0], err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "instance %s of %s drains\n", terminal.OneLine(lease.Instance), terminal.OneLine(lease.AgentID))
			return err
		},
	}
	flags.Register(cmd)
	cmd.Flags().StringVar(&instance, "instance", "", "`NAME` of the instance, as caprouter agents show prints it")
	return cmd
}

// newAgentsSwitchCommand returns the command "disable" or "enable".
func newAgentsSwitchCommand(verb, short, done string) *cobra.Command {
	var flags routerflags.Server
	cmd := &cobra.Command{
		Use:     verb + " ID",
		Short:   short,
		Long:    short + ".\nIt applies to agents of the registry file and to agents that registered themselves, and survives a\nrestart of the router.",
		Example: "  caprouter agents " + verb + " word_counter",
		Args:    cmdline.ArgsBetween("the id of an agent", 1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := flags.NewClient(cmd)
			if err != nil {
				return err
			}
			if err := c.Post(cmd.Context(), c.ResourceURL(agentPath(args[0]), verb), nil, nil); err != nil {
				return explainUnknownAgent(cmd.Context(), c, args[0], err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", terminal.OneLine(args[0]), done)
			return err
		},
	}
	flags.Register(cmd)
	return cmd
}
