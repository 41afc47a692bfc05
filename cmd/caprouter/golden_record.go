package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/golden"
	"github.com/caprouter/caprouter/internal/app"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/localfile"
	"github.com/caprouter/caprouter/internal/cli/routerflags"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/plaintext"
)

func newGoldenRecordCommand() *cobra.Command {
	var flags goldenFlags
	var again bool
	cmd := &cobra.Command{
		Use:   "record CASES… --cassette FILE",
		Short: "Record the replies of the model for cases",
		Long: "Classify every case with the configured model and store its replies in a cassette, for golden run\n" +
			"--cassette. Stored replies are reused, and those that no case needs are dropped, unless --split, --tag\n" +
			"or --case selects cases. A cassette belongs to one model. It contains replies and hashes of prompts,\n" +
			"but neither prompts nor the key.\n\n" +
			"Exit code 1 if the model did not reply to a prompt. Replies are stored then, and after Ctrl-C, too.",
		Example: `  caprouter golden record golden/ --cassette golden/gemini.cassette.jsonl
  caprouter golden record golden/ --cassette golden/gemini.cassette.jsonl --again`,
		Args: caseArgs(),
		RunE: func(cmd *cobra.Command, args []string) error { return recordGoldenCases(cmd, args, &flags, again) },
	}
	flags.register(cmd)
	routerflags.AddRegistryFlag(cmd, &flags.RegistryFile)
	cmd.Flags().StringVar(&flags.cassette, "cassette", "", "the `FILE` to write; in a directory of cases its name should end in .cassette.jsonl")
	cmd.Flags().BoolVar(&again, "again", false, "record all replies again")
	cmdline.MustSucceed(cmd.MarkFlagFilename("cassette"))
	return cmd
}

func recordGoldenCases(cmd *cobra.Command, args []string, flags *goldenFlags, again bool) error {
	file := flags.cassette
	if file == "" {
		return cmdline.UsageErrorf(cmd, "--cassette FILE is missing: where the replies go")
	}
	if err := localfile.CheckWritable(file); err != nil { // before calls to the model, which cost money
		return localfile.ShortenError(err)
	}
	flags.cassette = "" // the model must be called, not the cassette
	known, err := golden.ReadCassette(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return localfile.ShortenError(err)
	}
	g, err := flags.openCases(cmd, args, app.GoldenLive)
	if err != nil {
		return err
	}
	defer g.Close()
	made, err := withProgress(cmd, "recording", &g.Config, func(ctx context.Context) (*golden.RecordResult, error) {
		return golden.Record(ctx, g.Config, golden.RecordConfig{
			Existing: known, Overwrite: again, Scrub: g.RedactKey, Partial: flags.selectsCases(),
		})
	})
	if other, ok := errors.AsType[*golden.ModelMismatchError](err); ok {
		return fmt.Errorf("%s: %s; name another --cassette file", file, terminal.OneLine(other.Error()))
	}
	if err != nil {
		return err
	}
	if made.Cassette != nil {
		if err := localfile.WriteReport(file, made.Cassette.Write); err != nil {
			return err
		}
		dropped := ""
		if made.Dropped > 0 {
			dropped = fmt.Sprintf("; %d dropped, which no case needs", made.Dropped)
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s: %s of %s %s; %d asked now, %d known before%s\n", file,
			plaintext.CountNoun(made.Cassette.Len(), "recording"), terminal.OneLine(made.Cassette.Provider()), terminal.OneLine(made.Cassette.Model()), made.Asked, made.Reused, dropped)
	}
	return checkRecording(cmd, made)
}

// selectsCases reports whether the flags select a part of the cases.
func (f *goldenFlags) selectsCases() bool {
	return len(f.filter.Splits)+len(f.filter.Tags)+len(f.filter.IDs) > 0
}

func checkRecording(cmd *cobra.Command, made *golden.RecordResult) error {
	failed := 0
	for _, text := range slices.Sorted(maps.Keys(made.Failed)) {
		failed += made.Failed[text]
		cmdline.PrintError(cmd.ErrOrStderr(), fmt.Sprintf("%s: %s", plaintext.CountNoun(made.Failed[text], "question"), text))
	}
	switch r := made.Report; {
	case r.Interrupted:
		return fmt.Errorf("interrupted: %d of %d cases were recorded; the cassette holds these", r.Summary.Total, r.Summary.Planned)
	case failed > 0:
		return fmt.Errorf("%s not answered: run the command again to ask those only", plaintext.CountNoun(failed, "question"))
	case made.Cassette == nil:
		return errors.New("nothing to record: every case scripts its own replies, or the registry is empty")
	}
	return nil
}
