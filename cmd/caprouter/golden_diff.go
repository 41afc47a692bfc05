package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/golden"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/explain"
	"github.com/caprouter/caprouter/internal/cli/routerflags"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/plaintext"
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
	if err := cmdline.PrintOutput(cmd, flags.asJSON, d, func(out io.Writer) error { return printDiff(out, d) }); err != nil {
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

func printDiff(out io.Writer, d *golden.Diff) error {
	var b strings.Builder
	for _, rule := range d.Rules {
		fmt.Fprintf(&b, "rule     %s\n", terminal.OneLine(rule))
	}
	for i := range d.Changes {
		c := &d.Changes[i]
		fmt.Fprintf(&b, "changed  %s: %s\n", terminal.OneLine(c.ID), strings.Join(c.What, ", "))
		const inset = "         "
		fmt.Fprintf(&b, "%s%s\n", inset, terminal.Truncate(terminal.OneLine(c.Input), terminal.DefaultWidth-len(inset)))
		for _, why := range c.Why {
			fmt.Fprintf(&b, "%s%s\n", inset, terminal.OneLine(why))
		}
	}
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%s: %d routed differently (A %s, B %s)\n", plaintext.CountNoun(d.Cases, "case"), len(d.Changes), explain.ShortenVersion(d.A), explain.ShortenVersion(d.B))
	_, err := io.WriteString(out, b.String())
	return err
}
