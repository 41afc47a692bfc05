package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/golden"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/goldenreport"
	"github.com/caprouter/caprouter/internal/cli/terminal"
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
			return cmdline.PrintOutput(cmd, asJSON, report, func(out io.Writer) error { return goldenreport.PrintBench(out, report) })
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
