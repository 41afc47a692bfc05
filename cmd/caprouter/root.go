package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/internal/cli/localfile"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/plaintext"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

func newRootCommand() *cobra.Command {
	root := newGroupCommand(&cobra.Command{
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
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageErrorf(cmd, "%w%s", explainFlagError(err), suggestFlag(cmd, err))
	})
	root.CompletionOptions.DisableDefaultCmd = true // see completion.go
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	root.SetHelpCommand(newHelpCommand())
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		out := cmd.OutOrStdout()
		fmt.Fprint(out, formatHelp(cmd, terminal.DetectOptions(out)))
	})
	return root
}

func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Help about any command",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var names []cobra.Completion
			if parent, _, err := cmd.Root().Find(args); err == nil {
				for _, c := range parent.Commands() {
					if c.IsAvailableCommand() {
						names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			target, rest, err := cmd.Root().Find(args)
			if err != nil {
				return usageErrorf(cmd, "%w", err)
			}
			if len(rest) > 0 {
				return newUnknownCommandError(target, rest[0])
			}
			target.InitDefaultHelpFlag()
			target.InitDefaultVersionFlag()
			return target.Help()
		},
	}
}

// usageError is an invalid command line, with exit code 2.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

// usageErrorf returns a usageError that refers to the help of the command.
func usageErrorf(cmd *cobra.Command, format string, args ...any) error {
	return usageError{fmt.Errorf(format+" (see %s --help)", append(args, cmd.CommandPath())...)}
}

// flagNames matches the names of flags in the usage of a command.
var flagNames = regexp.MustCompile(`(?m)^ +(?:-\w, )?--([\w-]+)`)

// suggestFlag returns a question for the flag that is most similar to an unknown one, "" if
// none is.
func suggestFlag(cmd *cobra.Command, err error) string {
	unknown, ok := errors.AsType[interface {
		error
		GetSpecifiedName() string
		GetSpecifiedShortnames() string // j and the rest of -json
	}](err)
	if !ok {
		return ""
	}
	var names []string
	for _, match := range flagNames.FindAllStringSubmatch(cmd.Flags().FlagUsages(), -1) {
		names = append(names, match[1])
	}
	near := strictyaml.Nearest(cmp.Or(unknown.GetSpecifiedShortnames(), unknown.GetSpecifiedName()), names)
	if near != "" && near != unknown.GetSpecifiedName() { // else the flag exists, and its value is the mistake
		return ", did you mean --" + near + "?"
	}
	return ""
}

// argsBetween checks the number of arguments. what describes them in the error.
func argsBetween(what string, least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= least && len(args) <= most {
			return nil
		}
		_, name, _ := strings.Cut(cmd.CommandPath(), " ")
		return usageErrorf(cmd, "%s takes %s, not %s", name, what, plaintext.CountNoun(len(args), "argument"))
	}
}

// newGroupCommand returns a command that only groups others.
func newGroupCommand(cmd *cobra.Command, subcommands ...*cobra.Command) *cobra.Command {
	cmd.Args = requireSubcommand
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(subcommands...)
	return cmd
}

// newListGroupCommand is newGroupCommand for a group that runs list if no subcommand is
// named.
func newListGroupCommand(cmd, list *cobra.Command, subcommands ...*cobra.Command) *cobra.Command {
	newGroupCommand(cmd, append([]*cobra.Command{list}, subcommands...)...)
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
	return usageErrorf(parent, "%s", text)
}

// silentError sets exit code 1 without a message, because the command has printed the
// reason.
type silentError struct{}

func (silentError) Error() string { return "" }

// reportError prints one line per mistake and returns the exit code.
func reportError(errOut io.Writer, err error) int {
	if _, ok := errors.AsType[strictyaml.Errors](err); ok {
		for _, line := range splitErrors(err) {
			printError(errOut, line)
		}
		return exitError
	}
	code := exitError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, new(silentError)):
		return exitError
	case errors.As(err, new(usageError)):
		code = exitUsage
	case errors.Is(err, context.Canceled):
		err = errors.New("interrupted")
	}
	printError(errOut, localfile.ExplainPermission(err).Error())
	return code
}

// splitErrors returns one message per mistake in a file.
func splitErrors(err error) []string {
	mistakes, ok := errors.AsType[strictyaml.Errors](err)
	if !ok {
		return []string{err.Error()}
	}
	lines := make([]string, len(mistakes))
	for i := range mistakes {
		lines[i] = mistakes[i].Error()
	}
	return lines
}

// printError prints one line, which is wrapped on a terminal.
func printError(errOut io.Writer, what string) {
	p := terminal.NewPrinter(terminal.DetectLineOptions(errOut))
	lines := p.WrapText(terminal.Plain, "caprouter: "+what, len(terminal.Indent))
	p.WriteBlock("", 0, strings.ReplaceAll(lines, "\n", "\n"+terminal.Indent))
	fmt.Fprint(errOut, p.String())
}

// explainMissingRegistry adds advice to the error if the registry file does not exist.
func explainMissingRegistry(err error, cfg *config.Config) error {
	file := cmp.Or(cfg.Registry.File, config.DefaultRegistryFile)
	if path, ok := errors.AsType[*fs.PathError](err); ok && path.Path == file && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no registry file %s: name one with --registry FILE, or write one with `caprouter init`", file)
	}
	return err
}
