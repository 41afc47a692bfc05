package goldenreport

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/caprouter/caprouter/golden"
	"github.com/caprouter/caprouter/internal/plaintext"
)

// PrintFit prints the measurements of the thresholds, and the proposed patch of the registry.
func PrintFit(out io.Writer, fit *golden.FitResult) error {
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
