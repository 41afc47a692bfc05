package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/routerflags"
	"github.com/caprouter/caprouter/internal/cli/runreport"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

func newMCPCallCommand() *cobra.Command {
	var flags mcpFlags
	cmd := &cobra.Command{
		Use:   "call ACTION [JSON]",
		Short: "Call a tool and print its result",
		Long: "Call a tool of a server of the registry file and print its result. ACTION is the name of the server and\n" +
			"that of the tool with a dot between them. JSON is the input, or - to read it from standard input.\n\n" +
			"Exit code 1 if the call fails; --json then prints the error as JSON.",
		Example: `  caprouter mcp call weather.query '{"ubicacion":"Madrid"}'
  caprouter mcp call system.info --json`,
		Args: cmdline.ArgsBetween("an ACTION and its input", 1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			action := contract.Action{Action: args[0]}
			if len(args) == 2 {
				input, err := readActionInput(cmd, args[1])
				if err != nil {
					return err
				}
				action.Input = input
			}
			return flags.withGateway(cmd, func(id string, ids []string) bool { return mayOwnAction(args[0], id, ids) }, func(ctx context.Context, g *gateway.Gateway) error {
				result, err := g.Invoke(ctx, action)
				if failed, ok := errors.AsType[*contract.ActionError](err); ok && flags.asJSON {
					if err := cmdline.PrintJSON(cmd.OutOrStdout(), failed); err != nil {
						return err
					}
					return cmdline.SilentError{}
				}
				if err != nil {
					return err
				}
				return cmdline.PrintOutput(cmd, flags.asJSON, result, func(out io.Writer) error { return runreport.PrintActionResult(out, result) })
			})
		},
	}
	flags.register(cmd)
	return cmd
}

// mayOwnAction reports whether the server may have the action. Other servers are not
// started. If no server has the name, it is the one with the most similar name, whose
// tools are suggested.
func mayOwnAction(action, id string, ids []string) bool {
	if isOwner := func(id string) bool { return strings.HasPrefix(action, id+".") }; slices.ContainsFunc(ids, isOwner) {
		return isOwner(id)
	}
	end := strings.LastIndexByte(action, '.')
	return end > 0 && id == strictyaml.Nearest(action[:end], ids)
}

// maxActionInput bounds what is read from standard input.
const maxActionInput = 16 << 20

// readActionInput returns the input of an action, which is an object.
func readActionInput(cmd *cobra.Command, text string) (json.RawMessage, error) {
	if text == "-" {
		data, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), maxActionInput))
		if err != nil {
			return nil, err
		}
		text = string(data)
	}
	var members map[string]json.RawMessage
	if err := strictjson.Unmarshal([]byte(text), &members); err != nil {
		return nil, cmdline.UsageErrorf(cmd, "the input %w", err)
	}
	return json.RawMessage(text), nil
}

func newMCPImportCommand() *cobra.Command {
	var flags mcpFlags
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Print the servers of a file of another program in the format of " + config.DefaultMCPFile,
		Long: "Read a registry file in any of the formats and print its servers in the format servers, version 1.0.\n" +
			"Values are not changed: ${NAME} stays, and so do literal credentials.",
		Example:           `  caprouter mcp import ~/.cursor/mcp.json > mcp.json`,
		Args:              cmdline.ArgsBetween("one FILE", 0, 1),
		ValidArgsFunction: cmdline.CompleteJSON,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.useArgument(cmd, args); err != nil {
				return err
			}
			if flags.file == "" {
				return cmdline.UsageErrorf(cmd, "import needs FILE, the file of the other program")
			}
			file, err := checkMCPFile(cmd, flags.file)
			if err != nil {
				return err
			}
			text, err := strictjson.MarshalIndent(map[string]any{"version": "1.0", "servers": file.Servers})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), string(text))
			return err
		},
	}
	routerflags.AddMCPFlag(cmd, &flags.file)
	return cmd
}
