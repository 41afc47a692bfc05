package main

import (
	"context"
	"errors"
	"math"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/golden"
	"github.com/caprouter/caprouter/internal/app"
)

func newGoldenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "golden",
		Short: "Test routing: run cases, record a model, fit thresholds, compare registries, measure",
		Long: "Test routing. A case says what shall become of a request; each one goes the way of a real request, as a\n" +
			"dry run, so that no agent is called. docs/golden.md explains the files.",
		Example: `  caprouter golden run cases.yaml
  caprouter golden run golden/ --baseline baseline.json --junit report.xml
  caprouter golden diff --registry-a old.yaml --registry-b new.yaml golden/`,
		Args: onlySubcommands,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newGoldenRunCommand(),
		newGoldenRecordCommand(),
		newGoldenFitCommand(),
		newGoldenDiffCommand(),
		newGoldenBenchCommand(),
	)
	return cmd
}

// goldenFlags are the flags of the commands that take cases.
type goldenFlags struct {
	configFlags
	filter   golden.Filter
	cassette string
	live     bool
	parallel int
}

// takesCases is for the arguments of these commands.
func takesCases() cobra.PositionalArgs {
	return takes("files or directories of CASES", 1, math.MaxInt)
}

func (f *goldenFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.config, "config", "", "configuration `FILE` (default caprouter.yaml, when there is one)")
	must(cmd.MarkFlagFilename("config", yamlExtensions()...))
	flags.StringSliceVar(&f.filter.Splits, "split", nil, "cases of this `SPLIT` only: train, validation or test; again for more")
	flags.StringSliceVar(&f.filter.Tags, "tag", nil, "cases with this `TAG` only; again for cases with all of them")
	flags.StringSliceVar(&f.filter.IDs, "case", nil, "the case with this `ID` only; again for more")
	flags.IntVar(&f.parallel, "parallel", 0, "cases at a time, `N` (default one a processor)")
	must(cmd.RegisterFlagCompletionFunc("split", cobra.FixedCompletions(
		[]cobra.Completion{golden.Train, golden.Validation, golden.Test}, cobra.ShellCompDirectiveNoFileComp)))
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return []cobra.Completion{"yaml", "yml", "csv", "jsonl", "tsv"}, cobra.ShellCompDirectiveFilterFileExt
	}
}

func (f *goldenFlags) registerRegistry(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.registry, "registry", "", "capability registry `FILE` (default capabilities.yaml)")
	must(cmd.MarkFlagFilename("registry", yamlExtensions()...))
}

func (f *goldenFlags) registerModel(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.cassette, "cassette", "", "let the model of this `FILE`, made by golden record, read the requests; no network")
	cmd.Flags().BoolVar(&f.live, "live", false, "let the configured model read the requests; costs what it costs")
	must(cmd.MarkFlagFilename("cassette"))
}

// by is who reads the requests.
func (f *goldenFlags) by() app.GoldenClassifier {
	switch {
	case f.live:
		return app.GoldenLive
	case f.cassette != "":
		return app.GoldenRecorded
	}
	return app.GoldenLexical
}

// open loads configuration, registry, cassette and cases. more are registries
// that the cases may name agents of, too.
func (f *goldenFlags) open(cmd *cobra.Command, paths []string, by app.GoldenClassifier, more ...*capabilities.Snapshot) (*app.Golden, error) {
	switch {
	case f.parallel < 0:
		return nil, usagef(cmd, "--parallel %d is no number of cases", f.parallel)
	case f.live && f.cassette != "":
		return nil, usagef(cmd, "--live and --cassette are two models: name one")
	}
	cfg, err := f.load()
	if err != nil {
		return nil, err
	}
	g, err := app.OpenGolden(cfg, app.Options{Version: buildVersion()}, by)
	if err != nil {
		return nil, missingRegistry(err, &cfg)
	}
	if err := f.fill(&g.Config, paths, more); err != nil {
		g.Close()
		return nil, err
	}
	return g, nil
}

// fill adds to the configuration what the command line names.
func (f *goldenFlags) fill(cfg *golden.Config, paths []string, more []*capabilities.Snapshot) error {
	cfg.Workers = f.parallel
	if f.cassette != "" {
		var err error
		if cfg.Cassette, err = golden.ReadCassette(f.cassette); err != nil {
			return withoutVerb(err)
		}
	}
	cases, err := golden.LoadCases(paths, golden.NewDeclaredNames(append(more, cfg.Registry)...))
	if err != nil {
		return withoutVerb(err)
	}
	if cfg.Cases = golden.FilterCases(cases, f.filter); len(cfg.Cases) == 0 {
		return errors.New("no case is of that split, tag or id: see the cases with `caprouter golden run --verbose`")
	}
	return nil
}

// withProgress shows on a terminal how far do is.
func withProgress(cmd *cobra.Command, stage string, cfg *golden.Config, do func(ctx context.Context) error) error {
	shown := showStages(cmd.ErrOrStderr())
	cfg.Progress = func(done, total int) { shown.print(stage, done, total) }
	err := do(cmd.Context())
	shown.clear()
	return err
}
