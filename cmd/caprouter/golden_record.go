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
)

func newGoldenRecordCommand() *cobra.Command {
	var flags goldenFlags
	var again bool
	cmd := &cobra.Command{
		Use:   "record CASES… --cassette FILE",
		Short: "Ask the model about cases once, and keep what it says",
		Long: "Ask the configured model about every case and keep its replies in a cassette, for golden run --cassette.\n" +
			"What the cassette has already is not asked again, what no case needs any more goes; with --split, --tag\n" +
			"or --case nothing goes. A cassette is of one model, and holds replies and hashes of questions, neither\n" +
			"the questions nor the key.\n\n" +
			"Exit code 1 when the model did not answer a question; what it did answer is kept. So it is after Ctrl-C.",
		Example: `  caprouter golden record golden/ --cassette golden/gemini.cassette.jsonl
  caprouter golden record golden/ --cassette golden/gemini.cassette.jsonl --again`,
		Args: takesCases(),
		RunE: func(cmd *cobra.Command, args []string) error { return goldenRecord(cmd, args, &flags, again) },
	}
	flags.register(cmd)
	flags.registerRegistry(cmd)
	cmd.Flags().StringVar(&flags.cassette, "cassette", "", "the `FILE` to write; one in a directory of cases should end in .cassette.jsonl")
	cmd.Flags().BoolVar(&again, "again", false, "ask all of it, whatever the cassette has")
	must(cmd.MarkFlagFilename("cassette"))
	return cmd
}

func goldenRecord(cmd *cobra.Command, args []string, flags *goldenFlags, again bool) error {
	file := flags.cassette
	if file == "" {
		return usagef(cmd, "--cassette FILE is missing: where the replies go")
	}
	if err := checkWritable(file); err != nil { // before the model is asked, which costs
		return withoutVerb(err)
	}
	flags.cassette = "" // the model is asked, not the file
	known, err := golden.ReadCassette(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return withoutVerb(err)
	}
	g, err := flags.open(cmd, args, app.GoldenLive)
	if err != nil {
		return err
	}
	defer g.Close()
	var made *golden.RecordResult
	err = withProgress(cmd, "recording", &g.Config, func(ctx context.Context) error {
		made, err = golden.Record(ctx, g.Config, golden.RecordConfig{
			Existing: known, Overwrite: again, Scrub: g.RedactKey, Partial: flags.filters(),
		})
		return err
	})
	if other, ok := errors.AsType[*golden.ModelMismatchError](err); ok {
		return fmt.Errorf("%s: %s; name another --cassette file", file, oneLine(other.Error()))
	}
	if err != nil {
		return err
	}
	if made.Cassette != nil {
		if err := writeReport(file, made.Cassette.Write); err != nil {
			return err
		}
		dropped := ""
		if made.Dropped > 0 {
			dropped = fmt.Sprintf("; %d dropped, which no case needs", made.Dropped)
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s: %s of %s %s; %d asked now, %d known before%s\n", file,
			count(made.Cassette.Len(), "recording"), oneLine(made.Cassette.Provider()), oneLine(made.Cassette.Model()), made.Asked, made.Reused, dropped)
	}
	return recordVerdict(cmd, made)
}

// filters reports whether the flags select among the cases.
func (f *goldenFlags) filters() bool {
	return len(f.filter.Splits)+len(f.filter.Tags)+len(f.filter.IDs) > 0
}

func recordVerdict(cmd *cobra.Command, made *golden.RecordResult) error {
	failed := 0
	for _, text := range slices.Sorted(maps.Keys(made.Failed)) {
		failed += made.Failed[text]
		complain(cmd.ErrOrStderr(), fmt.Sprintf("%s: %s", count(made.Failed[text], "question"), text))
	}
	switch r := made.Report; {
	case r.Interrupted:
		return fmt.Errorf("interrupted: %d of %d cases were recorded; the cassette holds these", r.Summary.Total, r.Summary.Planned)
	case failed > 0:
		return fmt.Errorf("%s not answered: run the command again to ask those only", count(failed, "question"))
	case made.Cassette == nil:
		return errors.New("nothing to record: every case scripts its own replies, or the registry is empty")
	}
	return nil
}
