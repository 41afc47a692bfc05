package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/routerflags"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/plaintext"
)

func newValidateCommand() *cobra.Command {
	var flags routerflags.Config
	cmd := &cobra.Command{
		Use:   "validate [FILE]",
		Short: "Check a registry file and report every mistake with its position",
		Long: "Check a registry file as serve reads it, and print one line per mistake with file, line and column. FILE\n" +
			"defaults to the registry of the configuration. Use caprouter lint to find probable mistakes in a valid file.",
		Example: `  caprouter validate
  caprouter validate new/capabilities.yaml`,
		Args:              cmdline.ArgsBetween("one FILE", 0, 1),
		ValidArgsFunction: cmdline.CompleteYAML,
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, s, err := flags.LoadRegistry(args)
			if err != nil {
				return err
			}
			file := routerflags.RegistryFile(&cfg)
			for _, w := range s.Fleet.Warnings {
				fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s\n", terminal.OneLine(w))
			}
			agents := plaintext.CountNoun(len(s.Catalogue.Agents), "agent")
			if n := len(s.Fleet.Grants); n > 0 {
				agents += ", " + plaintext.CountNoun(n, "grant")
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is valid: %s, %s, %s, version %s\n", file,
				agents, plaintext.CountNoun(len(s.Catalogue.Intents), "intent"), plaintext.CountNoun(len(s.Catalogue.Domains), "domain"), s.Catalogue.Version)
			return err
		},
	}
	routerflags.AddConfigFlag(cmd, &flags.ConfigFile)
	return cmd
}
