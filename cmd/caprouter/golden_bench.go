package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/golden"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/plaintext"
)

func newGoldenBenchCommand() *cobra.Command {
	var cfg golden.BenchConfig
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure the lexical classifier on labelled sets",
		Long: "Measure the lexical classifier on labelled sets. The training set becomes a registry with one agent per\n" +
			"domain. The files contain lines of text<TAB>intent<TAB>domain; the intent oos marks requests that are\n" +
			"out of scope.\n\n" +
			"The threshold for answering without a model is fitted on the training set, or on --val. With\n" +
			"--multi, labels are joined with # and prompts are split. With --tools, tools are ranked by their\n" +
			"descriptions: lines of {\"tool\", \"description\"} for the rows of --test or, without it, lines of\n" +
			"{\"query\", \"candidates\": [{\"name\", \"description\"}], \"answer\": []}, each ranked by itself.",
		Example: `  caprouter golden bench --train train.tsv --test test.tsv --oos oos.tsv
  caprouter golden bench --train train.tsv --test mixed.tsv --multi --json
  caprouter golden bench --tools tools.jsonl --test queries.tsv`,
		Args: cmdline.ArgsBetween("no arguments", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cfg.Validate(); err != nil {
				return cmdline.UsageErrorf(cmd, "%w", err)
			}
			shown := terminal.NewProgressLine(cmd.ErrOrStderr())
			cfg.Progress = shown.PrintProgress
			report, err := golden.RunBench(cmd.Context(), cfg)
			shown.Clear()
			if err != nil {
				return err
			}
			return cmdline.PrintOutput(cmd, asJSON, report, func(out io.Writer) error { return printBench(out, report) })
		},
	}
	f := cmd.Flags()
	for _, flag := range []struct {
		into        *string
		name, usage string
		extension   string
	}{
		{&cfg.Train, "train", "train on the rows in `FILE`", "tsv"},
		{&cfg.Test, "test", "classify the rows in `FILE`", "tsv"},
		{&cfg.OutOfScope, "oos", "also classify the rows in `FILE`, which are out of scope", "tsv"},
		{&cfg.Validation, "val", "fit the accept threshold on the rows in `FILE`", "tsv"},
		{&cfg.Tools, "tools", "rank the tools, or the candidates of each query, in `FILE`", "jsonl"},
	} {
		f.StringVar(flag.into, flag.name, "", flag.usage)
		cmdline.MustSucceed(cmd.MarkFlagFilename(flag.name, flag.extension))
	}
	f.BoolVar(&cfg.Multi, "multi", false, "rows may have several labels, joined with #")
	cmdline.AddJSONFlag(cmd, &asJSON)
	return cmd
}

// printBench prints the measurements that apply, one per line.
func printBench(out io.Writer, r *golden.BenchReport) error {
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
