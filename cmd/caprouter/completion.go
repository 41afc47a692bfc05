package main

import (
	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/internal/cli/cmdline"
)

func newCompletionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print the completion script of a shell",
		Long:  "Print a script that completes commands, flags and files of caprouter in your shell.",
		Example: `  source <(caprouter completion bash)                                   # this session
  caprouter completion bash > /etc/bash_completion.d/caprouter
  caprouter completion zsh > "${fpath[1]}/_caprouter"
  caprouter completion fish > ~/.config/fish/completions/caprouter.fish`,
		ValidArgs: []cobra.Completion{"bash", "zsh", "fish", "powershell"},
		Args:      cmdline.ArgsBetween("one shell", 1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			root, out := cmd.Root(), cmd.OutOrStdout()
			switch shell := args[0]; shell {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			case "fish":
				return root.GenFishCompletion(out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(out)
			default:
				return cmdline.UsageErrorf(cmd, "%q is not one of bash, zsh, fish, powershell", shell)
			}
		},
	}
}
