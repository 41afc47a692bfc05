package cmdline

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// NewGroupCommand returns a command that only groups others.
func NewGroupCommand(cmd *cobra.Command, subcommands ...*cobra.Command) *cobra.Command {
	cmd.Args = requireSubcommand
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(subcommands...)
	return cmd
}

// NewListGroupCommand is NewGroupCommand for a group that runs list if no subcommand is
// named.
func NewListGroupCommand(cmd, list *cobra.Command, subcommands ...*cobra.Command) *cobra.Command {
	NewGroupCommand(cmd, append([]*cobra.Command{list}, subcommands...)...)
	cmd.RunE, cmd.Example = list.RunE, list.Example
	cmd.Flags().AddFlagSet(list.Flags())
	return cmd
}

// requireSubcommand is for commands that only group others.
func requireSubcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return newUnknownCommandError(cmd, args[0])
}

func newUnknownCommandError(parent *cobra.Command, name string) error {
	_, path, _ := strings.Cut(parent.CommandPath()+" "+name, " ")
	text := fmt.Sprintf("unknown command %q", path)
	parent.SuggestionsMinimumDistance = 2 // the default of cobra, which is not set here
	if near := parent.SuggestionsFor(name); name != "" && len(near) > 0 {
		text += ", did you mean " + strings.Join(near, " or ") + "?"
	}
	return UsageErrorf(parent, "%s", text)
}
