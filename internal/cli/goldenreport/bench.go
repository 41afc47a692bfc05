package goldenreport

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/caprouter/caprouter/golden"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/plaintext"
)

// PrintBench prints the measurements that apply, one per line.
func PrintBench(out io.Writer, r *golden.BenchReport) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if r.Examples > 0 {
		fmt.Fprintf(w, "registry\t%s\t%s\n", plaintext.CountNoun(r.Intents, "intent"), plaintext.CountNoun(r.Examples, "example"))
	}
	fmt.Fprintf(w, "rows\t%d in scope\t%d out of scope\n", r.N, r.OutOfScopeN)
	if r.Unseen > 0 {
		fmt.Fprintf(w, "unseen\t%d\tin scope, with a label nothing was declared for\n", r.Unseen)
	}
	for _, line := range benchLines(r) {
		if line.value != nil {
			fmt.Fprintf(w, "%s\t%s\t%s\n", line.name, line.form(*line.value), line.what)
		}
	}
	if name, why := explainNoneAccepted(r); why != "" {
		fmt.Fprintf(w, "%s\tnone\t%s\n", name, why)
	}
	if r.ModelBytes != nil {
		fmt.Fprintf(w, "model_bytes\t%s\t\n", formatMegabytes(float64(*r.ModelBytes)))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return printConfusions(out, r.Confusions)
}

// explainNoneAccepted returns the name of the missing measurement and the reason, if
// no row is accepted without a model.
func explainNoneAccepted(r *golden.BenchReport) (name, why string) {
	switch {
	case r.Coverage == nil || *r.Coverage > 0:
		return "", ""
	case r.Accept != nil:
		return "achieved_precision", "no row reaches it"
	case r.Calibrated != nil && !*r.Calibrated && r.AcceptSource != golden.AcceptFromValidation:
		return "accept", "too few examples to calibrate: fewer than 100, or intents with fewer than 5"
	}
	return "accept", "not sure enough: no confidence promises 98 % precision, by the " + r.AcceptSource + " rows"
}

type benchLine struct {
	name  string
	value *float64 // nil: does not apply
	form  func(float64) string
	what  string
}

func benchLines(r *golden.BenchReport) []benchLine {
	return []benchLine{
		{"accuracy", r.Accuracy, formatPercent, "best answer right, nothing rejected"},
		{"top5_accuracy", r.Top5Accuracy, formatPercent, "right one among the first five"},
		{"exact_set_accuracy", r.ExactSetAccuracy, formatPercent, "exactly the labels of the row"},
		{"domain_accuracy", r.DomainAccuracy, formatPercent, "first domain right"},
		{"agent_accuracy", r.AgentAccuracy, formatPercent, "right agent by the match, whatever the confidence"},
		{"in_scope_accuracy", r.InScopeAccuracy, formatPercent, "claimed and right"},
		{"oos_recall", r.OutOfScopeRecall, formatPercent, "out of scope and not claimed"},
		{"oos_auroc", r.OutOfScopeAUROC, formatPercent, "separation of in scope and out of scope by confidence"},
		{"ece", r.ECE, formatPercent, "distance of an intent's confidence from accuracy, 15 bins"},
		{"ece_floor", r.ECEFloor, formatPercent, "what chance alone gives"},
		{"exact_set_ece", r.ExactSetECE, formatPercent, "the same of a prompt's confidence and the set of its labels"},
		{"exact_set_ece_floor", r.ExactSetECEFloor, formatPercent, "what chance alone gives"},
		{"coverage_at_98_precision", r.Coverage, formatPercent, "of all rows, accepted by the threshold chosen beforehand"},
		{"achieved_precision", r.AchievedPrecision, formatPercent, "of those accepted, right"},
		{"… with hindsight", r.HindsightCoverage, formatPercent, "most that any threshold covers at 98 % precision"},
		{"threshold", r.Threshold, formatNumber, "least confidence that is claimed"},
		{"accept", r.Accept, formatNumber, "chosen from: " + r.AcceptSource},
		{"train_ms", r.TrainMS, formatNumber, ""},
		{"classify_us_p50", r.ClassifyP50, formatNumber, ""},
		{"classify_us_p99", r.ClassifyP99, formatNumber, ""},
		{"allocs_per_op", r.AllocsPerOp, formatNumber, ""},
	}
}

func formatPercent(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }

func formatNumber(v float64) string { return fmt.Sprint(math.Round(v*1e4) / 1e4) }

func formatMegabytes(bytes float64) string { return fmt.Sprintf("%.2f MB", bytes/1e6) }

func printConfusions(out io.Writer, list []golden.ConfusedPair) error {
	if len(list) == 0 {
		return nil
	}
	var b strings.Builder
	b.WriteString("\nmost often taken for another\n")
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, c := range list {
		fmt.Fprintf(w, "%s%d\t%s\t→ %s\n", terminal.Indent, c.Count, terminal.OneLine(c.Label), terminal.OneLine(c.Got))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(out, b.String())
	return err
}
