package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/capabilities"
)

func newValidateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE",
		Short: "Check a registry file; every mistake is named with its line and column",
		Long: "Check a registry file as serve would read it. Every mistake is one line, file:line:column: what is wrong.\n" +
			"What is legal but probably not meant is for caprouter lint.",
		Example:           `  caprouter validate capabilities.yaml`,
		Args:              takes("one FILE", 1, 1),
		ValidArgsFunction: completeYAML,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := readRegistry(args[0])
			if err != nil {
				return err
			}
			for _, w := range s.Fleet.Warnings {
				fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s\n", oneLine(w))
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is valid: %s, %s, %s, version %s\n", args[0],
				count(len(s.Catalogue.Agents), "agent"), count(len(s.Catalogue.Intents), "intent"), count(len(s.Catalogue.Domains), "domain"), s.Catalogue.Version)
			return err
		},
	}
}

// readRegistry reads a registry file that is named as an argument.
func readRegistry(file string) (*capabilities.Snapshot, error) {
	s, err := capabilities.Load(file)
	return s, withoutVerb(err)
}

// withoutVerb makes "load: open a.yaml: no such file" into "a.yaml: no such
// file": what was to be done with it is what the command is there for.
func withoutVerb(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s: %w", path.Path, path.Err)
	}
	return err
}
