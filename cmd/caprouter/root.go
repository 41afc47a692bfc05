package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/terminal"
)

func newRootCommand() *cobra.Command {
	root := cmdline.NewGroupCommand(&cobra.Command{
		Use:   "caprouter",
		Short: "Route requests in plain language to eligible agents",
		Long: "caprouter routes requests in plain language to agents: a classifier proposes the intent, and fixed\n" +
			"arithmetic over a capability registry decides which agents are eligible.\n\n" +
			"Exit codes: 0 success, 1 failure, 2 invalid command line.",
		Example: `  caprouter demo
  caprouter init
  caprouter serve --registry capabilities.yaml
  caprouter route "review this python code" --explain --dry-run`,
		Version:       buildVersion(),
		SilenceErrors: true,
		SilenceUsage:  true,
	},
		newDemoCommand(),
		newInitCommand(),
		newServeCommand(),
		newRouteCommand(),
		newValidateCommand(),
		newLintCommand(),
		newDoctorCommand(),
		newDecisionsCommand(),
		newFeedbackCommand(),
		newReplayCommand(),
		newTeachCommand(),
		newAgentsCommand(),
		newAgentSampleCommand(),
		newMCPCommand(),
		newMCPSampleCommand(),
		newMCPSuperviseCommand(),
		newOrchestrateCommand(),
		newPolicyCommand(),
		newTicketsCommand(),
		newTokenCommand(),
		newKeysCommand(),
		newAuditCommand(),
		newStoreCommand(),
		newGoldenCommand(),
		newCompletionCommand(),
		newSchemaCommand(),
		newVersionCommand(),
	)
	root.SetVersionTemplate(versionLine() + "\n")
	root.SetFlagErrorFunc(cmdline.ExplainFlagError)
	root.CompletionOptions.DisableDefaultCmd = true // see completion.go
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	root.SetHelpCommand(cmdline.NewHelpCommand())
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		out := cmd.OutOrStdout()
		fmt.Fprint(out, cmdline.FormatHelp(cmd, terminal.DetectOptions(out)))
	})
	return root
}
