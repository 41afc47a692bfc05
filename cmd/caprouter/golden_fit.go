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
	"github.com/caprouter/caprouter/internal/plaintext"
)

func newGoldenFitCommand() *cobra.Command {
	var flags goldenFlags
	var asJSON bool
	precision := golden.DefaultPrecision
	cmd := &cobra.Command{
		Use:   "fit CASES…",
		Short: "Propose thresholds of the registry from cases",
		Long: "Try values of min_confidence, confidence_threshold and ambiguity_threshold on the cases with `split: train`,\n" +
			"and propose those with the most correct outcomes and at least --precision of the dispatches correct. Cases\n" +
			"with `split: validation` or `split: test` are held out to measure the proposal, and cases without a split are\n" +
			"not used. A split train of fewer than 50 cases causes a warning.\n\n" +
			"The command prints a patch and does not change the registry.",
		Example: `  caprouter golden fit golden/
  caprouter golden fit golden/ --precision 0.95 --json`,
		Args: caseArgs(),
		RunE: func(cmd *cobra.Command, args []string) error {
			return goldenFit(cmd, args, &flags, precision, asJSON)
		},
	}
	flags.register(cmd)
	routerflags.AddRegistryFlag(cmd, &flags.RegistryFile)
	flags.registerModel(cmd)
	cmdline.AddShareFlag(cmd, &precision, "precision", "minimum `SHARE` of correct dispatches on split train")
	cmdline.AddJSONFlag(cmd, &asJSON)
	return cmd
}

func goldenFit(cmd *cobra.Command, args []string, flags *goldenFlags, precision float64, asJSON bool) error {
	g, err := flags.openCases(cmd, args, flags.classifierSource())
	if err != nil {
		return err
	}
	defer g.Close()
	fit, err := withProgress(cmd, "fitting", &g.Config, func(ctx context.Context) (*golden.FitResult, error) {
		return golden.FitThresholds(ctx, g.Config, precision)
	})
	if err != nil {
		return err
	}
	if n := fit.TrainNow.Cases; n < golden.FewFitCases {
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s of split train, fewer than %d: the proposal may suit these cases only\n", plaintext.CountNoun(n, "case"), golden.FewFitCases)
	}
	err = cmdline.PrintOutput(cmd, asJSON, fit, func(out io.Writer) error { return goldenreport.PrintFit(out, fit) })
	if err == nil && fit.Interrupted {
		return fmt.Errorf("interrupted: the best of the %d settings that were tried", fit.Settings)
	}
	return err
}
