package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/routerflags"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/rest"
)

const mcpToolsPath = "/api/v1/mcp/tools"

// shownHash is the length of the part of a hash that is shown and sufficient.
const shownHash = 12

func newMCPApproveCommand() *cobra.Command {
	var flags routerflags.Server
	var hash string
	cmd := &cobra.Command{
		Use:   "approve [ACTION --hash HASH]",
		Short: "List changed definitions of tools of a running router, or approve one",
		Long: "Without ACTION, list the tools whose definitions wait for approval, with the difference to the approved\n" +
			"definition and with text that may address a model. With ACTION, permit calls of the tool again; HASH is that\n" +
			"of the list, so that a definition that has changed again is not approved.\n\n" +
			"The token needs the scope admin.",
		Example: `  caprouter mcp approve
  caprouter mcp approve weather.query --hash 5f2b6c7d8e90`,
		Args: cmdline.ArgsBetween("one ACTION", 0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := flags.NewClient(cmd)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				if hash == "" {
					return cmdline.UsageErrorf(cmd, "--hash is needed: caprouter mcp approve lists the hashes")
				}
				at := c.ResourceURL(mcpToolsPath, args[0], "approve")
				if err := c.Post(cmd.Context(), at, rest.MCPApproval{Hash: hash}, nil); err != nil {
					return err
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is approved\n", args[0])
				return err
			}
			var list rest.MCPPendingList
			if err := c.GetResource(cmd.Context(), mcpToolsPath+"/pending", nil, &list); err != nil {
				return err
			}
			return cmdline.PrintOutput(cmd, flags.AsJSON, list.Tools, func(out io.Writer) error { return printPendingTools(out, list.Tools) })
		},
	}
	flags.Register(cmd)
	cmdline.AddJSONFlag(cmd, &flags.AsJSON)
	cmd.Flags().StringVar(&hash, "hash", "", "`HASH` of the definition to approve, or its first 12 digits")
	return cmd
}

func printPendingTools(out io.Writer, tools []gateway.PendingTool) error {
	if len(tools) == 0 {
		_, err := fmt.Fprintln(out, "no definitions wait for approval")
		return err
	}
	p := terminal.NewPrinter(terminal.DetectOptions(out))
	for i := range tools {
		t := &tools[i]
		what := "changed"
		if t.Pinned == "" {
			what = "new"
		}
		p.WriteParagraph(terminal.Bold, fmt.Sprintf("%s (%s), hash %s", t.Action, what, t.Hash[:min(len(t.Hash), shownHash)]))
		for _, f := range t.Findings {
			p.WriteField("suspicious", fmt.Sprintf("%s in %s: %s", f.Kind, f.Pointer, f.Excerpt), terminal.Red)
		}
		for _, line := range t.Diff {
			style := terminal.Plain
			switch {
			case strings.HasPrefix(line, "+"):
				style = terminal.Green
			case strings.HasPrefix(line, "-"):
				style = terminal.Red
			}
			p.WriteField("", line, style)
		}
	}
	_, err := io.WriteString(out, p.String())
	return err
}
