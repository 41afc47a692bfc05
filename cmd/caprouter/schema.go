package main

import (
	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/starter"
)

func newSchemaCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schema registry|config|cases|policy",
		Short: "Print the JSON Schema of a YAML file",
		Long: "Print the JSON Schema of capabilities.yaml, caprouter.yaml, a file of golden cases or a policy file, with\n" +
			"which an editor completes and checks keys. The files of caprouter init refer to copies of the schemas.",
		Example: `  caprouter schema registry > schemas/registry.json`,
		Args:    cmdline.ArgsBetween("registry, config, cases or policy", 1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, s := range starter.Schemas() {
				if s.Name != args[0] {
					continue
				}
				data, err := s.Encode()
				if err == nil {
					_, err = cmd.OutOrStdout().Write(data)
				}
				return err
			}
			return cmdline.UsageErrorf(cmd, "there is no schema %q: registry, config, cases or policy", args[0])
		},
	}
	for _, s := range starter.Schemas() {
		cmd.ValidArgs = append(cmd.ValidArgs, s.Name)
	}
	return cmd
}
