package main

import (
	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/app"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/routerflags"
)

func newAgentsTokenCommand() *cobra.Command {
	var flags tokenFlags
	var tools []string
	cmd := &cobra.Command{
		Use:   "token ID",
		Short: "Issue a token that identifies an agent",
		Long: "Issue a token for the agent ID with the key of the data directory, and print it. Its subject is the agent.\n" +
			"The router may be running. With --tool, the agent may call the tool, bind its mcp_capabilities and read the\n" +
			"events of MCP servers; the server of the tool must provide one of the mcp_capabilities of the agent.\n\n" +
			"The file of MCP servers is read, and no server is started: a tool must be one of the actions that the file\n" +
			"declares for the server, if there are any, and be selected by its tools.include and tools.exclude. Tools that\n" +
			"only the server itself lists are not checked; caprouter mcp list shows those of a running router.",
		Example: `  export TOKEN=$(caprouter agents token quality_agent)
  caprouter agents token quality_agent --ttl 24h --data-dir /var/lib/caprouter
  caprouter agents token quality_agent --tool repo.read --tool repo.search`,
		Args: cmdline.ArgsBetween("one agent ID", 1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !contract.ValidAgentID(args[0]) {
				return cmdline.UsageErrorf(cmd, "%q is not an agent id: up to 64 of a-z, 0-9, _ and -, with a letter first", args[0])
			}
			grant := app.TokenGrant{Subject: args[0], Scopes: []string{contract.ScopeAgentsRegister, contract.ScopeTasksWork}}
			if len(tools) > 0 {
				grant.Scopes = append(grant.Scopes, contract.ScopeMCPRead)
			}
			for _, action := range tools {
				if !contract.ValidScope(contract.ScopeInvokePrefix + action) {
					return cmdline.UsageErrorf(cmd, "--tool is one action, SERVER.TOOL, such as weather.query, not %q", action)
				}
				grant.Scopes = append(grant.Scopes, contract.ScopeInvokePrefix+action)
			}
			grant.Scopes = removeDuplicates(grant.Scopes)
			return flags.printToken(cmd, grant)
		},
	}
	flags.register(cmd)
	routerflags.AddMCPFlag(cmd, &flags.MCPFile)
	cmd.Flags().StringArrayVar(&tools, "tool", nil, "`ACTION` that the agent may call, such as weather.query (repeatable)")
	return cmd
}
