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
		Short: "Check a registry file and report every mistake with its position",
		Long: "Check a registry file as serve reads it, and print one line per mistake with file, line and column. Use\n" +
			"caprouter lint to find probable mistakes in a valid file.",
		Example:           `  caprouter validate capabilities.yaml`,
		Args:              argsBetween("one FILE", 1, 1),
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
				formatCount(len(s.Catalogue.Agents), "agent"), formatCount(len(s.Catalogue.Intents), "intent"), formatCount(len(s.Catalogue.Domains), "domain"), s.Catalogue.Version)
			return err
		},
	}
}

func readRegistry(file string) (*capabilities.Snapshot, error) {
	s, err := capabilities.Load(file)
	return s, withoutVerb(err)
}

// withoutVerb shortens "load: open a.yaml: no such file" to "a.yaml: no such file".
func withoutVerb(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = fmt.Errorf("%s: %w", path.Path, path.Err)
		if errors.Is(err, fs.ErrPermission) {
			err = fmt.Errorf("%w: %s", err, permissionAdvice(path.Path))
		}
	}
	return err
}
