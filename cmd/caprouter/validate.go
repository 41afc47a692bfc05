package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/localfile"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/plaintext"
)

func newValidateCommand() *cobra.Command {
	var flags configFlags
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
			cfg, s, err := flags.loadRegistry(args)
			if err != nil {
				return err
			}
			file := registryFile(&cfg)
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
	addConfigFlag(cmd, &flags.config)
	return cmd
}

// loadRegistry loads the registry FILE of the arguments or, without one, that of the
// configuration. Mistakes in other keys of the configuration do not matter.
func (f *configFlags) loadRegistry(args []string) (config.Config, *capabilities.Snapshot, error) {
	cfg, err := config.Load(f.configPath(), os.LookupEnv)
	if err != nil {
		return cfg, nil, err
	}
	if len(args) == 1 {
		cfg.Registry.File = args[0]
	}
	s, err := readRegistry(registryFile(&cfg))
	if len(args) == 0 && errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("there is no registry file %s: name one, or write one with `caprouter init`", registryFile(&cfg))
	}
	return cfg, s, err
}

func readRegistry(file string) (*capabilities.Snapshot, error) {
	s, err := capabilities.Load(file)
	return s, localfile.ShortenError(err)
}
