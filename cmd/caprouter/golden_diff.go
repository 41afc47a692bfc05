package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/golden"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/goldenreport"
	"github.com/caprouter/caprouter/internal/cli/routerflags"
)

// diffFlags are the flags of golden diff. Registry A is RegistryFile.
type diffFlags struct {
	goldenFlags
	other                string
	asJSON, failOnChange bool
}

func newGoldenDiffCommand() *cobra.Command {
	var flags diffFlags
	cmd := &cobra.Command{
		Use:   "diff --registry-a FILE --registry-b FILE CASES…",
		Short: "Compare the routing of two registries",
		Long: "Route every case with two registries and print the changes of outcome, agents, intent and domains, with\n" +
			"scores and gates. The expected outcomes of the cases are ignored.\n\n" +
			"Exit code 1 if --fail-on-change is set and there are changes.",
		Example: `  caprouter golden diff --registry-a capabilities.yaml --registry-b new.yaml golden/`,
		Args:    caseArgs(),
		RunE:    func(cmd *cobra.Command, args []string) error { return goldenDiff(cmd, args, &flags) },
	}
	flags.register(cmd)
	flags.registerModel(cmd)
	cmd.Flags().StringVar(&flags.RegistryFile, "registry-a", "", "current registry `FILE`")
	cmd.Flags().StringVar(&flags.other, "registry-b", "", "changed registry `FILE`")
	cmd.Flags().BoolVar(&flags.failOnChange, "fail-on-change", false, "exit code 1 if a case is routed differently")
	cmd.Flags().BoolVar(&flags.asJSON, "json", false, "print JSON, including the decisions")
	cmdline.MustSucceed(cmd.MarkFlagFilename("registry-a", cmdline.YAMLExtensions()...))
	cmdline.MustSucceed(cmd.MarkFlagFilename("registry-b", cmdline.YAMLExtensions()...))
	return cmd
}

func goldenDiff(cmd *cobra.Command, args []string, flags *diffFlags) error {
	if flags.RegistryFile == "" || flags.other == "" {
		return cmdline.UsageErrorf(cmd, "diff needs two registries: --registry-a FILE --registry-b FILE")
	}
	b, err := routerflags.ReadRegistry(flags.other)
	if err != nil {
		return err
	}
	g, err := flags.openCases(cmd, args, flags.classifierSource(), b)
	if err != nil {
		return err
	}
	defer g.Close()
	d, err := withProgress(cmd, "comparing", &g.Config, func(ctx context.Context) (*golden.Diff, error) {
		return golden.DiffRegistries(ctx, g.Config, b)
	})
	if err != nil {
		return err
	}
	if err := cmdline.PrintOutput(cmd, flags.asJSON, d, func(out io.Writer) error { return goldenreport.PrintDiff(out, d) }); err != nil {
		return err
	}
	switch {
	case d.Interrupted:
		return fmt.Errorf("interrupted: %d of %d cases were compared", d.Cases, len(g.Config.Cases))
	case flags.failOnChange && len(d.Changes) > 0:
		return cmdline.SilentError{}
	}
	return nil
}
