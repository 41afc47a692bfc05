package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/golden"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
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
	err = cmdline.PrintOutput(cmd, asJSON, fit, func(out io.Writer) error { return printFit(out, fit) })
	if err == nil && fit.Interrupted {
		return fmt.Errorf("interrupted: the best of the %d settings that were tried", fit.Settings)
	}
	return err
}

func printFit(out io.Writer, fit *golden.FitResult) error {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\tcases\tas expected\tdispatched\tmisroutes\tcoverage\tprecision\n")
	line := func(name string, s *golden.FitScore) {
		if s != nil {
			fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%s\t%s\n", name, s.Cases, s.Passed, s.Dispatched, s.Misroutes, formatPercent(s.Coverage), formatOptionalPercent(s.Precision))
		}
	}
	best, chosen := "proposed", "the proposal"
	if !fit.Reached {
		best, chosen = "nearest", "the nearest"
	}
	line("train, now", &fit.TrainNow)
	line("train, "+best, &fit.TrainBest)
	line("held out, now", fit.HeldOutNow)
	line("held out, "+best, fit.HeldOutBest)
	if err := w.Flush(); err != nil {
		return err
	}
	if err := printCurve(&b, fit.Curve, chosen); err != nil {
		return err
	}
	switch patch := fit.Patch(); {
	case !fit.Reached:
		fmt.Fprintf(&b, "\nNo setting reaches a precision of %s on split train; %s tried. The nearest is\n%s: nothing is proposed.\n",
			formatPercent(fit.Target), plaintext.CountNoun(fit.Settings, "setting"), formatSetting(&fit.TrainBest.Setting))
	case patch != "":
		fmt.Fprintf(&b, "\n# proposed, not applied; %s tried\n%s", plaintext.CountNoun(fit.Settings, "setting"), patch)
	default:
		fmt.Fprintf(&b, "\nNone of %s is better than the registry: nothing to change.\n", plaintext.CountNoun(fit.Settings, "setting"))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func formatSetting(s *golden.Thresholds) string {
	least := "not set"
	if s.MinConfidence != nil {
		least = fmt.Sprint(*s.MinConfidence)
	}
	return fmt.Sprintf("confidence_threshold %v, min_confidence %s, ambiguity_threshold %v", s.ConfidenceThreshold, least, s.AmbiguityThreshold)
}

func formatOptionalPercent(v *float64) string {
	if v == nil {
		return "–"
	}
	return formatPercent(*v)
}

// printCurve prints the measurements of the setting on the held-out cases.
func printCurve(b *strings.Builder, curve []golden.FitScore, chosen string) error {
	if len(curve) == 0 {
		b.WriteString("\nNo cases are held out: mark cases with `split: validation` or `split: test` to measure the proposal.\n")
		return nil
	}
	fmt.Fprintf(b, "\nheld out, %s at other values of min_confidence\n", chosen)
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "min_confidence\tcoverage\tprecision\tmisroutes\n")
	for i := range curve {
		s := &curve[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\n", strconv.FormatFloat(*s.Setting.MinConfidence, 'f', 2, 64), formatPercent(s.Coverage), formatOptionalPercent(s.Precision), s.Misroutes)
	}
	return w.Flush()
}
