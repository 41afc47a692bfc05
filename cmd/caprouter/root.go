package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/internal/app"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "caprouter",
		Short: "Route requests in plain language to the agents that may serve them",
		Long: "caprouter routes requests in plain language to agents: a classifier proposes what a request is,\n" +
			"fixed arithmetic over a capability registry decides who may serve it.\n\n" +
			"Exit codes: 0 done, 1 something went wrong, 2 the command line cannot be understood.",
		Example: `  caprouter demo
  caprouter init
  caprouter serve --registry capabilities.yaml
  caprouter route "review this python code" --explain --dry-run`,
		Version:       buildVersion(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          onlySubcommands,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate(versionLine() + "\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usagef(cmd, "%w", err) })
	root.CompletionOptions.DisableDefaultCmd = true // ours is in completion.go
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	root.SetHelpCommand(newHelpCommand())
	root.AddCommand(
		newDemoCommand(),
		newInitCommand(),
		newServeCommand(),
		newRouteCommand(),
		newValidateCommand(),
		newLintCommand(),
		newDoctorCommand(),
		newAgentsCommand(),
		newTicketsCommand(),
		newTokenCommand(),
		newKeysCommand(),
		newAuditCommand(),
		newGoldenCommand(),
		newCompletionCommand(),
		newVersionCommand(),
	)
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
				return usagef(cmd, "%w", err)
			}
			if len(rest) > 0 {
				return unknownCommand(target, rest[0])
			}
			target.InitDefaultHelpFlag()
			target.InitDefaultVersionFlag()
			return target.Help()
		},
	}
}

// usageError is a command line that cannot be understood: exit code 2.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

// usagef is a usageError that ends with where to read on.
func usagef(cmd *cobra.Command, format string, args ...any) error {
	return usageError{fmt.Errorf(format+" (see %s --help)", append(args, cmd.CommandPath())...)}
}

// takes checks how many arguments there are; what describes them.
func takes(what string, least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= least && len(args) <= most {
			return nil
		}
		_, name, _ := strings.Cut(cmd.CommandPath(), " ")
		return usagef(cmd, "%s takes %s, not %s", name, what, count(len(args), "argument"))
	}
}

// onlySubcommands is for a command that does nothing by itself.
func onlySubcommands(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return unknownCommand(cmd, args[0])
}

func unknownCommand(parent *cobra.Command, name string) error {
	_, path, _ := strings.Cut(parent.CommandPath()+" "+name, " ")
	text := fmt.Sprintf("unknown command %q", path)
	parent.SuggestionsMinimumDistance = 2 // what cobra sets, but only where it suggests itself
	if near := parent.SuggestionsFor(name); name != "" && len(near) > 0 {
		text += ", did you mean " + strings.Join(near, " or ") + "?"
	}
	return usagef(parent, "%s", text)
}

// silentError ends with exit code 1 and prints nothing: the command has said
// all there is.
type silentError struct{}

func (silentError) Error() string { return "" }

// report prints err, a line for each mistake, and returns the exit code.
func report(errOut io.Writer, err error) int {
	if _, ok := errors.AsType[strictyaml.Errors](err); ok {
		for _, line := range errorLines(err) {
			complain(errOut, line)
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
	complain(errOut, err.Error())
	return code
}

// errorLines are the mistakes of a file, or the one error.
func errorLines(err error) []string {
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

// complain prints what is wrong on one line.
func complain(errOut io.Writer, what string) {
	fmt.Fprintf(errOut, "caprouter: %s\n", oneLine(what))
}

// missingRegistry says what to do when it is the registry file that is missing.
func missingRegistry(err error, cfg *app.Config) error {
	file := cmp.Or(cfg.Registry.File, app.DefaultRegistryFile)
	if path, ok := errors.AsType[*fs.PathError](err); ok && path.Path == file && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no registry file %s: name one with --registry FILE, or write one with `caprouter init`", file)
	}
	return err
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
