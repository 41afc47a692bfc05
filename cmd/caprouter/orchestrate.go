package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/restclient"
	"github.com/caprouter/caprouter/internal/cli/routerflags"
	"github.com/caprouter/caprouter/internal/cli/runreport"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/strictjson"
)

func newOrchestrateCommand() *cobra.Command {
	var flags routerflags.Server
	var planFile string
	var timeout time.Duration
	var goal contract.Goal
	cmd := &cobra.Command{
		Use:   "orchestrate GOAL",
		Short: "Pursue a goal with the tools of MCP servers",
		Long: "Plan a goal, call the tools of the router's MCP servers under its policy, and verify their outputs. The steps\n" +
			"are printed as they happen. If a call needs an approval, the run waits until another caller runs\n" +
			"caprouter orchestrate approve; caprouter orchestrate list --status waiting_approval lists such runs.\n\n" +
			"caprouter \"mcp GOAL\" and caprouter mcp: GOAL are the same command. Exit code 1 unless the goal is reached.",
		Example: `  caprouter orchestrate "list the files of the project" --plan plan.json
  caprouter orchestrate "summarise the open issues" --plan-only
  caprouter "mcp summarise the open issues"`,
		Args: cmdline.ArgsBetween("one GOAL in quotes", 1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			goal.Goal, goal.Constraints.TimeoutMS = args[0], int(timeout.Milliseconds())
			if planFile != "" {
				raw, err := readPlan(cmd, planFile)
				if err != nil {
					return err
				}
				goal.Constraints.Plan = raw
			}
			c, err := flags.NewClient(cmd)
			if err != nil {
				return err
			}
			view := &runreport.EventPrinter{Out: cmd.OutOrStdout(), Quiet: flags.AsJSON}
			result, err := c.StreamRun(cmd.Context(), &goal, view.Print)
			if err != nil {
				return err
			}
			if flags.AsJSON {
				err = cmdline.PrintJSON(cmd.OutOrStdout(), result)
			} else {
				err = runreport.PrintResult(cmd.OutOrStdout(), result)
			}
			if err == nil && result.Status != contract.OrchestrationDone {
				return cmdline.SilentError{}
			}
			return err
		},
	}
	flags.Register(cmd)
	cmdline.AddJSONFlag(cmd, &flags.AsJSON)
	cmd.Flags().StringVar(&planFile, "plan", "", "JSON `FILE` with the plan; - = standard input")
	cmd.Flags().BoolVar(&goal.Constraints.PlanOnly, "plan-only", false, "print the plan and call no tool")
	cmd.Flags().StringSliceVar(&goal.AvailableServers, "server", nil, "`NAME` of an MCP server that may be used (repeatable; none = all)")
	cmd.Flags().StringSliceVar(&goal.Constraints.Allow, "allow", nil, "`ACTION` that may be called, for example files.read or files.* (repeatable; none = all)")
	cmd.Flags().StringSliceVar(&goal.Constraints.Deny, "deny", nil, "`ACTION` that may not be called, for example files.write or files.* (repeatable)")
	cmdline.AddDurationFlag(cmd, &timeout, "timeout", time.Second, 24*time.Hour, "`TIME` after which the run ends (default that of the router)")
	cmd.AddCommand(newListRunsCommand(), newShowRunCommand(), newApproveRunCommand(), newCancelRunCommand())
	return cmd
}

// readPlan reads a plan, which must be JSON. The router checks its content.
func readPlan(cmd *cobra.Command, file string) ([]byte, error) {
	name := file
	var raw []byte
	var err error
	if file == "-" {
		name = "standard input"
		raw, err = io.ReadAll(io.LimitReader(cmd.InOrStdin(), contract.MaxPlanBytes+1))
	} else {
		raw, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, err
	}
	var plan any
	var mistake *strictjson.Error
	if err := strictjson.Unmarshal(raw, &plan); errors.As(err, &mistake) {
		line, column, detail := mistake.Locate(raw)
		if mistake.Offset > 0 {
			name = fmt.Sprintf("%s:%d:%d", name, line, column)
		}
		if mistake.Syntax {
			return nil, fmt.Errorf("%s: the plan %s", name, detail)
		}
		return nil, fmt.Errorf("%s: the plan has a mistake: %s", name, detail)
	}
	return raw, nil
}

func newApproveRunCommand() *cobra.Command {
	var flags routerflags.Server
	var deny bool
	var approval contract.Approval
	cmd := &cobra.Command{
		Use:   "approve ID STEP",
		Short: "Decide about a call that waits for a person",
		Example: `  caprouter orchestrate approve 01980c1a-7c00-7a3e-9d41-5f2b6c7d8e90 write
  caprouter orchestrate approve 01980c1a-7c00-7a3e-9d41-5f2b6c7d8e90 write --deny --comment "wrong folder"`,
		Args: cmdline.ArgsBetween("the id of an orchestration and a step", 2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			approval.Step, approval.Decision = args[1], contract.GateApprove
			text := "step " + args[1] + " is approved"
			if deny {
				approval.Decision = contract.GateDeny
				text = "step " + args[1] + " is denied"
			}
			return changeRun(cmd, &flags, args[0], "approve", approval, func(*contract.Orchestration) string { return text })
		},
	}
	flags.Register(cmd)
	cmdline.AddJSONFlag(cmd, &flags.AsJSON)
	cmd.Flags().BoolVar(&deny, "deny", false, "do not permit the call, which ends the orchestration")
	cmd.Flags().StringVar(&approval.Comment, "comment", "", "reason, stored in the audit log, as `TEXT`")
	return cmd
}

func newCancelRunCommand() *cobra.Command {
	var flags routerflags.Server
	cmd := &cobra.Command{
		Use:     "cancel ID",
		Short:   "Cancel an orchestration",
		Example: `  caprouter orchestrate cancel 01980c1a-7c00-7a3e-9d41-5f2b6c7d8e90`,
		Args:    cmdline.ArgsBetween("the id of an orchestration", 1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return changeRun(cmd, &flags, args[0], "cancel", nil, func(run *contract.Orchestration) string {
				return strings.TrimSpace(string(run.Status) + " " + string(run.Reason))
			})
		},
	}
	flags.Register(cmd)
	cmdline.AddJSONFlag(cmd, &flags.AsJSON)
	return cmd
}

// changeRun posts to an orchestration, and prints what format returns about it.
func changeRun(cmd *cobra.Command, flags *routerflags.Server, id, verb string, body any, format func(*contract.Orchestration) string) error {
	c, err := flags.NewClient(cmd)
	if err != nil {
		return err
	}
	var run contract.Orchestration
	if err := c.Post(cmd.Context(), c.ResourceURL(restclient.RunsPath, id, verb), body, &run); err != nil {
		return err
	}
	return cmdline.PrintOutput(cmd, flags.AsJSON, &run, func(out io.Writer) error {
		_, err := fmt.Fprintf(out, "%s  %s\n", run.OrchestrationID, terminal.Printable(format(&run)))
		return err
	})
}

// expandGoal returns the arguments of orchestrate for a command line that begins with
// "mcp GOAL" in one argument, or with mcp: and a goal; others are returned as they are. A
// name of a subcommand of mcp is no goal.
func expandGoal(args []string) []string {
	if len(args) == 0 {
		return args
	}
	if goal, ok := strings.CutPrefix(args[0], "mcp:"); ok {
		words := strings.Fields(goal)
		rest := args[1:]
		for len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
			words, rest = append(words, rest[0]), rest[1:]
		}
		return orchestrateArgs(strings.Join(words, " "), rest)
	}
	goal, ok := strings.CutPrefix(args[0], "mcp ")
	if goal = strings.TrimSpace(goal); !ok || goal == "" {
		return args
	}
	isSubcommand := func(c *cobra.Command) bool { return c.Name() == goal }
	if slices.ContainsFunc(newMCPCommand().Commands(), isSubcommand) {
		return append([]string{"mcp", goal}, args[1:]...)
	}
	return orchestrateArgs(goal, args[1:])
}

// orchestrateArgs returns the arguments of orchestrate for a goal, which may also be the name
// of a subcommand.
func orchestrateArgs(goal string, flags []string) []string {
	isSubcommand := func(c *cobra.Command) bool { return c.Name() == goal }
	if slices.ContainsFunc(newOrchestrateCommand().Commands(), isSubcommand) {
		return append(append([]string{"orchestrate"}, flags...), "--", goal)
	}
	return append([]string{"orchestrate", goal}, flags...)
}
