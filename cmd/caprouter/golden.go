package main

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/golden"
	"github.com/caprouter/caprouter/internal/app"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/localfile"
	"github.com/caprouter/caprouter/internal/cli/routerflags"
	"github.com/caprouter/caprouter/internal/cli/terminal"
)

func newGoldenCommand() *cobra.Command {
	return cmdline.NewGroupCommand(&cobra.Command{
		Use:   "golden",
		Short: "Test routing: run cases, record a model, fit thresholds, compare registries",
		Long: "Test routing. A case contains a request and its expected outcome. Cases run through the same pipeline\n" +
			"as requests, as dry runs, so that no agent is called. docs/golden.md describes the files.",
		Example: `  caprouter golden run cases.yaml
  caprouter golden run golden/ --baseline baseline.json --junit report.xml
  caprouter golden diff --registry-a old.yaml --registry-b new.yaml golden/`,
	}, newGoldenRunCommand(), newGoldenRecordCommand(), newGoldenFitCommand(), newGoldenDiffCommand(), newGoldenBenchCommand(),
		newGoldenAddCommand(), newGoldenCandidatesCommand())
}

// goldenFlags are the flags of commands that take cases.
type goldenFlags struct {
	routerflags.Config
	filter   golden.Filter
	cassette string
	live     bool
	parallel int
}

func caseArgs() cobra.PositionalArgs {
	return cmdline.ArgsBetween("files or directories of CASES", 1, math.MaxInt)
}

func (f *goldenFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	routerflags.AddConfigFlag(cmd, &f.ConfigFile)
	flags.StringSliceVar(&f.filter.Splits, "split", nil, "only cases of this `SPLIT`: train, validation or test (repeatable)")
	flags.StringSliceVar(&f.filter.Tags, "tag", nil, "only cases with this `TAG` (repeatable; all must match)")
	flags.StringSliceVar(&f.filter.IDs, "case", nil, "only the case with this `ID` (repeatable)")
	cmdline.AddCountFlag(cmd, &f.parallel, "parallel", 1, 0, "number `N` of concurrent cases (default one per processor)")
	cmdline.MustSucceed(cmd.RegisterFlagCompletionFunc("split", cobra.FixedCompletions(
		[]cobra.Completion{golden.Train, golden.Validation, golden.Test}, cobra.ShellCompDirectiveNoFileComp)))
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return []cobra.Completion{"yaml", "yml", "csv", "jsonl", "tsv"}, cobra.ShellCompDirectiveFilterFileExt
	}
}

func (f *goldenFlags) registerModel(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.cassette, "cassette", "", "classify with the replies in `FILE`, written by golden record, without a network")
	cmd.Flags().BoolVar(&f.live, "live", false, "classify with the configured model, which costs tokens")
	cmdline.MustSucceed(cmd.MarkFlagFilename("cassette"))
}

// classifierSource returns what classifies the cases.
func (f *goldenFlags) classifierSource() app.GoldenClassifier {
	switch {
	case f.live:
		return app.GoldenLive
	case f.cassette != "":
		return app.GoldenRecorded
	}
	return app.GoldenLexical
}

// openCases loads configuration, registry, cassette and cases. The cases may also name
// agents of the other registries.
func (f *goldenFlags) openCases(cmd *cobra.Command, paths []string, by app.GoldenClassifier, more ...*capabilities.Snapshot) (*app.Golden, error) {
	if f.live && f.cassette != "" {
		return nil, cmdline.UsageErrorf(cmd, "--live and --cassette are two models: name one")
	}
	cfg, err := f.LoadConfig()
	if err != nil {
		return nil, err
	}
	g, err := app.OpenGolden(cfg, app.Options{Version: buildVersion()}, by)
	if err != nil {
		return nil, routerflags.ExplainMissingRegistry(err, &cfg)
	}
	if err := f.applyFlags(cmd, &g.Config, paths, more); err != nil {
		g.Close()
		return nil, err
	}
	return g, nil
}

func (f *goldenFlags) applyFlags(cmd *cobra.Command, cfg *golden.Config, paths []string, more []*capabilities.Snapshot) error {
	cfg.Workers = f.parallel
	if f.cassette != "" {
		var err error
		if cfg.Cassette, err = golden.ReadCassette(f.cassette); err != nil {
			return localfile.ShortenError(err)
		}
	}
	cases, err := golden.CaseLoader{
		Names: golden.NewDeclaredNames(append(more, cfg.Registry)...),
		Skipped: func(file, why string) {
			fmt.Fprintf(cmd.ErrOrStderr(), "skipped %s: %s\n", terminal.OneLine(file), why)
		},
	}.Load(paths)
	if err != nil {
		return localfile.ShortenError(err)
	}
	if cfg.Cases = golden.FilterCases(cases, f.filter); len(cfg.Cases) == 0 {
		return errors.New("no case is of that split, tag or id: see the cases with `caprouter golden run --verbose`")
	}
	return nil
}

// withProgress runs do and shows its progress on a terminal.
func withProgress[T any](cmd *cobra.Command, stage string, cfg *golden.Config, do func(ctx context.Context) (T, error)) (T, error) {
	shown := terminal.NewProgressLine(cmd.ErrOrStderr())
	defer shown.Clear()
	cfg.Progress = func(done, total int) { shown.PrintProgress(stage, done, total) }
	return do(showTraining(cmd))
}
