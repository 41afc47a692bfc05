package main

import (
	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/app"
)

func newAgentsTokenCommand() *cobra.Command {
	var flags tokenFlags
	cmd := &cobra.Command{
		Use:   "token ID",
		Short: "Issue a token that identifies an agent",
		Long: "Issue a token for the agent ID with the key of the data directory, and print it. Its subject is the agent.\n" +
			"The router may be running.",
		Example: `  export TOKEN=$(caprouter agents token quality_agent)
  caprouter agents token quality_agent --ttl 24h --data-dir /var/lib/caprouter`,
		Args: argsBetween("one agent ID", 1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !contract.ValidAgentID(args[0]) {
				return usageErrorf(cmd, "%q is not an agent id: up to 64 of a-z, 0-9, _ and -, with a letter first", args[0])
			}
			return flags.printToken(cmd, app.TokenGrant{
				Subject: args[0], Scopes: []string{contract.ScopeAgentsRegister, contract.ScopeTasksWork},
			})
		},
	}
	flags.register(cmd)
	return cmd
}
