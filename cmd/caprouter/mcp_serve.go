package main

import (
	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/mcprelay"
	"github.com/caprouter/caprouter/internal/cli/routerflags"
)

func newMCPServeCommand() *cobra.Command {
	var flags routerflags.Server
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the tools of a running router on standard input and output",
		Long: "Serve the tools of a running router to an MCP client that starts this command: those of its MCP servers,\n" +
			"with their prompts and resources, and route_request. A client that speaks MCP over HTTP needs no command:\n" +
			"its address is that of the router with /mcp at the end.",
		Example: `  caprouter mcp serve --url http://127.0.0.1:8080`,
		Args:    cmdline.ArgsBetween("no arguments", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := flags.NewClient(cmd)
			if err != nil {
				return err
			}
			return mcprelay.New(c, buildVersion()).ServeStdio(cmd.Context())
		},
	}
	flags.Register(cmd)
	return cmd
}
