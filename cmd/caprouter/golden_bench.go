package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/golden"
)

func newGoldenBenchCommand() *cobra.Command {
	var cfg golden.BenchConfig
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure the lexical classifier on labelled sets",
		Long: "Measure the lexical classifier, in its one configuration, on labelled sets. A registry is made of the\n" +
			"training set: one agent for each domain, with its intents and their examples. The files hold lines of\n" +
			"text<TAB>intent<TAB>domain; the intent oos marks what nothing should be found for.\n\n" +
			"The threshold for answering without a model comes from the training set alone, or from --val. With\n" +
			"--multi, labels are joined with # and prompts are split. With --tools, tools are ranked by their\n" +
			"descriptions: lines of {\"tool\", \"description\"} for the rows of --test or, without it, lines of\n" +
			"{\"query\", \"candidates\": [{\"name\", \"description\"}], \"answer\": []}, each ranked by itself.",
		Example: `  caprouter golden bench --train train.tsv --test test.tsv --oos oos.tsv
  caprouter golden bench --train train.tsv --test mixed.tsv --multi --json
  caprouter golden bench --tools tools.jsonl --test queries.tsv`,
		Args: takes("no arguments", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cfg.Validate(); err != nil {
				return usagef(cmd, "%w", err)
			}
			shown := showStages(cmd.ErrOrStderr())
			cfg.Progress = shown.print
			report, err := golden.RunBench(cmd.Context(), cfg)
			shown.clear()
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), report)
			}
			return printBench(cmd.OutOrStdout(), report)
		},
	}
	f := cmd.Flags()
	for _, flag := range []struct {
		into        *string
		name, usage string
		extension   string
	}{
		{&cfg.Train, "train", "make the registry of the rows in `FILE`", "tsv"},
		{&cfg.Test, "test", "classify the rows in `FILE`", "tsv"},
		{&cfg.OutOfScope, "oos", "classify the rows in `FILE` too, where nothing should be found", "tsv"},
		{&cfg.Validation, "val", "choose the accept threshold on the rows in `FILE`", "tsv"},
		{&cfg.Tools, "tools", "rank the tools, or the candidates of each query, in `FILE`", "jsonl"},
	} {
		f.StringVar(flag.into, flag.name, "", flag.usage)
		must(cmd.MarkFlagFilename(flag.name, flag.extension))
	}
	f.BoolVar(&cfg.Multi, "multi", false, "rows may have several labels, joined with #")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// stages shows on a terminal how far the work is, and nothing elsewhere.
type stages struct {
	out      io.Writer
	terminal bool
}

func showStages(out io.Writer) *stages {
	_, ok := asTerminal(out)
	return &stages{out: out, terminal: ok}
}

func (s *stages) print(stage string, done, total int) {
	if s.terminal {
		fmt.Fprintf(s.out, "%s%s%s %d/%d", clearLine, indent, stage, done, total)
	}
}

func (s *stages) clear() {
	if s.terminal {
		fmt.Fprint(s.out, clearLine)
	}
}

// printBench prints the figures that apply, a line each.
func printBench(out io.Writer, r *golden.BenchReport) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if r.Examples > 0 {
		fmt.Fprintf(w, "registry\t%s\t%s\n", count(r.Intents, "intent"), count(r.Examples, "example"))
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
	if name, why := noneAccepted(r); why != "" {
		fmt.Fprintf(w, "%s\tnone\t%s\n", name, why)
	}
	if r.ModelBytes != nil {
		fmt.Fprintf(w, "model_bytes\t%s\t\n", megabytes(float64(*r.ModelBytes)))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return printConfusions(out, r.Confusions)
}

// noneAccepted names the figure that is missing when no row is answered without
// a model, and why.
func noneAccepted(r *golden.BenchReport) (name, why string) {
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
		{"accuracy", r.Accuracy, percent, "best answer right, nothing rejected"},
		{"top5_accuracy", r.Top5Accuracy, percent, "right one among the first five"},
		{"exact_set_accuracy", r.ExactSetAccuracy, percent, "exactly the labels of the row"},
		{"domain_accuracy", r.DomainAccuracy, percent, "first domain right"},
		{"agent_accuracy", r.AgentAccuracy, percent, "right agent by the match, whatever the confidence"},
		{"in_scope_accuracy", r.InScopeAccuracy, percent, "claimed and right"},
		{"oos_recall", r.OutOfScopeRecall, percent, "out of scope and not claimed"},
		{"oos_auroc", r.OutOfScopeAUROC, percent, "in scope told from out of scope by confidence"},
		{"ece", r.ECE, percent, "distance of an intent's confidence from accuracy, 15 bins"},
		{"ece_floor", r.ECEFloor, percent, "what chance alone gives"},
		{"exact_set_ece", r.ExactSetECE, percent, "the same of a prompt's confidence and the set of its labels"},
		{"exact_set_ece_floor", r.ExactSetECEFloor, percent, "what chance alone gives"},
		{"coverage_at_98_precision", r.Coverage, percent, "of all rows, accepted by the threshold chosen beforehand"},
		{"achieved_precision", r.AchievedPrecision, percent, "of those accepted, right"},
		{"… with hindsight", r.HindsightCoverage, percent, "most that any threshold covers at 98 % precision"},
		{"threshold", r.Threshold, formatNumber, "least confidence that is claimed"},
		{"accept", r.Accept, formatNumber, "chosen from: " + r.AcceptSource},
		{"train_ms", r.TrainMS, formatNumber, ""},
		{"classify_us_p50", r.ClassifyP50, formatNumber, ""},
		{"classify_us_p99", r.ClassifyP99, formatNumber, ""},
		{"allocs_per_op", r.AllocsPerOp, formatNumber, ""},
	}
}

func percent(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }

func formatNumber(v float64) string { return fmt.Sprint(math.Round(v*1e4) / 1e4) }

func megabytes(bytes float64) string { return fmt.Sprintf("%.2f MB", bytes/1e6) }

func printConfusions(out io.Writer, list []golden.ConfusedPair) error {
	if len(list) == 0 {
		return nil
	}
	var b strings.Builder
	b.WriteString("\nmost often taken for another\n")
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, c := range list {
		fmt.Fprintf(w, "%s%d\t%s\t→ %s\n", indent, c.Count, oneLine(c.Label), oneLine(c.Got))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(out, b.String())
	return err
}
